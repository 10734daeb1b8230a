"""What a run amounts to: counts, rates and coverage for each evaluator, overall and slice by slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from minicheck_eval.contract import Outcome
from minicheck_eval.harness.statistics import Rate, rate

__all__ = ["EvaluatorSummary", "Summary", "Tally", "summarise"]


UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often each outcome came."""

    passed: int = 0
    failed: int = 0
    invalid: int = 0
    error: int = 0
    not_checkable: int = 0
    unanswered: int = 0
    """Of those that cannot be checked, the cases in scope: there an answer was expected."""

    @property
    def judged(self) -> int:
        """Count the cases with a verdict."""
        return self.passed + self.failed

    @property
    def unjudged(self) -> int:
        """Count the cases that should have a verdict and have none."""
        return self.invalid + self.error

    @property
    def total(self) -> int:
        """Count all cases."""
        return self.judged + self.unjudged + self.not_checkable

    @property
    def rate(self) -> Rate | None:
        """Return the pass rate over what was judged; None over nothing."""
        return rate(self.passed, self.judged)

    @property
    def coverage(self) -> float | None:
        """Return the share that was judged; None of nothing."""
        return self.judged / self.total if self.total else None

    def to_json(self) -> dict[str, Any]:
        """Return the counts, and what follows from them, as JSON-ready values."""
        found = self.rate
        return {
            "pass": self.passed,
            "fail": self.failed,
            "invalid": self.invalid,
            "error": self.error,
            "not_checkable": self.not_checkable,
            "unanswered": self.unanswered,
            "total": self.total,
            "judged": self.judged,
            "coverage": self.coverage,
            "rate": None if found is None else found.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSummary:
    """What one evaluator found."""

    name: str
    overall: Tally
    slices: Mapping[str, Tally]
    """In the order of their names."""
    decided_by: Mapping[str, int] = field(default_factory=dict)
    """Where there is a fallback: how many verdicts each judge gave."""

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready values."""
        slices = {name: tally.to_json() for name, tally in self.slices.items()}
        return {"overall": self.overall.to_json(), "slices": slices, "decided_by": dict(self.decided_by)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What all evaluators found."""

    evaluators: tuple[EvaluatorSummary, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready values, evaluator by evaluator."""
        return {evaluator.name: evaluator.to_json() for evaluator in self.evaluators}


def summarise(records: Iterable[Mapping[str, Any]]) -> Summary:
    """Count the outcomes in a run's records."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    deciders: dict[str, Counter[str]] = {}
    for record in records:
        for name, verdict in record["verdicts"].items():
            count = counts.setdefault(name, {}).setdefault(record["slice"], Counter())
            outcome = Outcome(verdict["outcome"])
            count[outcome] += 1
            if outcome.judged and (decider := verdict.get("metadata", {}).get("decided_by")):
                deciders.setdefault(name, Counter())[decider] += 1
            count[UNANSWERED] += outcome is Outcome.NOT_CHECKABLE and record.get("in_scope", True)
    return Summary(evaluators=tuple(_evaluator(name, counts[name], deciders.get(name, {})) for name in sorted(counts)))


def _evaluator(name: str, slices: Mapping[str, Counter[str]], decided_by: Mapping[str, int]) -> EvaluatorSummary:
    overall: Counter[str] = Counter()
    for count in slices.values():
        overall.update(count)
    return EvaluatorSummary(
        name=name,
        overall=_tally(overall),
        slices={part: _tally(slices[part]) for part in sorted(slices)},
        decided_by=dict(sorted(decided_by.items())),
    )


def _tally(count: Counter[str]) -> Tally:
    return Tally(
        passed=count[Outcome.PASS],
        failed=count[Outcome.FAIL],
        invalid=count[Outcome.INVALID],
        error=count[Outcome.ERROR],
        not_checkable=count[Outcome.NOT_CHECKABLE],
        unanswered=count[UNANSWERED],
    )
