"""Verdicts that need no judge: nothing to check, no evidence, and documents that retrieval had to find."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.counts import counted
from minicheck_eval.evaluators.names import RETRIEVAL
from minicheck_eval.harness.case import Case
from minicheck_eval.identity import JudgeIdentity

__all__ = ["NO_JUDGE", "broken_part", "retrieval", "without_judge"]

NO_JUDGE = JudgeIdentity(
    judge="no judge",
    model="",
    revision="",
    backend="",
    dtype="",
    prompt_digest="",
    labels_digest="",
    window_tokens=None,
    chunk_tokens=None,
    threshold=1.0,
    least_mass=0.0,
    chunk_aggregation="",
    claim_aggregation="",
    splitter="none",
    package=version("minicheck-eval"),
    evaluator=RETRIEVAL,
    reading="",
)
"""Who decides where only retrieval is checked."""


def without_judge(case: Case, *, needs_evidence: bool = True) -> EvaluationResponse | None:
    """Decide a case that no judge should be asked about; None where one should."""
    if not (case.answer or "").strip():
        return EvaluationResponse(Outcome.NOT_CHECKABLE, None, "There is no answer to check.", _because("empty_answer"))
    if not needs_evidence or any(map(str.isalnum, "".join(document.text or "" for document in case.documents))):
        return None
    if case.in_scope:
        feedback = "Retrieval failure: the question is in scope, and the answer was given without any evidence."
        return EvaluationResponse(Outcome.FAIL, None, feedback, _because("empty_evidence"))
    return EvaluationResponse(
        Outcome.NOT_CHECKABLE,
        None,
        "The question is out of scope, and there is no evidence to check the answer against.",
        _because("no_evidence"),
    )


def _because(reason: str) -> dict[str, Any]:
    return {"reason": reason, "claims": [], "chunks": []}


def retrieval(case: Case) -> EvaluationResponse | None:
    """Tell whether the documents that had to be found are there; None where none had to."""
    wanted = tuple(dict.fromkeys(case.must_retrieve))
    if not wanted:
        return None
    found = {document.id for document in case.documents}
    missing = [name for name in wanted if name not in found]
    score = (len(wanted) - len(missing)) / len(wanted)
    feedback = f"{len(wanted) - len(missing)} of {counted(len(wanted), 'document')} retrieved."
    if missing:
        feedback += f" Missing: {', '.join(missing)}"
    return EvaluationResponse(Outcome.FAIL if missing else Outcome.PASS, score, feedback, {"missing": missing})


def broken_part(verdicts: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Say what broke in a case that failed: "retrieval", where what was needed is not there, or "generation"."""
    failed = {name: verdict for name, verdict in verdicts.items() if verdict["outcome"] == Outcome.FAIL}
    if not failed:
        return None
    without_evidence = any(verdict["metadata"].get("reason") == "empty_evidence" for verdict in failed.values())
    return "retrieval" if RETRIEVAL in failed or without_evidence else "generation"
