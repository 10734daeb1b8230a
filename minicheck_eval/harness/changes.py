"""What changed in a case between two runs, with the evidence, and which changes share a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any

from minicheck_eval.border import cut
from minicheck_eval.contract import Outcome
from minicheck_eval.evaluators.documents import find_recorded
from minicheck_eval.harness.comparison import Change, ClaimEvidence, DocumentGroup

__all__ = ["Before", "change_of", "groups_of"]

EXCERPT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What is kept of a case of the baseline; texts as hashes, which hold within this process."""

    slice: str
    verdicts: tuple[tuple[str, str, float | None], ...]
    """Evaluator, outcome and score; no mapping, for a year of cases has a million of these."""
    question: int
    answer: int
    documents: int

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Before:
        """Keep what a later record is compared with."""
        verdicts = record["verdicts"].items()
        return cls(
            slice=intern(record["slice"]),
            verdicts=tuple((intern(name), intern(found["outcome"]), found.get("score")) for name, found in verdicts),
            question=hash(record.get("question")),
            answer=hash(record.get("answer")),
            documents=hash(tuple(document.get("text") for document in record.get("documents", ()))),
        )

    def outcome(self, evaluator: str) -> str | None:
        """Return what an evaluator found; None where it gave no verdict."""
        return next((outcome for name, outcome, _ in self.verdicts if name == evaluator), None)

    def score(self, evaluator: str) -> float | None:
        """Return an evaluator's score; None where it gave none."""
        return next((score for name, _, score in self.verdicts if name == evaluator), None)


def change_of(record: Mapping[str, Any], name: str, before: Before) -> Change:
    """Say how a case came out otherwise, by its record and what was kept of the one before."""
    verdict = record["verdicts"][name]
    documents = record.get("documents", ())
    return Change(
        id=record["id"],
        slice=record["slice"],
        question=record.get("question") or "",
        answer=record.get("answer") or "",
        before=before.outcome(name) or "",
        after=verdict["outcome"],
        score_before=before.score(name),
        score_after=verdict.get("score"),
        feedback=verdict.get("feedback") or "",
        claims=tuple(_claim(claim, documents) for claim in _telling(verdict.get("metadata", {}))),
        documents=tuple(dict.fromkeys(_name(document) for document in documents)),
    )


def groups_of(changes: Sequence[Change]) -> tuple[DocumentGroup, ...]:
    """Put each change to the one of its documents that most of them share; the largest group first."""
    shared = Counter(document for change in changes for document in change.documents)
    groups: dict[str | None, list[str]] = {}
    for change in changes:
        # Where two are shared alike the first in the case's own order counts.
        document = max(change.documents, key=shared.__getitem__, default=None)
        groups.setdefault(document, []).append(change.id)
    found = (DocumentGroup(document=document, ids=tuple(ids)) for document, ids in groups.items())
    return tuple(sorted(found, key=lambda group: -len(group.ids)))


def _telling(metadata: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    claims: Sequence[Mapping[str, Any]] = metadata.get("claims", ())
    failed = [claim for claim in claims if claim.get("outcome", Outcome.PASS) != Outcome.PASS]
    known = [claim for claim in claims if claim.get("support") is not None]
    return failed or sorted(known, key=lambda claim: claim["support"])[:1]


def _claim(claim: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> ClaimEvidence:
    place, chunk = find_recorded(documents, claim.get("document")), claim.get("chunk")
    document = None if place is None else documents[place]
    evidence = (document.get("text") or "")[chunk["start"] : chunk["end"]] if document and chunk else ""
    return ClaimEvidence(
        text=claim.get("text", ""),
        support=claim.get("support"),
        document=None if document is None else _name(document),
        evidence=evidence,
    )


def _name(document: Mapping[str, Any]) -> str:
    """Name a document by its id, or by its first words."""
    return str(document.get("id") or cut(" ".join((document.get("text") or "").split()), EXCERPT))
