"""Gates by evaluator and slice: least rates, largest drops from a baseline, and cases that must never break."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from minicheck_eval.contract import Outcome
from minicheck_eval.counts import counted
from minicheck_eval.harness.compare import compare
from minicheck_eval.harness.comparison import Comparison, SliceComparison
from minicheck_eval.harness.gates import Decision, Finding, Status, asked_for, decide
from minicheck_eval.harness.journal import read_records
from minicheck_eval.harness.sample_size import cases_for_lower_bound
from minicheck_eval.harness.statistics import percent, rate_in_words
from minicheck_eval.harness.summary import EvaluatorSummary, Summary, Tally

__all__ = ["EvaluatorGates", "Gates", "SliceRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRule:
    """What is asked of one slice of one evaluator."""

    min_rate: float | None = None
    on: Literal["rate", "lower-bound"] = "rate"
    """What `min_rate` is the least of: the rate, or the lower bound of its Wilson interval."""
    min_judged: int = 1
    max_drop: float | None = None
    """From the baseline's rate."""
    max_invalid_rate: float = 0.0
    max_error_rate: float = 0.0
    max_unanswered_rate: float = 0.0
    """Of cases in scope with nothing to check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorGates:
    """What is asked of one evaluator; keys are those of `SliceRule`."""

    every: Mapping[str, Any] = field(default_factory=dict)
    never_break: tuple[str, ...] = ()
    slices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What is asked of a run; the nearest that says something counts."""

    source: str
    every: Mapping[str, Any] = field(default_factory=dict)
    never_break: tuple[str, ...] = ()
    evaluators: Mapping[str, EvaluatorGates] = field(default_factory=dict)
    undecided_passes: bool = False
    baseline: Path | None = None

    @property
    def asks(self) -> bool:
        """Tell whether anything can fail."""
        lists = (self.never_break, *(own.never_break for own in self.evaluators.values()))
        return any(lists) or any("min_rate" in asked or "max_drop" in asked for asked in self._tables())

    @property
    def needs_baseline(self) -> bool:
        """Tell whether a run to compare with is needed."""
        return any("max_drop" in asked for asked in self._tables())

    def rule(self, evaluator: str, part: str) -> SliceRule:
        """Return what is asked of a slice."""
        own = self.evaluators.get(evaluator, EvaluatorGates())
        return SliceRule(**{**self.every, **own.every, **own.slices.get(part, {})})

    def decide(self, summary: Summary, directory: Path) -> Decision:
        """Decide the run that a folder holds."""
        needed = self.baseline is not None and self.needs_baseline
        comparison = compare(directory, self.baseline) if needed and self.baseline is not None else None
        return decide(summary, self._findings(summary, directory, comparison), self, comparison)

    def to_json(self) -> dict[str, Any]:
        """Return the rules as JSON-ready values."""
        return {**asdict(self), "baseline": None if self.baseline is None else str(self.baseline)}

    def _tables(self) -> Iterator[Mapping[str, Any]]:
        yield self.every
        for own in self.evaluators.values():
            yield own.every
            yield from own.slices.values()

    def _findings(self, summary: Summary, directory: Path, comparison: Comparison | None) -> Iterator[Finding]:
        compared = {found.name: found.slices for found in comparison.evaluators} if comparison else {}
        for evaluator in summary.evaluators:
            name = evaluator.name
            for part, tally in evaluator.slices.items():
                rule, beside = self.rule(name, part), compared.get(name, {}).get(part)
                yield from (
                    Finding(status, f"{name}, {part}: {why}", name, part, rule.min_rate)
                    for status, why in _slice(tally, rule, beside)
                )
        there = {evaluator.name: evaluator for evaluator in summary.evaluators}
        # What is gone, a slice or all that an evaluator said, would pass unseen.
        for name, slices in compared.items():
            for part, other in slices.items():
                gone = name not in there or part not in there[name].slices
                if gone and other.baseline and self.rule(name, part).max_drop is not None:
                    words = f"{name}, {part}: the baseline has such cases, the run has none"
                    yield Finding("undecided", words, name, part)
        yield from self._absent(there)
        yield from self._broken(directory)

    def _absent(self, there: Mapping[str, EvaluatorSummary]) -> Iterator[Finding]:
        for name, own in self.evaluators.items():
            if name not in there:
                words = f"{name}: {self.source} has a gate for it, and the run has no such evaluator"
                yield Finding("undecided", words, name)
                continue
            for part in own.slices:
                if part not in there[name].slices:
                    words = f"{name}, {part}: {self.source} has a gate for it, and no case is in this slice"
                    yield Finding("undecided", words, name, part)

    def _broken(self, directory: Path) -> Iterator[Finding]:
        """Find the cases that must never break: each has to be there, and to pass."""
        wanted = {(case, name) for name, own in self.evaluators.items() for case in own.never_break}
        everywhere = set(self.never_break)
        left = everywhere | {case for case, _ in wanted}
        if not left:
            return
        total, missing = len(left), set(left)
        for record in read_records(directory):
            if record["id"] not in left:
                continue
            missing.discard(record["id"])
            verdicts = record["verdicts"]
            names = verdicts.keys() if record["id"] in everywhere else ()
            if record["id"] in everywhere and not verdicts:
                words = f"the case {record['id']!a} must never break, and nothing was asked about it"
                yield Finding("could_not_judge", words)
            for name in sorted({*names, *(name for case, name in wanted if case == record["id"])}):
                yield from _never(record["id"], name, verdicts.get(name))
        for case in sorted(missing):
            yield Finding("could_not_judge", f"the case {case!a} must never break, and is not in the run")
        if not missing:
            there = counted(total, "case that must never break is", "cases that must never break are")
            yield Finding("passed", f"{there} in the run")


