"""What went wrong in single cases: which claim failed, with its support and the best evidence there was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from minicheck_eval.contract import Outcome
from minicheck_eval.counts import counted
from minicheck_eval.reports.case_view import BAD, CaseResult, ClaimResult, VerdictResult, case_result

__all__ = ["Failure", "Failures", "Group", "failures"]

ENDED = {Outcome.FAIL: "failed", Outcome.INVALID: "got no usable answer", Outcome.ERROR: "got no answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A case that did not pass with one evaluator."""

    case: CaseResult
    verdict: VerdictResult

    @property
    def broken_part(self) -> str | None:
        """Return what broke where the case failed: retrieval or generation."""
        return self.case.broken_part if self.verdict.outcome is Outcome.FAIL else None

    @property
    def claims(self) -> tuple[ClaimResult, ...]:
        """Return the claims that did not pass."""
        return tuple(claim for claim in self.verdict.claims if claim.outcome is not Outcome.PASS)


@dataclass(slots=True, kw_only=True)
class Group:
    """The cases that one evaluator ended alike; only the first are kept, all are counted."""

    evaluator: str
    outcome: Outcome
    count: int = 0
    first: list[Failure] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Tell in words how many cases ended how."""
        return f"{counted(self.count, 'case')} {ENDED[self.outcome]}"


class Failures:
    """Groups the cases that did not pass by evaluator and outcome, and keeps the first `most` of each group."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._groups: dict[tuple[str, Outcome], Group] = {}

    def add(self, case: CaseResult) -> None:
        """Take a case."""
        for name, verdict in case.verdicts.items():
            outcome = verdict.outcome
            if outcome not in BAD:
                continue
            group = self._groups.setdefault((name, outcome), Group(evaluator=name, outcome=outcome))
            group.count += 1
            if len(group.first) < self._most:
                group.first.append(Failure(case=case, verdict=verdict))

    @property
    def groups(self) -> list[Group]:
        """Return the groups, by evaluator."""
        return sorted(self._groups.values(), key=lambda group: (group.evaluator, BAD.index(group.outcome)))


def failures(records: Iterable[Mapping[str, Any]], *, most: int) -> list[Group]:
    """Group the cases of a run that did not pass."""
    found = Failures(most=most)
    for record in records:
        # Most cases are good, and need not be looked at any further.
        if any(verdict["outcome"] in BAD for verdict in record["verdicts"].values()):
            found.add(case_result(record))
    return found.groups
