"""Lets a causal model of transformers answer in words: the likeliest token each time, many prompts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from minicheck_eval.backends.local_results import answers, translated
from minicheck_eval.backends.local_schema import Held, Schemas
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.engine.batches import Batch, BatchExecutor
from minicheck_eval.scoring import Failure, Reply, Usage

__all__ = ["Replier"]

PADDING_SHARE = 1 / 2
"""How much of a batch may be padding: each batch takes a step for every token of its longest reply."""


class Replier:
    """Writes replies; `budget_tokens` bounds the prompts of one batch, padding included.

    A reply ends at the control token of `turn_end`, at those that the model's own settings name, or where it fills the
    window.
    """

    def __init__(
        self, model: Any, tokenizer: PromptTokenizer, *, window_tokens: int, budget_tokens: int, turn_end: str = ""
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._window_tokens = window_tokens
        self._budget_tokens = budget_tokens
        self._device = model.get_input_embeddings().weight.device
        turn_end_id = tokenizer.control_id(turn_end)
        self._stop = sorted({*_ends(model), *([] if turn_end_id is None else [turn_end_id])})
        vocabulary = model.config.get_text_config().vocab_size
        self._schemas = Schemas(tokenizer, vocabulary=vocabulary, stop=self._stop)
        self.usage = Usage()

    def reply(
        self, asked: Sequence[tuple[int, ...]], *, schema: Mapping[str, Any] | None, most_tokens: int
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, in input order."""
        grammar = None if schema is None else self._schemas.grammar(schema)

        def run(batch: Batch) -> list[Reply | Failure]:
            with translated(batch.tokens):
                return self._run(batch, grammar, most_tokens)

        # A prompt that fills the window has no room for a reply.
        executor = BatchExecutor(
            run,
            budget_tokens=self._budget_tokens,
            window_tokens=self._window_tokens - 1,
            padding_share=PADDING_SHARE,
        )
        found = executor.score(asked)
        self._budget_tokens = executor.budget_tokens
        self.usage += executor.usage
        return answers(found)

    def _run(self, batch: Batch, grammar: str | None, most_tokens: int) -> list[Reply | Failure]:
        watch = _Watch()
        held = Held([] if grammar is None else self._schemas.matchers(grammar, len(batch.rows)))
        ids, mask = self._padded(batch)
        settings = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=most_tokens,
            do_sample=False,
            eos_token_id=self._stop or None,
            pad_token_id=self._stop[0] if self._stop else 0,
        )
        with torch.inference_mode(), _without_own_settings(self._model):
            written = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=settings,
                logits_processor=LogitsProcessorList([watch, held] if held.matchers else [watch]),
            )[:, batch.width :].tolist()
        rows = zip(written, batch.rows, strict=True)
        replies = [self._read(row, room=self._window_tokens - len(asked)) for row, asked in rows]
        ran_over = f"the model's numbers ran over in {self._model.dtype}"
        failures = {row: Failure("backend", message) for row, message in held.errors.items()}
        failures |= {row: Failure("not_a_number", ran_over) for row in watch.broken}
        return [failures.get(row, reply) for row, reply in enumerate(replies)]

    def _read(self, written: Sequence[int], *, room: int) -> Reply:
        """Return what was written up to the end of the turn; what runs over the window is cut off."""
        end = next((place for place, token in enumerate(written[:room]) if token in self._stop), None)
        kept = written[: room if end is None else end]
        self.usage = self.usage.plus(reply_tokens=len(kept) + (end is not None))
        return Reply(self._tokenizer.decode(kept), complete=end is not None)

    def _padded(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and mask, [rows, width] each, with the padding on the left."""
        padding = self._stop[0] if self._stop else 0
        rows = [[padding] * (batch.width - len(ids)) + [*ids] for ids in batch.rows]
        lengths = torch.tensor([len(ids) for ids in batch.rows], device=self._device)
        places = torch.arange(batch.width, device=self._device)
        return torch.tensor(rows, device=self._device), (places >= batch.width - lengths[:, None]).long()


def _ends(model: Any) -> list[int]:
    """Return the tokens that end a reply by the model's own settings."""
    named = model.generation_config.eos_token_id
    if named is None:
        named = model.config.get_text_config().eos_token_id
    return [] if named is None else [named] if isinstance(named, int) else list(named)


@contextmanager
def _without_own_settings(model: Any) -> Iterator[None]:
    """Put away what the makers of the model set for generation: a penalty on words, say, changes what is likeliest."""
    own = model.generation_config
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        model.generation_config = own


class _Watch(LogitsProcessor):
    """Notes the rows in which something was no number: the token that is likeliest there means nothing."""

    def __init__(self) -> None:
        self.broken: set[int] = set()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002 - the library's signature
        self.broken.update(scores.isnan().any(-1).nonzero()[:, 0].tolist())
        return scores
