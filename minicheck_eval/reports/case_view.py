"""A case as every report shows it: its verdicts, its claims, and the best evidence for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from minicheck_eval.contract import Outcome
from minicheck_eval.evaluators.documents import find_recorded

__all__ = ["BAD", "STRICT", "CaseResult", "ClaimResult", "Evidence", "VerdictResult", "case_result"]

STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True)
BAD = (Outcome.FAIL, Outcome.INVALID, Outcome.ERROR)
WORST_FIRST = (*reversed(BAD), Outcome.NOT_CHECKABLE, Outcome.PASS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The chunk that supports a claim most."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    place: int
    """Which of the case's documents, from 0."""
    start: int
    """Where the chunk begins in the document, in Unicode code points."""
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """One claim of an answer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: str
    start: int | None
    """Where the claim begins in the answer, in Unicode code points."""
    end: int | None
    outcome: Outcome
    support: float | None
    """P(supported) by the best evidence; none where there is no number."""
    why: str
    """Why there is no verdict, where there is none."""
    evidence: Evidence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictResult:
    """What one evaluator said."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    outcome: Outcome
    score: float | None
    feedback: str
    threshold: float | None
    """Above it a claim is supported."""
    claims: tuple[ClaimResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case and all verdicts on it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    id: str
    slice: str
    question: str
    answer: str
    documents: tuple[str, ...]
    """The names of the documents: their ids, or their places from 0."""
    label: bool | None
    """What a person said: is the answer supported?"""
    date: str | None
    broken_part: str | None
    """What broke in a case that failed: retrieval or generation."""
    verdicts: Mapping[str, VerdictResult]
    """By evaluator."""

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of all evaluators."""
        return min((verdict.outcome for verdict in self.verdicts.values()), key=WORST_FIRST.index)

    @property
    def bad(self) -> bool:
        """Tell whether any evaluator failed the case or could not judge it."""
        return any(verdict.outcome in BAD for verdict in self.verdicts.values())


def case_result(record: Mapping[str, Any]) -> CaseResult:
    """Read the record of a case."""
    documents = record.get("documents") or ()
    return CaseResult(
        id=record["id"],
        slice=record["slice"],
        question=record.get("question") or "",
        answer=record.get("answer") or "",
        documents=tuple(str(place) if d["id"] is None else d["id"] for place, d in enumerate(documents)),
        label=record.get("label"),
        date=record.get("date"),
        broken_part=record.get("broken_part"),
        verdicts={name: _verdict(verdict, documents) for name, verdict in record["verdicts"].items()},
    )


def _verdict(verdict: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> VerdictResult:
    metadata = verdict.get("metadata") or {}
    threshold = metadata.get("threshold")
    return VerdictResult(
        outcome=Outcome(verdict["outcome"]),
        score=verdict.get("score"),
        feedback=verdict.get("feedback") or "",
        threshold=threshold,
        claims=tuple(_claim(claim, documents, threshold) for claim in metadata.get("claims") or ()),
    )


def _claim(claim: Mapping[str, Any], documents: Sequence[Mapping[str, Any]], threshold: float | None) -> ClaimResult:
    support = claim.get("support")
    return ClaimResult(
        text=claim["text"],
        start=claim.get("start"),
        end=claim.get("end"),
        outcome=Outcome(claim["outcome"]) if "outcome" in claim else _outcome(support, threshold),
        support=support,
        why=claim.get("detail") or claim.get("reason") or "",
        evidence=_evidence(claim, documents),
    )


def _outcome(support: float | None, threshold: float | None) -> Outcome:
    """Decide a claim in the documented shape, which needs no outcome of its own."""
    if support is None or threshold is None:
        return Outcome.INVALID
    return Outcome.PASS if support > threshold else Outcome.FAIL


def _evidence(claim: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> Evidence | None:
    place, chunk = find_recorded(documents, claim.get("document")), claim.get("chunk")
    if place is None or not chunk:
        return None
    start, end = chunk["start"], chunk["end"]
    return Evidence(place=place, start=start, end=end, text=(documents[place]["text"] or "")[start:end])
