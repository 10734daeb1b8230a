"""Decide which inputs go through an encoder together, and carry that out: pure Python, no tensors.

An encoder reads document and claim together, so prompts share no tokens; what can be saved is padding.  The inputs of
all cases, sorted by length, are cut into batches whose padded size keeps to a budget of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar

from minicheck_eval.engine.ahead import run_ahead
from minicheck_eval.engine.execute import PassTooLargeError, Unscored
from minicheck_eval.scoring import Usage

__all__ = ["Batch", "BatchExecutor", "batches"]

Ids = tuple[int, ...]
Result = TypeVar("Result")

PADDING_SHARE = 1 / 16
"""How much of the budget a batch may spend on padding, where nothing else is said."""
POOLED_BUDGETS = 8
"""How many budgets of tokens are sorted together in a stream."""
POOLED_EMPTY = 64
"""How many groups without a single token wait with others in a stream."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs of one forward pass, the longest first."""

    rows: tuple[Ids, ...]

    @property
    def width(self) -> int:
        """Return the length to which the rows are padded."""
        return len(self.rows[0])

    @property
    def tokens(self) -> int:
        """Return how many tokens the batch computes, padding included."""
        return self.width * len(self.rows)


def batches(inputs: Iterable[Ids], *, budget_tokens: int, padding_share: float = PADDING_SHARE) -> list[Batch]:
    """Cut inputs into batches, the longest first, each input once.

    The batches depend on which inputs there are, not on their order.  An input longer than the budget gets a batch of
    its own.
    """
    ordered = sorted(set(inputs), key=lambda ids: (-len(ids), ids))
    cut: list[Batch] = []
    start = 0
    while start < len(ordered):
        end = _end(ordered, start, budget_tokens, padding_share)
        cut.append(Batch(tuple(ordered[start:end])))
        start = end
    return cut


def _end(ordered: Sequence[Ids], start: int, budget_tokens: int, padding_share: float) -> int:
    """Return where the batch ends that begins at `start`."""
    width = len(ordered[start])
    most = len(ordered) if width == 0 else min(len(ordered), start + budget_tokens // width)
    padding = 0
    for end in range(start + 1, most):
        padding += width - len(ordered[end])
        # Where few inputs differ much in length, another pass costs less than so much padding.
        if padding > budget_tokens * padding_share:
            return end
    return max(most, start + 1)


class BatchExecutor(Generic[Result]):
    """Runs inputs through `run`, which takes a batch and returns one result for each of its rows.

    A batch for which `run` raises `PassTooLargeError` is cut anew and tried again, and the smaller budget is kept for
    all that follows; a single input that does not fit fails alone.
    """

    def __init__(
        self,
        run: Callable[[Batch], Sequence[Result]],
        *,
        budget_tokens: int,
        window_tokens: int,
        padding_share: float = PADDING_SHARE,
    ) -> None:
        self._run = run
        self._padding_share = padding_share
        self.budget_tokens = budget_tokens
        self._window_tokens = window_tokens
        self.usage = Usage()
        """What has been asked and computed since the beginning; what is computed includes padding."""

    def score(self, inputs: Sequence[Ids]) -> list[Result | Unscored]:
        """Return one result or the reason why there is none for each input, in input order."""
        results: dict[Ids, Result | Unscored] = {}
        for ids in inputs:
            if not 0 < len(ids) <= self._window_tokens:
                message = f"{len(ids)} tokens; the judge's window holds {self._window_tokens}"
                results[ids] = Unscored("too_long", message)
        left = [ids for ids in inputs if ids not in results]
        self.usage = self.usage.plus(prompts=len(inputs), asked_tokens=sum(map(len, left)))
        while left:
            left = self._attempt(left, results)
        return [results[ids] for ids in inputs]

    def stream(self, groups: Iterable[Sequence[Ids]]) -> Generator[list[Result | Unscored], None, None]:
        """Score group after group, in order; the next ones are made while the device works.

        Small groups wait for each other until they fill some batches, so that these have little padding.  Where
        `groups` raises, all groups before are scored first.
        """
        with closing(run_ahead(groups)) as ahead:
            for pool in self._pools(ahead):
                results = iter(self.score([ids for group in pool for ids in group]))
                for group in pool:
                    yield [next(results) for _ in group]

    def _pools(self, groups: Iterable[Sequence[Ids]]) -> Iterator[list[Sequence[Ids]]]:
        pool: list[Sequence[Ids]] = []
        tokens = empty = 0
        try:
            for group in groups:
                pool.append(group)
                tokens += (size := sum(map(len, group)))
                empty += not size
                if tokens >= self.budget_tokens * POOLED_BUDGETS or empty >= POOLED_EMPTY:
                    yield pool
                    pool, tokens, empty = [], 0, 0
        except Exception:
            if pool:
                yield pool
            raise
        if pool:
            yield pool

    def _attempt(self, inputs: Iterable[Ids], results: dict[Ids, Result | Unscored]) -> list[Ids]:
        """Run inputs in batches; return those that are to be batched again, in smaller batches."""
        planned = batches(inputs, budget_tokens=self.budget_tokens, padding_share=self._padding_share)
        for number, one in enumerate(planned):
            found: Sequence[Result | Unscored]
            began = perf_counter()
            try:
                found = self._run(one)
            except PassTooLargeError as error:
                if len(one.rows) > 1:
                    self.budget_tokens = min(self.budget_tokens, max(1, one.tokens // 2))
                    return [ids for later in planned[number:] for ids in later.rows]
                found = [Unscored("out_of_memory", f"an input of {one.tokens} tokens did not fit alone: {error}")]
            finally:
                self.usage = self.usage.plus(calls=1, seconds=perf_counter() - began)
            self.usage = self.usage.plus(computed_tokens=one.tokens)
            results.update(zip(one.rows, found, strict=True))
        return []
