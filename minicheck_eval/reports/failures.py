"""What went wrong in single cases: which claim failed, with its support and the best evidence there was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from minicheck_eval.contract import Outcome

__all__ = ["ClaimFailure", "Failure", "Group", "failures"]

SHOWN = (Outcome.FAIL, Outcome.INVALID, Outcome.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFailure:
    """A claim that did not pass."""

    text: str
    support: float | None
    document: str | None
    evidence: str
    """The chunk that supports the claim most."""
    why: str
    """Why there is no verdict, where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A case that did not pass with one evaluator."""

    id: str
    slice: str
    score: float | None
    feedback: str
    broken_part: str | None
    """What broke in a case that failed: retrieval or generation."""
    claims: tuple[ClaimFailure, ...]


@dataclass(slots=True, kw_only=True)
class Group:
    """The cases that one evaluator ended alike; only the first are kept, all are counted."""

    evaluator: str
    outcome: Outcome
    count: int = 0
    first: list[Failure] = field(default_factory=list)


def failures(records: Iterable[Mapping[str, Any]], *, most: int) -> list[Group]:
    """Group the cases that did not pass by evaluator and outcome, and keep the first `most` of each group."""
    groups: dict[tuple[str, Outcome], Group] = {}
    for record in records:
        for name, verdict in record["verdicts"].items():
            outcome = Outcome(verdict["outcome"])
            if outcome not in SHOWN:
                continue
            group = groups.setdefault((name, outcome), Group(evaluator=name, outcome=outcome))
            group.count += 1
            if len(group.first) < most:
                group.first.append(_failure(record, verdict))
    return sorted(groups.values(), key=lambda group: (group.evaluator, SHOWN.index(group.outcome)))


def _failure(record: Mapping[str, Any], verdict: Mapping[str, Any]) -> Failure:
    claims = verdict["metadata"].get("claims", ())
    return Failure(
        id=record["id"],
        slice=record["slice"],
        score=verdict["score"],
        feedback=verdict["feedback"],
        broken_part=record.get("broken_part") if verdict["outcome"] == Outcome.FAIL else None,
        claims=tuple(_claim(record, claim) for claim in claims if not _passed(claim, verdict["metadata"])),
    )


def _passed(claim: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    if "outcome" in claim:
        return bool(claim["outcome"] == Outcome.PASS)
    support, threshold = claim.get("support"), metadata.get("threshold")
    return support is not None and threshold is not None and support > threshold


def _claim(record: Mapping[str, Any], claim: Mapping[str, Any]) -> ClaimFailure:
    name, chunk = claim.get("document"), claim.get("chunk")
    document = _document(record["documents"], name)
    evidence = (document["text"] or "")[chunk["start"] : chunk["end"]] if document is not None and chunk else ""
    return ClaimFailure(
        text=claim["text"],
        support=claim.get("support"),
        document=None if name is None else str(name),
        evidence=evidence,
        why=claim.get("detail") or claim.get("reason") or "",
    )


def _document(documents: list[Mapping[str, Any]], name: str | int | None) -> Mapping[str, Any] | None:
    """Find a document by its id, or by its place where it has none."""
    if isinstance(name, int):
        return documents[name] if name < len(documents) else None
    return next((document for document in documents if name is not None and document["id"] == name), None)
