"""What two runs tell about each other, as values: rates side by side, what flipped, and what makes them unlike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from minicheck_eval.counts import counted
from minicheck_eval.harness.sample_size import cases_for_drop, cases_for_paired_drop
from minicheck_eval.harness.statistics import (
    LEVEL,
    Difference,
    Rate,
    mcnemar,
    paired_difference,
    points,
    rate_in_words,
    unpaired_difference,
)

__all__ = [
    "Change",
    "ClaimEvidence",
    "Comparison",
    "DocumentGroup",
    "EvaluatorComparison",
    "PairCounts",
    "Side",
    "SliceComparison",
]

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs."""

    path: str
    judge: str
    judge_digest: str
    cases: str
    cases_sha256: str
    started_at: str

    def to_json(self) -> dict[str, Any]:
        """Return the run's provenance as JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEvidence:
    """A claim that explains a change, with the evidence that supports it most."""

    text: str
    support: float | None
    document: str | None
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A case whose outcome is another one; answer, feedback and claims are those of the run."""

    id: str
    slice: str
    question: str
    answer: str
    before: str
    """The outcome in the baseline."""
    after: str
    score_before: float | None
    score_after: float | None
    feedback: str
    claims: tuple[ClaimEvidence, ...]
    """Those that did not pass; else the weakest."""
    documents: tuple[str, ...]
    """The names of its documents."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON-ready values."""
        return {**asdict(self), "claims": [asdict(claim) for claim in self.claims], "documents": list(self.documents)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentGroup:
    """Changed cases that share a document, and so perhaps one cause."""

    document: str | None
    """None: these cases have no document."""
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """How the cases came out that were judged in both runs."""

    both: int = 0
    gained: int = 0
    """They newly pass."""
    lost: int = 0
    """They newly fail."""
    neither: int = 0

    @property
    def n(self) -> int:
        """Count the pairs."""
        return self.both + self.gained + self.lost + self.neither


@dataclass(frozen=True, kw_only=True)
class SliceComparison:
    """A slice in both runs; rates are over what each run judged, None over nothing."""

    name: str
    run: Rate | None
    baseline: Rate | None
    pairs: PairCounts

    @property
    def paired(self) -> bool:
        """Tell whether the cases are mostly the same, so that each is compared with itself."""
        most = max((found.n for found in (self.run, self.baseline) if found), default=0)
        return 0 < most <= 2 * self.pairs.n

    @cached_property
    def difference(self) -> Difference | None:
        """Return the run's rate less the baseline's: of the pairs, else of all; None where one has no rate."""
        pairs = self.pairs
        if self.paired:
            return paired_difference(
                both=pairs.both, first_only=pairs.gained, second_only=pairs.lost, neither=pairs.neither
            )
        if self.run is None or self.baseline is None:
            return None
        return unpaired_difference(self.run, self.baseline)

    @cached_property
    def p_value(self) -> float | None:
        """Return the p of the exact McNemar test; None where the cases are not the same."""
        return mcnemar(gained=self.pairs.gained, lost=self.pairs.lost) if self.paired else None

    @property
    def visible(self) -> bool:
        """Tell whether the rates differ by more than chance would explain."""
        if self.p_value is not None:
            return self.p_value < LEVEL
        return self.difference is not None and not self.difference.low <= 0 <= self.difference.high

    @property
    def dropped(self) -> bool:
        """Tell whether a drop can be seen."""
        return self.visible and self.difference is not None and self.difference.value < 0

    @cached_property
    def cases_to_show(self) -> int | None:
        """Return how many cases would mostly show a drop of this size; None where there is none, or it is seen."""
        if self.visible or self.difference is None or self.difference.value >= 0:
            return None
        if self.paired:
            return cases_for_paired_drop(self.pairs.lost / self.pairs.n, self.pairs.gained / self.pairs.n)
        if self.run is None or self.baseline is None:
            return None
        return cases_for_drop(self.baseline.value, self.run.value)

    @property
    def words(self) -> str:
        """Say what was found, with its arithmetic."""
        now, before = ("no rate" if found is None else rate_in_words(found) for found in (self.run, self.baseline))
        parts = [f"{now}, in the baseline {before}"]
        if self.difference is None:
            return f"{parts[0]}; nothing can be compared"
        if self.p_value is not None:
            flips = f"{self.pairs.lost} newly failing and {self.pairs.gained} newly passing"
            parts.append(
                f"of {counted(self.pairs.n, 'case')} judged in both {flips}, exact McNemar p = {self.p_value:.2g}"
            )
        else:
            parts.append("compared as different cases")
        parts.append(f"difference {points(self.difference)}")
        if self.visible:
            parts.append("a drop" if self.dropped else "a gain")
        elif self.difference.value < 0:
            parts.append("not a drop one can see")
            if self.cases_to_show is not None:
                parts[-1] += f": about {counted(self.cases_to_show, 'case')} would show one of this size"
        else:
            parts.append("no drop")
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the slice as JSON-ready values."""
        return {
            "run": None if self.run is None else self.run.to_json(),
            "baseline": None if self.baseline is None else self.baseline.to_json(),
            "paired": self.paired,
            "pairs": asdict(self.pairs),
            "difference": None if self.difference is None else self.difference.to_json(),
            "p_value": self.p_value,
            "visible": self.visible,
            "dropped": self.dropped,
            "cases_to_show": self.cases_to_show,
            "words": self.words,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorComparison:
    """One evaluator in both runs."""

    name: str
    overall: SliceComparison
    slices: Mapping[str, SliceComparison]
    """In the order of their names."""
    newly_failing: tuple[str, ...]
    """Ids, in the order of the run."""
    newly_passing: tuple[str, ...]
    no_verdict_now: tuple[str, ...]
    """Judged in the baseline, and not in the run."""
    changes: Mapping[str, Change]
    """By id; of each kind of change only the first are kept."""
    groups: tuple[DocumentGroup, ...]
    """The newly failing cases by the document they share, the largest group first."""

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready values."""
        return {
            "overall": self.overall.to_json(),
            "slices": {name: part.to_json() for name, part in self.slices.items()},
            "newly_failing": list(self.newly_failing),
            "newly_passing": list(self.newly_passing),
            "no_verdict_now": list(self.no_verdict_now),
            "changes": {name: change.to_json() for name, change in self.changes.items()},
            "groups": [{"document": group.document, "ids": list(group.ids)} for group in self.groups],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run beside its baseline."""

    run: Side
    baseline: Side
    warnings: tuple[str, ...]
    """What makes the two unlike, beside what is compared."""
    evaluators: tuple[EvaluatorComparison, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready values."""
        return {
            "schema": SCHEMA,
            "run": self.run.to_json(),
            "baseline": self.baseline.to_json(),
            "warnings": list(self.warnings),
            "evaluators": {found.name: found.to_json() for found in self.evaluators},
        }
