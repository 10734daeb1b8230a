"""Runs a judge that is an encoder (a seq2seq model or a classifier) with transformers on this machine."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any

import torch

from minicheck_eval.backends.local_results import answers, library_name, translated
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.engine.batches import Batch, BatchExecutor
from minicheck_eval.engine.encode import Family, run_batch
from minicheck_eval.engine.plan import TokenPrompt
from minicheck_eval.scoring import Failure, Prompt, Score, Usage

__all__ = ["EncoderBackend"]


class EncoderBackend:
    """A seq2seq model or classifier of transformers, already loaded, with its tokenizer.

    `supported` and `unsupported` are the ids of the two tokens that a seq2seq model may say first, or the two classes
    of a classifier.  `budget_tokens` bounds one forward pass, padding included.  With `truncate`, a prompt beyond the
    window loses the end of its text, as in the reference implementation, in place of being a failure.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PromptTokenizer,
        *,
        family: Family,
        supported: int,
        unsupported: int,
        window_tokens: int,
        budget_tokens: int | None = None,
        truncate: bool = False,
    ) -> None:
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.window_tokens = window_tokens
        budget_tokens = budget_tokens or (1024 if model.device.type == "cpu" else 16384)
        self._executor = BatchExecutor(self._run, budget_tokens=budget_tokens, window_tokens=window_tokens)
        self._tokenizer = tokenizer
        self._model = model
        self._family = family
        self._labels = torch.tensor([supported, unsupported], device=model.device)
        self._truncate = truncate

    @property
    def name(self) -> str:
        """Name the library that runs the model, and its version."""
        return library_name()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        return self._tokenizer.count(texts)

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        return answers(self._executor.score(self._encode(prompts)))

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch; the next ones are tokenised while the model works, and small ones go together."""
        with closing(self._executor.stream(map(self._encode, batches))) as results:
            yield from map(answers, results)

    @property
    def usage(self) -> Usage:
        """Tell what has been asked and computed so far."""
        return self._executor.usage

    def _encode(self, prompts: Sequence[Prompt]) -> list[tuple[int, ...]]:
        return [self._ids(prompt) for prompt in self._tokenizer.encode(prompts)]

    def _ids(self, prompt: TokenPrompt) -> tuple[int, ...]:
        ids = prompt.prefix + prompt.suffix
        if self._truncate and len(ids) > self.window_tokens:
            # The last token is the control token that ends every input.
            return ids[: self.window_tokens - 1] + ids[-1:]
        return ids

    def _run(self, batch: Batch) -> list[Score | Failure]:
        with translated(batch.tokens):
            found = run_batch(self._model, batch, family=self._family, labels=self._labels)
        return [self._score(*answer) for answer in found]

    def _score(self, support: float, refute: float) -> Score | Failure:
        if math.isfinite(support) and math.isfinite(refute):
            return Score(support, refute, "supported" if support > refute else "unsupported")
        return Failure("not_a_number", f"the model gave P(supported) = {support} in {self.dtype}")
