"""Carry out plans pass by pass, with smaller passes where the memory of the device ends; pure Python."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypeVar

from minicheck_eval.engine.ahead import run_ahead
from minicheck_eval.engine.plan import Pass, Plan, TokenPrompt, plan
from minicheck_eval.scoring import Usage

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
    that follows; a single prompt that does not fit fails alone.  `over_passes` is a map: it may run several at once.
    """

    def __init__(
        self,
        run: Callable[[Pass], Sequence[Result]],
        *,
        budget_tokens: int,
        window_tokens: int,
        over_passes: Callable[..., Iterable[Any]] = map,
    ) -> None:
        self._run = run
        self._over_passes = over_passes
        self.budget_tokens = budget_tokens
        self._stretched = True
        self._window_tokens = window_tokens
        self.usage = Usage()
        """What has been asked and computed since the beginning."""

    def score(self, prompts: Sequence[TokenPrompt]) -> list[Result | Unscored]:
        """Return one result or the reason why there is none for each prompt, in input order."""
        return self._carry_out(prompts, self._plan(prompts))

    def stream(self, batches: Iterable[Sequence[TokenPrompt]]) -> Generator[list[Result | Unscored], None, None]:
        """Score batch after batch; the next ones are made and planned while the device works on one.

        No batch waits for a later one, and no more than a few are held at a time.
        """
        with closing(run_ahead((prompts, self._size, self._plan(prompts)) for prompts in batches)) as planned:
            for prompts, size, its_plan in planned:
                # What was planned before passes got smaller is planned anew.
                yield self._carry_out(prompts, its_plan if size == self._size else self._plan(prompts))

    @property
    def _size(self) -> tuple[int, bool]:
        return self.budget_tokens, self._stretched

    def _plan(self, prompts: Sequence[TokenPrompt]) -> Plan:
        budget, stretched = self._size
        return plan(prompts, budget_tokens=budget, window_tokens=self._window_tokens, stretched=stretched)

    def _carry_out(self, prompts: Sequence[TokenPrompt], planned: Plan) -> list[Result | Unscored]:
        self.usage = self.usage.plus(prompts=len(prompts), asked_tokens=planned.asked_tokens)
        results: dict[int, Result | Unscored] = {}
        places: Sequence[int] = range(len(prompts))
        while left := self._attempt(prompts, places, planned, results):
            places = left
            planned = self._plan([prompts[i] for i in places])
        return [results[i] for i in range(len(prompts))]

    def _attempt(
        self,
        prompts: Sequence[TokenPrompt],
        places: Sequence[int],
        planned: Plan,
        results: dict[int, Result | Unscored],
    ) -> list[int]:
        """Run a plan of some prompts; return the places of those that are to be planned again, in smaller passes."""
        for k in planned.too_long:
            message = f"{len(prompts[places[k]])} tokens; the judge's window holds {self._window_tokens}"
            results[places[k]] = Unscored("too_long", message)
        # All are tried before any is split: what runs beside a pass may be what it has no room for.
        tried = list(self._over_passes(self._try, planned.passes))
        left: list[int] = []
        for one, (outcome, seconds) in zip(planned.passes, tried, strict=True):
            self.usage = self.usage.plus(calls=1, seconds=seconds)
            found: Sequence[Result | Unscored]
            if isinstance(outcome, PassTooLargeError):
                if len(one.leaves) > 1:
                    # Of several passes planned alike, the smaller budget counts once.
                    self._stretched = False
                    self.budget_tokens = min(self.budget_tokens, max(1, one.tokens // 2))
                    left += (places[k] for leaf in one.leaves for k in leaf.prompts)
                    continue
                found = self._alone(one)
            else:
                found = outcome
            self.usage = self.usage.plus(computed_tokens=one.tokens)
            for leaf, result in zip(one.leaves, found, strict=True):
                results.update(dict.fromkeys((places[k] for k in leaf.prompts), result))
        return sorted(left)

    def _alone(self, one: Pass) -> Sequence[Result | Unscored]:
        """Run a pass of one prompt again, with nothing beside it."""
        outcome, seconds = self._try(one)
        self.usage = self.usage.plus(calls=1, seconds=seconds)
        if isinstance(outcome, PassTooLargeError):
            return [Unscored("out_of_memory", f"a prompt of {one.tokens} tokens did not fit alone: {outcome}")]
        return outcome

    def _try(self, one: Pass) -> tuple[Sequence[Result] | PassTooLargeError, float]:
        """Run a pass; return what came of it, and the seconds it took."""
        began = perf_counter()
        try:
            return self._run(one), perf_counter() - began
        except PassTooLargeError as error:
            return error, perf_counter() - began
