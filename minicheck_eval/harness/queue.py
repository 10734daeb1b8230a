"""The cases of a run in the order in which they are judged: those that share evidence meet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.case import Case
from minicheck_eval.identity import digest

__all__ = ["Queue"]

DIGITS = 32
"""Of the digest of the evidence: enough to bring together what is the same."""


class Queue:
    """Batches of cases; two with the same id raise `BadInput`.

    What shares a batch depends on what the cases are, and not on how the file is sorted.
    """

    def __init__(self, cases: Iterable[Case], batch_cases: int) -> None:
        self.ids: list[str] = []
        """In the order of the file."""
        self._cases = cases if isinstance(cases, Sequence) else tuple(cases)
        self._batch_cases = batch_cases
        keys = []
        for case in self._cases:
            self.ids.append(case.id)
            keys.append(digest([document.text for document in case.documents])[:DIGITS] + case.id)
        if len(set(self.ids)) < len(self.ids):
            raise BadInput("two cases have the same id", hint="give every case an id of its own")
        self._order = sorted(range(len(keys)), key=keys.__getitem__)

    def without(self, done: Collection[str]) -> Iterator[list[Case]]:
        """Read batch after batch, without the cases whose ids are `done`.

        Batches begin at fixed places, so that a resumed run mostly asks about the same neighbours together.
        """
        for start in range(0, len(self._order), self._batch_cases):
            places = self._order[start : start + self._batch_cases]
            if batch := [self._cases[place] for place in places if self.ids[place] not in done]:
                yield batch