def _never(case: str, name: str, verdict: Mapping[str, Any] | None) -> Iterator[Finding]:
    must = f"{name}: the case {case!a} must never break"
    if verdict is None:
        yield Finding("could_not_judge", f"{must}, and has no verdict", name)
    elif verdict["outcome"] in (Outcome.INVALID, Outcome.ERROR):
        yield Finding("could_not_judge", f"{must}, and has no verdict ({verdict['outcome']})", name)
    elif verdict["outcome"] != Outcome.PASS:
        yield Finding("failed", f"{must}, and did ({verdict['outcome']})", name)


def _slice(tally: Tally, rule: SliceRule, beside: SliceComparison | None) -> Iterator[tuple[Status, str]]:
    limits: tuple[tuple[Status, str, int, float], ...] = (
        ("could_not_judge", "invalid", tally.invalid, rule.max_invalid_rate),
        ("could_not_judge", "in error", tally.error, rule.max_error_rate),
        ("undecided", "in scope with nothing to check", tally.unanswered, rule.max_unanswered_rate),
    )
    cases = counted(tally.total, "case")
    for status, what, count, most in limits:
        # Counts are compared, for a quotient may round to the wrong side of the limit.
        if count > most * tally.total + 1e-9:
            yield status, f"{count} of {cases} {what}, allowed: {asked_for(most)}"
    if rule.min_rate is None and rule.max_drop is None:
        yield "passed", "no rate is asked for"
    elif tally.judged < rule.min_judged:
        yield "undecided", f"{tally.judged} of {cases} with a verdict, needed: {rule.min_judged}"
    else:
        if rule.min_rate is not None:
            yield _rate(tally, rule.min_rate, rule.on)
        if rule.max_drop is not None:
            yield _drop(beside, rule.max_drop)


def _rate(tally: Tally, least: float, on: str) -> tuple[Status, str]:
    found = tally.rate
    if found is None:
        return "undecided", "there is no rate over nothing"
    words = f"{rate_in_words(found)}, asked for {asked_for(least)}"
    if found.value < least:
        return "failed", words
    if on == "rate":
        return "passed", words
    words += f" as the lower bound, which is {percent(found.low)}"
    if found.low >= least:
        return "passed", words
    needed = cases_for_lower_bound(found.value, least)
    more = "" if needed is None else f": at this rate {counted(needed, 'case')} would"
    return "undecided", f"{words}; too few cases to tell{more}"


def _drop(found: SliceComparison | None, most: float) -> tuple[Status, str]:
    if found is None or found.difference is None:
        return "undecided", "there is nothing in the baseline to compare with"
    words = f"{found.words}, allowed is a drop of {counted(round(most * 100, 6), 'point')}"
    if found.difference.value >= -most - 1e-9:
        return "passed", words
    return ("failed" if found.dropped and found.difference.high < -most else "undecided"), words
