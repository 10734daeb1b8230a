"""A deterministic backend without a model, for tests of whatever stands on the scoring seam."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minicheck_eval.scoring import Failure, Prompt, Score

__all__ = ["FakeBackend"]


class FakeBackend:
    """Answers each prompt with `answer(prompt)` and remembers what it was asked.

    Tokens are words, so that sizes are easy to foresee.
    """

    name = "fake"
    dtype = "none"

    def __init__(self, answer: Callable[[Prompt], Score | Failure | float], *, window_tokens: int = 1000) -> None:
        self.answer = answer
        self.window_tokens = window_tokens
        self.batches: list[list[Prompt]] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count words."""
        return [len(text.split()) for text in texts]

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return `answer(prompt)` for each; a bare number is P(yes), the rest P(no)."""
        self.batches.append(list(prompts))
        answers = [self.answer(prompt) for prompt in prompts]
        return [a if isinstance(a, Score | Failure) else Score(a, 1 - a, "Yes" if a > 1 / 2 else "No") for a in answers]
