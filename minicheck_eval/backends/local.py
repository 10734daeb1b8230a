"""Runs a causal judge with transformers on this machine, through the engine."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import torch

from minicheck_eval.backends.local_reply import Replier
from minicheck_eval.backends.local_results import answers, library_name, translated
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.engine.attention import AttentionKind
from minicheck_eval.engine.execute import Executor
from minicheck_eval.engine.plan import Pass
from minicheck_eval.engine.reading import Reading, read
from minicheck_eval.engine.run import TreeModel, packs
from minicheck_eval.engine.side_by_side import SideBySide
from minicheck_eval.scoring import Failure, Prompt, Reply, Score, Usage

__all__ = ["LocalBackend"]


class LocalBackend:
    """A causal model of transformers, already loaded, with its tokenizer; `budget_tokens` bounds one forward pass.

    With `top5_rule` support is read as the MiniCheck package does: every token that says "yes" counts, in any case, if
    it is among the five likeliest.  Labels are texts of one token, or ids of tokens.  A reply ends at `turn_end`, or at
    what the model's own settings name.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PromptTokenizer,
        *,
        yes: Sequence[str | int],
        no: Sequence[str | int],
        window_tokens: int,
        budget_tokens: int | None = None,
        attention: AttentionKind = "segments",
        top5_rule: bool = False,
        turn_end: str = "",
    ) -> None:
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.window_tokens = window_tokens
        on_cpu = model.device.type == "cpu"
        budget_tokens = (budget_tokens or (2048 if on_cpu else 16384)) if packs(model.config) else 1
        self._executor = Executor(
            self._run,
            budget_tokens=budget_tokens,
            window_tokens=window_tokens,
            over_passes=SideBySide() if on_cpu else map,
        )
        self._tokenizer = tokenizer
        self._top5_rule = top5_rule
        self._yes = self._ids(tokenizer.ids_of_word("yes") if top5_rule else yes, model.device)
        self._no = self._ids(no, model.device)
        self._model = TreeModel(model, attention)
        self._replier = Replier(
            model, tokenizer, window_tokens=window_tokens, budget_tokens=budget_tokens, turn_end=turn_end
        )

    @property
    def name(self) -> str:
        """Name the library that runs the model, and its version."""
        return library_name()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        return self._tokenizer.count(texts)

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        return answers(self._executor.score(self._tokenizer.encode(prompts)))

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch; the next ones are tokenised and planned while the model works on one."""
        with closing(self._executor.stream(self._tokenizer.encode(batch) for batch in batches)) as results:
            yield from map(answers, results)

    @property
    def usage(self) -> Usage:
        """Tell what has been asked and computed so far."""
        return self._executor.usage + self._replier.usage

    def reply(
        self, prompts: Sequence[Prompt], *, schema: Mapping[str, Any] | None = None, most_tokens: int = 512
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, in input order; with `schema` each reply keeps to it."""
        asked = [prompt.prefix + prompt.suffix for prompt in self._tokenizer.encode(prompts)]
        return self._replier.reply(asked, schema=schema, most_tokens=most_tokens)

    def _ids(self, labels: Sequence[str | int], device: torch.device) -> torch.Tensor:
        ids = [self._tokenizer.token_id(label) if isinstance(label, str) else label for label in labels]
        return torch.tensor(ids, device=device)

    def _run(self, one: Pass) -> list[Score | Failure]:
        with translated(one.tokens):
            # Of a model on several devices the last part may not be where the first is.
            logits = self._model.logits(one).to(self._yes.device)
            return self._scores(read(logits, self._yes, self._no, top5=self._top5_rule))

    def _scores(self, found: Reading) -> list[Score | Failure]:
        scores: list[Score | Failure] = []
        for yes, no, top in zip(*(column.tolist() for column in found), strict=True):
            if math.isfinite(yes) and math.isfinite(no):
                # Sums of float32 probabilities may exceed 1 in the last bit.
                scores.append(Score(min(1.0, yes), min(1.0, no), self._tokenizer.text(top)))
            else:
                scores.append(Failure("not_a_number", f"the model gave P(yes) = {yes} in {self.dtype}"))
        return scores
