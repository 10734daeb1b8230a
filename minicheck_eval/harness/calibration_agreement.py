"""Holds a judge against people's labels: overall, group by group, as probabilities, and case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minicheck_eval.contract import Outcome
from minicheck_eval.harness.calibration_answers import Answer, judged_of, measurable
from minicheck_eval.harness.calibration_maps import FITS, MapFinding, try_map
from minicheck_eval.harness.calibration_measures import BINS, Estimate, Judged, bins_of, estimates
from minicheck_eval.harness.calibration_thresholds import ThresholdFinding, find_threshold
from minicheck_eval.harness.statistics import Rate, rate

__all__ = ["Agreement", "Bin", "Group", "agreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """How far judge and people agree on some of the answers."""

    kind: str
    name: str
    count: int
    documents: int
    measures: Mapping[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """Return the group as JSON-ready values."""
        measures = {name: estimate.to_json() for name, estimate in self.measures.items()}
        return {
            "kind": self.kind,
            "name": self.name,
            "count": self.count,
            "documents": self.documents,
            "measures": measures,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """A point of the reliability diagram: what the judge said, and how often people agreed."""

    low: float
    high: float
    mean_support: float
    supported: Rate

    def to_json(self) -> dict[str, Any]:
        """Return the bin as JSON-ready values."""
        return {
            "low": self.low,
            "high": self.high,
            "mean_support": self.mean_support,
            "supported": self.supported.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far a judge and people agree."""

    count: int
    documents: int
    unjudged: int
    """Labelled answers without a verdict or with a support that is not fully known: they are not in the numbers."""
    confusion: Mapping[str, int]
    measures: Mapping[str, Estimate]
    groups: tuple[Group, ...]
    bins: tuple[Bin, ...]
    threshold: ThresholdFinding | None
    no_threshold: str
    """Why there is no finding about the threshold."""
    maps: Mapping[str, MapFinding | None]
    disagreements: tuple[Answer, ...]
    """The most confident first."""

    def to_json(self) -> dict[str, Any]:
        """Return the agreement as JSON-ready values."""
        return {
            "count": self.count,
            "documents": self.documents,
            "unjudged": self.unjudged,
            "confusion": dict(self.confusion),
            "measures": {name: estimate.to_json() for name, estimate in self.measures.items()},
            "groups": [group.to_json() for group in self.groups],
            "reliability": [one.to_json() for one in self.bins],
            "threshold": self.threshold and self.threshold.to_json(),
            "maps": {kind: found and found.to_json() for kind, found in self.maps.items()},
            "disagreements": [
                {"id": a.id, "slice": a.groups["slice"], "label": a.label, "support": a.support, "answer": a.text}
                for a in self.disagreements
            ],
        }


def agreement(answers: Sequence[Answer], *, threshold: float, seed: int) -> Agreement | None:
    """Hold verdicts against labels; None where no answer has both."""
    rows = [answer for answer in answers if measurable(answer)]
    if not rows:
        return None
    judged = judged_of(rows)
    wrong = [row for row in rows if (row.outcome is Outcome.PASS) is not row.label]
    found, reason = _threshold(judged, threshold, seed)
    counts = Counter((bool(label), bool(passed)) for label, passed in zip(judged.labels, judged.passed, strict=True))
    return Agreement(
        count=len(rows),
        documents=judged.cluster_count,
        unjudged=sum(answer.label is not None for answer in answers) - len(rows),
        confusion={
            "supported_passed": counts[True, True],
            "supported_failed": counts[True, False],
            "unsupported_passed": counts[False, True],
            "unsupported_failed": counts[False, False],
        },
        measures=estimates(judged, seed=seed),
        groups=tuple(_groups(rows, judged, seed)),
        bins=_bins(judged),
        threshold=found,
        no_threshold=reason,
        maps={kind: try_map(judged, kind, seed=seed) for kind in FITS},
        disagreements=tuple(sorted(wrong, key=lambda row: -abs((row.support or 0.0) - threshold))),
    )


def _threshold(judged: Judged, threshold: float, seed: int) -> tuple[ThresholdFinding | None, str]:
    if ((judged.supports > threshold) != judged.passed).any():
        return None, f"the verdicts do not come from the support and the one threshold {threshold}"
    found = find_threshold(judged, threshold, seed=seed)
    return found, "" if found else "both labels are needed, on several documents"


def _groups(rows: Sequence[Answer], judged: Judged, seed: int) -> list[Group]:
    groups = []
    for kind in dict.fromkeys(kind for row in rows for kind in row.groups):
        names = np.array([row.groups.get(kind, "") for row in rows])
        distinct = sorted(set(names.tolist()) - {""})
        # Of a trait that all answers share the whole says the same.
        for name in distinct if len(distinct) > 1 or kind == "slice" else []:
            part = judged.only(names == name)
            groups.append(
                Group(
                    kind=kind,
                    name=name,
                    count=len(part.labels),
                    documents=part.cluster_count,
                    measures=estimates(part, seed=seed),
                )
            )
    return groups


def _bins(judged: Judged) -> tuple[Bin, ...]:
    bins = []
    for place, inside in enumerate(bins_of(judged.supports)):
        found = rate(int(judged.labels[inside].sum()), len(inside))
        if found is not None:
            mean = float(judged.supports[inside].mean())
            bins.append(Bin(low=place / BINS, high=(place + 1) / BINS, mean_support=mean, supported=found))
    return tuple(bins)
