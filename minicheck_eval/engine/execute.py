"""Carry out a plan: pass by pass, with smaller passes where the memory of the device ends; pure Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from minicheck_eval.engine.plan import Pass, TokenPrompt, plan

__all__ = ["Executor", "PassTooLargeError", "Unscored"]

Result = TypeVar("Result")


class PassTooLargeError(Exception):
    """The device has not enough memory for a pass."""


@dataclass(frozen=True, slots=True)
class Unscored:
    """Why one prompt has no result: `too_long` for the window, or `out_of_memory` even alone."""

    reason: str
    message: str


class Executor(Generic[Result]):
    """Runs prompts through `run`, which takes a pass and returns one result for each of its leaves.

    A pass for which `run` raises `PassTooLargeError` is split and tried again, and the smaller budget is kept for all
    that follows; a single prompt that does not fit fails alone.
    """

    def __init__(self, run: Callable[[Pass], Sequence[Result]], *, budget_tokens: int, window_tokens: int) -> None:
        self._run = run
        self.budget_tokens = budget_tokens
        self._window_tokens = window_tokens

    def score(self, prompts: Sequence[TokenPrompt]) -> list[Result | Unscored]:
        """Return one result or the reason why there is none for each prompt, in input order."""
        results: dict[int, Result | Unscored] = {}
        left: Sequence[int] = range(len(prompts))
        while left:
            left = self._attempt(prompts, left, results)
        return [results[i] for i in range(len(prompts))]

    def _attempt(
        self, prompts: Sequence[TokenPrompt], places: Sequence[int], results: dict[int, Result | Unscored]
    ) -> list[int]:
        """Plan and run some prompts; return the places of those that are to be planned again, in smaller passes."""
        asked = [prompts[i] for i in places]
        planned = plan(asked, budget_tokens=self.budget_tokens, window_tokens=self._window_tokens)
        for k in planned.too_long:
            message = f"{len(asked[k])} tokens; the judge's window holds {self._window_tokens}"
            results[places[k]] = Unscored("too_long", message)
        for number, one in enumerate(planned.passes):
            try:
                found: Sequence[Result | Unscored] = self._run(one)
            except PassTooLargeError as error:
                if len(one.leaves) > 1:
                    self.budget_tokens = max(1, min(self.budget_tokens, one.tokens) // 2)
                    rest = planned.passes[number:]
                    return sorted(places[k] for later in rest for leaf in later.leaves for k in leaf.prompts)
                found = [Unscored("out_of_memory", f"a prompt of {one.tokens} tokens did not fit alone: {error}")]
            for leaf, result in zip(one.leaves, found, strict=True):
                results.update(dict.fromkeys((places[k] for k in leaf.prompts), result))
        return []
