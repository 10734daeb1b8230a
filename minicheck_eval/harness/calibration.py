"""Calibration: what a judge's verdicts and supports are worth, held against itself and against people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicheck_eval.calibration import Calibration, binding
from minicheck_eval.contract import Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.harness.calibration_agreement import Agreement, agreement
from minicheck_eval.harness.calibration_answers import (
    Answer,
    answer_of,
    check_any_judged,
    count_outcomes,
    judged_of,
    measurable,
)
from minicheck_eval.harness.calibration_maps import FITS
from minicheck_eval.harness.calibration_rounds import Round, RoundFinding, compare_rounds
from minicheck_eval.harness.journal import HEADER, read_header, read_records
from minicheck_eval.harness.statistics import Rate, rate

__all__ = ["CalibrationReport", "calibration_of", "examine", "examine_run"]

SCHEMA = 1
SAME_QUESTION = ("repeat", "batch", "order")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """All that was found about a judge."""

    judge: Mapping[str, Any]
    cases: Mapping[str, Any]
    seed: int
    answers: tuple[Answer, ...]
    outcomes: Mapping[str, int]
    unclear: Rate | None
    """Claims to which the judge said neither yes nor no, of all that got an answer."""
    rounds: tuple[RoundFinding, ...]
    agreement: Agreement | None
    """None where no label can be held against a verdict."""
    usage: Mapping[str, Mapping[str, Any]]
    """What each judge was asked and what that cost, by name; empty where none was asked."""

    @property
    def no_agreement(self) -> str:
        """Say why it is not known how far people agree, where it is not."""
        if all(answer.label is None for answer in self.answers):
            return "no answer has a label"
        return "no labelled answer has a verdict whose support is fully known"

    @property
    def is_graded(self) -> bool:
        """Tell whether the judge gives probabilities, and not a bare yes or no."""
        return any(answer.support not in (None, 0.0, 1.0) for answer in self.answers)

    @property
    def noise(self) -> float | None:
        """Return the largest change of a support when nothing but the batch, the order or the time was another."""
        changes = [r.largest_change for r in self.rounds if r.kind in SAME_QUESTION and r.largest_change is not None]
        return max(changes, default=None)

    @property
    def near(self) -> int | None:
        """Count the answers whose support is so near to the threshold that the noise could turn them.

        Of a bare yes or no none is nearer than another, and a rubric does not decide by the threshold: None.
        """
        if self.noise is None or not self.is_graded:
            return None
        threshold: float = self.judge["threshold"]
        known = [
            (a.support, a.outcome is Outcome.PASS) for a in self.answers if a.outcome.judged and a.support is not None
        ]
        if any((support > threshold) is not passed for support, passed in known):
            return None
        return sum(abs(support - threshold) <= self.noise for support, _ in known)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        said = Counter(words for answer in self.answers for words in answer.unclear)
        return {
            "schema": SCHEMA,
            "judge": dict(self.judge),
            "cases": dict(self.cases),
            "seed": self.seed,
            "outcomes": dict(self.outcomes),
            "errors": dict(Counter(answer.error for answer in self.answers if answer.error).most_common()),
            "unclear": {"claims": self.unclear and self.unclear.to_json(), "said": dict(said.most_common())},
            "rounds": [found.to_json() for found in self.rounds],
            "graded": self.is_graded,
            "noise": self.noise,
            "near_threshold": self.near,
            "agreement": self.agreement and self.agreement.to_json(),
            "usage": {name: dict(usage) for name, usage in self.usage.items()},
        }


def examine(
    rounds: Sequence[Round],
    *,
    judge: Mapping[str, Any],
    cases: Mapping[str, Any],
    seed: int,
    usage: Mapping[str, Mapping[str, Any]] | None = None,
) -> CalibrationReport:
    """Hold rounds against the first of them, and the first against the labels."""
    first = rounds[0].answers
    check_any_judged(first)
    asked = sum(a.claims for a in first if a.outcome is not Outcome.NOT_CHECKABLE)
    return CalibrationReport(
        judge=judge,
        cases=cases,
        seed=seed,
        answers=first,
        outcomes=count_outcomes(first),
        unclear=rate(sum(len(answer.unclear) for answer in first), asked),
        rounds=tuple(compare_rounds(rounds[0], other) for other in rounds[1:]),
        agreement=agreement(first, threshold=judge["threshold"], seed=seed),
        usage=usage or {},
    )


def examine_run(directory: Path, evaluator: str, *, seed: int) -> CalibrationReport:
    """Hold the verdicts of a run against its labels; no judge is asked."""
    header = read_header(directory)
    if header is None:
        raise BadInput(f"{directory} has no {HEADER}", hint="name a file of cases, or the folder of a run")
    records = [record for record in read_records(directory) if evaluator in record["verdicts"]]
    if not records:
        raise BadInput(f"{directory} has no verdicts of {evaluator}", hint="choose another --evaluator")
    answers = tuple(answer_of(record, record["verdicts"][evaluator]) for record in records)
    first = Round(kind="first", name="first", answers=answers)
    return examine([first], judge=header["judges"][evaluator], cases=header["cases"], seed=seed)


def calibration_of(report: CalibrationReport, kind: str | None) -> Calibration | None:
    """Return what can be used for this judge from now on; None where nothing is better than what it has.

    Another threshold, and with `kind` a map of that kind, is used only where it is better beyond noise; the map is
    then fitted to all answers that can be measured.
    """
    found = report.agreement
    if found is None or found.threshold is None:
        reason = report.no_agreement if found is None else found.no_threshold
        raise BadInput(f"nothing can be fitted: {reason}", hint="give both labels, on several documents")
    if report.judge.get("calibration") or report.judge.get("fallback"):
        raise BadInput("the judge has a calibration or a fallback", hint="calibrate each judge alone, as it is")
    better = found.threshold.is_better
    threshold = found.threshold.best if better else found.threshold.current
    support_map = None
    tried = found.maps.get(kind or "")
    if kind is not None:
        judged = judged_of(filter(measurable, report.answers))
        support_map = FITS[kind](judged.supports, judged.labels)
        if support_map is None:
            raise BadInput(f"no {kind} map can be fitted: more support does not mean more often supported here")
        support_map = support_map if tried is not None and tried.is_better else None
    if support_map is not None:
        threshold = support_map(threshold)
    elif not better:
        return None
    return Calibration(
        judge=binding(report.judge),
        threshold=threshold,
        map=support_map,
        cases={
            "sha256": report.cases.get("sha256"),
            "measured": found.count,
            "documents": found.documents,
            "threshold": found.threshold.to_json(),
            "map": tried and tried.to_json(),
        },
    )
