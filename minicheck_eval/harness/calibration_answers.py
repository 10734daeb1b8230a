"""What calibration needs to know of a judged answer, from a verdict just given or from the record of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minicheck_eval.contract import Outcome
from minicheck_eval.errors import CouldNotJudge
from minicheck_eval.harness.calibration_measures import Judged
from minicheck_eval.identity import digest
from minicheck_eval.text.language import language_of

__all__ = ["Answer", "answer_of", "check_any_judged", "count_outcomes", "judged_of", "measurable"]

NEITHER = "neither_yes_nor_no"
LONG_WORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A labelled or unlabelled answer and what the judge said of it."""

    id: str
    text: str
    label: bool | None
    outcome: Outcome
    support: float | None
    """None where it is not fully known: also where a claim of a failing answer has no score."""
    evidence: str
    """The same for answers about the same first document: they are not independent."""
    groups: Mapping[str, str]
    """Kind of group → the group that this answer is in."""
    claims: int = 1
    """How many got an answer."""
    unclear: tuple[str, ...] = ()
    """What the judge said to each claim in place of a yes or a no."""
    error: str = ""
    """Why there is no answer, where there is none."""


def answer_of(case: Mapping[str, Any], verdict: Mapping[str, Any]) -> Answer:
    """Read a case and its verdict, both as JSON; a record of a run is such a case."""
    metadata = verdict.get("metadata", {})
    claims = metadata.get("claims") or [metadata]
    texts = [document["text"] for document in case["documents"] if document["text"]]
    # No claim without a score could pull it below 0.
    known = verdict["score"] == 0 or all(claim.get("support") is not None for claim in claims)
    answer = case["answer"] or ""
    outcome = Outcome(verdict["outcome"])
    return Answer(
        id=case["id"],
        text=answer,
        label=case["label"],
        outcome=outcome,
        support=verdict["score"] if known or "claims" not in metadata else None,
        evidence=digest(texts[:1]),
        groups={"slice": case["slice"], **_traits(answer, texts, metadata)},
        claims=sum(claim.get("outcome", outcome) != Outcome.ERROR for claim in claims),
        unclear=tuple(str(claim.get("detail", "")) for claim in claims if claim.get("reason") == NEITHER),
        error=_why(claims, verdict) if outcome is Outcome.ERROR else "",
    )


def count_outcomes(answers: Iterable[Answer]) -> dict[str, int]:
    """Count every outcome by its name."""
    counts = Counter(answer.outcome for answer in answers)
    return {outcome.value: counts[outcome] for outcome in Outcome}


def check_any_judged(answers: Sequence[Answer]) -> None:
    """Raise `CouldNotJudge` where no answer has a verdict."""
    if any(answer.outcome.judged for answer in answers):
        return
    counts = ", ".join(f"{n} {outcome}" for outcome, n in count_outcomes(answers).items() if n)
    said = next((f"; of {a.id}: {why}" for a in answers for why in (a.error, *a.unclear) if why), "")
    raise CouldNotJudge(f"there is no verdict to calibrate by: {counts}{said}", hint="try one: minicheck-eval check")


def measurable(answer: Answer) -> bool:
    """Tell whether an answer counts where the judge is held against people."""
    return answer.label is not None and answer.outcome.judged and answer.support is not None


def judged_of(answers: Iterable[Answer]) -> Judged:
    """Return measurable answers as columns."""
    rows: Sequence[Answer] = list(answers)
    _, clusters = np.unique([row.evidence for row in rows], return_inverse=True)
    return Judged(
        supports=np.array([row.support for row in rows], dtype=float),
        labels=np.array([row.label for row in rows], dtype=bool),
        passed=np.array([row.outcome is Outcome.PASS for row in rows], dtype=bool),
        clusters=clusters,
    )


def _why(claims: Sequence[Mapping[str, Any]], verdict: Mapping[str, Any]) -> str:
    details = (claim.get("detail") for claim in claims if claim.get("outcome") == Outcome.ERROR)
    return str(next(filter(None, details), None) or verdict["feedback"])


def _traits(answer: str, texts: Sequence[str], metadata: Mapping[str, Any]) -> dict[str, str]:
    """Name what judges are known to stumble over."""
    words = sum(len(text.split()) for text in texts)
    traits = {
        "language": language_of(answer),
        "numbers": "with" if any(map(str.isdigit, answer)) else "without",
        "evidence": f"over {LONG_WORDS} words" if words > LONG_WORDS else f"up to {LONG_WORDS} words",
    }
    if "chunks" in metadata:
        traits["chunks"] = "cut" if len(metadata["chunks"]) > len(texts) else "whole"
        traits["claims"] = "several" if len(metadata["claims"]) > 1 else "one"
    return traits
