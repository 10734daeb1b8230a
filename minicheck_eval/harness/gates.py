"""The gate: the rule that turns a summary into a decision, with reasons that can be checked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from minicheck_eval.harness.statistics import Rate
from minicheck_eval.harness.summary import EvaluatorSummary, Summary

__all__ = ["Decision", "GateRule", "Status", "check", "percent", "rate_in_words"]

Status = Literal["passed", "failed", "undecided", "could_not_judge"]

BEST_FIRST: tuple[Status, ...] = ("passed", "undecided", "failed", "could_not_judge")
EXIT_CODES: dict[Status, int] = {"passed": 0, "undecided": 1, "failed": 1, "could_not_judge": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """What is asked of a run."""

    min_rate: float = 1.0
    """The least pass rate of every slice."""
    max_unjudged: int = 0
    """The most cases that may be invalid or in error, and the most in scope whose answer has nothing to check."""

    def to_json(self) -> dict[str, Any]:
        """Return the rule as JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a run, and why."""

    status: Status
    reasons: tuple[str, ...]
    rule: GateRule

    @property
    def exit_code(self) -> int:
        """Return the exit code of a program that ran this gate."""
        return EXIT_CODES[self.status]

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON-ready values."""
        return {"status": self.status, "reasons": list(self.reasons), "rule": self.rule.to_json()}


def check(summary: Summary, rule: GateRule) -> Decision:
    """Apply a rule to a summary; the worst that is found anywhere decides."""
    if not any(evaluator.overall.total for evaluator in summary.evaluators):
        return Decision(status="could_not_judge", reasons=("there is no case with a verdict",), rule=rule)
    found = [finding for evaluator in summary.evaluators for finding in _findings(evaluator, rule)]
    status = max((status for status, _ in found), key=BEST_FIRST.index)
    if status == "passed":
        return Decision(status=status, reasons=tuple(reason for _, reason in found), rule=rule)
    # What is in order explains nothing about a gate that did not pass.
    worst_first = sorted((f for f in found if f[0] != "passed"), key=lambda f: -BEST_FIRST.index(f[0]))
    return Decision(status=status, reasons=tuple(reason for _, reason in worst_first), rule=rule)


def percent(share: float) -> str:
    """Write a share as a percentage; only all of it is 100 %, and only nothing is 0 %."""
    value = round(share * 100, 1)
    if share < 1:
        value = min(value, 99.9)
    if share > 0:
        value = max(value, 0.1)
    return f"{value:.1f} %"


def rate_in_words(found: Rate) -> str:
    """Write a rate with its counts and its interval."""
    shares = f"{percent(found.value)} [{percent(found.low)}, {percent(found.high)}]"
    return f"{found.k} of {found.n} passed = {shares}"


def _findings(evaluator: EvaluatorSummary, rule: GateRule) -> Iterator[tuple[Status, str]]:
    name, overall = evaluator.name, evaluator.overall
    if overall.unjudged > rule.max_unjudged:
        counts = f"{overall.invalid} invalid + {overall.error} error = {overall.unjudged} of {overall.total} cases"
        yield "could_not_judge", f"{name}: {counts} have no verdict, allowed are {rule.max_unjudged}"
    elif overall.judged == 0:
        if overall.unjudged:
            yield "could_not_judge", f"{name}: none of {overall.total} cases has a verdict"
        else:
            yield "undecided", f"{name}: none of {overall.total} cases can be checked"
    if overall.unanswered > rule.max_unjudged:
        counts = f"{overall.unanswered} of {overall.total} cases are in scope and have nothing to check"
        yield "undecided", f"{name}: {counts}, allowed are {rule.max_unjudged}"
    for part, tally in evaluator.slices.items():
        found = tally.rate
        if found is None:
            yield "undecided", f"{name}, {part}: none of {tally.total} cases has a verdict, so there is no rate"
            continue
        status: Status = "passed" if found.value >= rule.min_rate else "failed"
        asked = f"{round(rule.min_rate * 100, 6):g} %"
        yield status, f"{name}, {part}: {rate_in_words(found)}, asked for {asked}"
