"""The gate: the rule that turns a summary into a decision, with reasons that can be checked by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from minicheck_eval.counts import counted
from minicheck_eval.harness.comparison import Comparison
from minicheck_eval.harness.statistics import percent, rate_in_words
from minicheck_eval.harness.summary import EvaluatorSummary, Summary

__all__ = [
    "Decision",
    "Finding",
    "GateRule",
    "Rule",
    "Status",
    "asked_for",
    "check",
    "decide",
    "explaining",
    "in_words",
    "percent",
    "rate_in_words",
]

Status = Literal["passed", "failed", "undecided", "could_not_judge"]

BEST_FIRST: tuple[Status, ...] = ("passed", "undecided", "failed", "could_not_judge")
TOLD_FIRST: tuple[Status, ...] = ("failed", "could_not_judge", "undecided", "passed")
EXIT_CODES: dict[Status, int] = {"passed": 0, "undecided": 1, "failed": 1, "could_not_judge": 3}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found."""

    status: Status
    words: str
    """The arithmetic."""
    evaluator: str = ""
    """Empty where the rule is about the whole run."""
    slice: str = ""
    """Empty where the rule is about all slices."""
    asked: float | None = None
    """The least pass rate, where one is asked of the slice."""


class HasStatus(Protocol):
    """A finding, in whatever form."""

    @property
    def status(self) -> Status:
        """Return what was found."""
        ...


Found = TypeVar("Found", bound=HasStatus)


class Rule(Protocol):
    """What is asked of a run, in whatever form."""

    @property
    def undecided_passes(self) -> bool:
        """Tell whether an undecided run ends with exit code 0."""
        ...

    @property
    def baseline(self) -> Path | None:
        """Return the folder of the run to compare with."""
        ...

    def decide(self, summary: Summary, directory: Path) -> Decision:
        """Decide the run that a folder holds."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the rule as JSON-ready values."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """What is asked of a run, in short: the same of every slice."""

    min_rate: float = 1.0
    """The least pass rate of every slice."""
    max_unjudged: int = 0
    """The most cases that may be invalid or in error, and the most in scope whose answer has nothing to check."""
    undecided_passes: bool = False
    baseline: Path | None = None
    """Shown beside the run; it decides nothing here."""

    def decide(self, summary: Summary, directory: Path) -> Decision:  # noqa: ARG002 - other rules look into the folder
        """Decide by the counts alone."""
        return check(summary, self)

    def to_json(self) -> dict[str, Any]:
        """Return the rule as JSON-ready values."""
        return {**asdict(self), "baseline": None if self.baseline is None else str(self.baseline)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a run, and why."""

    status: Status
    rule: Rule
    findings: tuple[Finding, ...]
    """What each rule found, those that are kept too."""
    comparison: Comparison | None = None
    """With the baseline, where the rule asked for one."""

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """Return the findings that explain the status, what failed first."""
        return tuple(found for alike in explaining(self.findings).values() for found in alike)

    @property
    def exit_code(self) -> int:
        """Return the exit code of a program that ran this gate."""
        return 0 if self.status == "undecided" and self.rule.undecided_passes else EXIT_CODES[self.status]

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON-ready values."""
        return {
            "status": self.status,
            "exit_code": self.exit_code,
            "reasons": [reason.words for reason in self.reasons],
            "findings": [asdict(finding) for finding in self.findings],
            "rule": self.rule.to_json(),
        }


def check(summary: Summary, rule: GateRule) -> Decision:
    """Apply a rule to a summary; the worst that is found anywhere decides."""
    return decide(summary, (found for evaluator in summary.evaluators for found in _findings(evaluator, rule)), rule)


def decide(summary: Summary, findings: Iterable[Finding], rule: Rule, comparison: Comparison | None = None) -> Decision:
    """Make a decision of findings: the worst decides."""
    found = list(findings)
    if not any(evaluator.overall.total for evaluator in summary.evaluators):
        found = [Finding("could_not_judge", "there is no case with a verdict")]
    status = max((finding.status for finding in found), key=BEST_FIRST.index)
    return Decision(status=status, rule=rule, findings=tuple(found), comparison=comparison)


def explaining(findings: Sequence[Found]) -> dict[Status, list[Found]]:
    """Return by status the findings that explain a decision, what failed first."""
    by_status = {status: [found for found in findings if found.status == status] for status in TOLD_FIRST}
    told = {status: alike for status, alike in by_status.items() if alike}
    if len(told) > 1:
        # What is in order explains nothing about a gate that did not pass.
        told.pop("passed", None)
    return told


def in_words(status: Status) -> str:
    """Write a status as people read it."""
    return status.replace("_", " ")


def asked_for(share: float) -> str:
    """Write a limit as it was given."""
    return f"{round(share * 100, 6):g} %"


def _findings(evaluator: EvaluatorSummary, rule: GateRule) -> Iterator[Finding]:
    name, overall = evaluator.name, evaluator.overall
    cases = counted(overall.total, "case")
    if overall.unjudged > rule.max_unjudged:
        counts = f"{overall.invalid} invalid + {overall.error} error = {overall.unjudged} of {cases}"
        yield Finding("could_not_judge", f"{name}: {counts} without a verdict, allowed: {rule.max_unjudged}", name)
    elif overall.judged == 0:
        if overall.unjudged:
            yield Finding("could_not_judge", f"{name}: none of {cases} has a verdict", name)
        else:
            yield Finding("undecided", f"{name}: none of {cases} can be checked", name)
    if overall.unanswered > rule.max_unjudged:
        counts = f"{overall.unanswered} of {cases} in scope with nothing to check"
        yield Finding("undecided", f"{name}: {counts}, allowed: {rule.max_unjudged}", name)
    for part, tally in evaluator.slices.items():
        found = tally.rate
        if found is None:
            yield Finding(
                "undecided",
                f"{name}, {part}: none of {counted(tally.total, 'case')} has a verdict, so there is no rate",
                name,
                part,
                rule.min_rate,
            )
            continue
        status: Status = "passed" if found.value >= rule.min_rate else "failed"
        words = f"{name}, {part}: {rate_in_words(found)}, asked for {asked_for(rule.min_rate)}"
        yield Finding(status, words, name, part, rule.min_rate)
