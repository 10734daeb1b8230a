"""Compare a run with a baseline, case by case: which rates moved, what flipped, and on what evidence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicheck_eval.contract import Outcome
from minicheck_eval.harness.baseline import baseline_header, run_header
from minicheck_eval.harness.changes import Before, change_of, groups_of
from minicheck_eval.harness.comparison import (
    Change,
    Comparison,
    EvaluatorComparison,
    PairCounts,
    Side,
    SliceComparison,
)
from minicheck_eval.harness.differences import Overlap, warnings_of
from minicheck_eval.harness.journal import read_records
from minicheck_eval.harness.statistics import rate

__all__ = ["Change", "Comparison", "EvaluatorComparison", "SliceComparison", "compare"]

MOST_CHANGES = 200
"""Of each kind of change so many are kept with their evidence; of all of them the ids."""
JUDGED = (Outcome.PASS, Outcome.FAIL)


@dataclass(slots=True)
class _Part:
    """What is counted of a slice."""

    run: Counter[str] = field(default_factory=Counter)
    baseline: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(before, after) of the cases in both."""

    def add(self, other: _Part) -> None:
        self.run.update(other.run)
        self.baseline.update(other.baseline)
        self.pairs.update(other.pairs)

    def compared(self, name: str) -> SliceComparison:
        good, bad = JUDGED
        now, then = (rate(count[good], count[good] + count[bad]) for count in (self.run, self.baseline))
        pairs = PairCounts(
            both=self.pairs[good, good],
            gained=self.pairs[bad, good],
            lost=self.pairs[good, bad],
            neither=self.pairs[bad, bad],
        )
        return SliceComparison(name=name, run=now, baseline=then, pairs=pairs)


@dataclass(slots=True)
class _Found:
    """What is collected of an evaluator."""

    parts: dict[str, _Part] = field(default_factory=dict)
    flipped: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)

    def part(self, name: str) -> _Part:
        if name not in self.parts:
            self.parts[name] = _Part()
        return self.parts[name]

    def flip(self, record: Mapping[str, Any], name: str, before: Before, kind: tuple[str, str]) -> None:
        ids = self.flipped.setdefault(kind, [])
        ids.append(record["id"])
        if len(ids) <= MOST_CHANGES:
            self.changes[record["id"]] = change_of(record, name, before)

    def compared(self, name: str) -> EvaluatorComparison:
        overall = _Part()
        for part in self.parts.values():
            overall.add(part)
        good, bad = JUDGED
        failing = self.flipped.get((good, bad), [])
        gone = [*self.flipped.get((good, ""), []), *self.flipped.get((bad, ""), [])]
        return EvaluatorComparison(
            name=name,
            overall=overall.compared("overall"),
            slices={part: self.parts[part].compared(part) for part in sorted(self.parts)},
            newly_failing=tuple(failing),
            newly_passing=tuple(self.flipped.get((bad, good), [])),
            no_verdict_now=tuple(gone),
            changes=self.changes,
            groups=groups_of([self.changes[case] for case in failing if case in self.changes]),
        )


def compare(run: Path, baseline: Path) -> Comparison:
    """Compare the runs that two folders hold; cases are matched by id."""
    header, beside = run_header(run), baseline_header(baseline)
    found: defaultdict[str, _Found] = defaultdict(_Found)
    then = {record["id"]: _remember(record, found) for record in read_records(baseline)}
    overlap = Overlap(baseline=len(then))
    for record in read_records(run):
        before = then.get(record["id"])
        overlap.add(record, before)
        for name, verdict in record["verdicts"].items():
            _count(found[name], record, name, verdict["outcome"], before)
    evaluators = tuple(found[name].compared(name) for name in sorted(found))
    return Comparison(
        run=_side(run, header),
        baseline=_side(baseline, beside),
        warnings=tuple(warnings_of(header, beside, overlap, evaluators)),
        evaluators=evaluators,
    )


def _remember(record: Mapping[str, Any], found: defaultdict[str, _Found]) -> Before:
    for name, verdict in record["verdicts"].items():
        found[name].part(record["slice"]).baseline[verdict["outcome"]] += 1
    return Before.of(record)


def _count(found: _Found, record: Mapping[str, Any], name: str, after: str, before: Before | None) -> None:
    part = found.part(record["slice"])
    part.run[after] += 1
    then = None if before is None else before.outcome(name)
    if before is None or then is None:
        return
    part.pairs[then, after] += 1
    if then in JUDGED and after != then:
        found.flip(record, name, before, (then, after if after in JUDGED else ""))


def _side(folder: Path, header: Mapping[str, Any]) -> Side:
    judge, cases = header.get("judge", {}), header.get("cases", {})
    return Side(
        path=str(folder),
        judge=judge.get("judge", ""),
        judge_digest=header.get("judge_digest", ""),
        cases=cases.get("path", ""),
        cases_sha256=cases.get("sha256", ""),
        started_at=header.get("started_at", ""),
    )
