"""The record of a case: what was asked, what the evidence was, and every verdict on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from minicheck_eval.contract import EvaluationResponse, Evaluator, Outcome
from minicheck_eval.errors import MinicheckError
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.deterministic import RETRIEVAL, retrieval, without_judge
from minicheck_eval.harness.files import encode

__all__ = ["records_of"]


def records_of(batch: Sequence[Case], *, evaluator: Evaluator, name: str) -> list[dict[str, Any]]:
    """Judge a batch and return one self-contained record a case, in the order of the cases."""
    known = {case.id: response for case in batch if (response := without_judge(case)) is not None}
    asked = [case for case in batch if case.id not in known]
    started = perf_counter()
    verdicts = {case.id: verdict for case, verdict in zip(asked, _ask(asked, evaluator), strict=True)}
    share = (perf_counter() - started) / len(asked) if asked else 0.0
    return [
        _record(case, name, verdicts[case.id], share)
        if case.id in verdicts
        else _record(case, name, known[case.id].to_json(), 0.0)
        for case in batch
    ]


def _record(case: Case, name: str, verdict: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    verdicts = {name: verdict}
    found = retrieval(case)
    if found is not None:
        verdicts[RETRIEVAL] = found.to_json()
    content = case.to_json()
    first = {key: content.pop(key) for key in ("id", "slice", "question", "answer", "documents")}
    label = content.pop("label")
    own = {"verdicts": verdicts, "label": label, "seconds": round(seconds, 6), "case": case.digest}
    return {**first, **own, **content}


def _ask(cases: Sequence[Case], evaluator: Evaluator) -> list[dict[str, Any]]:
    """Ask about all cases at once; where that fails, about each alone, so that a bad one fails alone."""
    if not cases:
        return []
    try:
        responses = evaluator.evaluate_batch([case.to_request() for case in cases])
        # A verdict too few or too many would go to the wrong cases: strict, so that it is an error.
        return [_writable(response) for _, response in zip(cases, responses, strict=True)]
    except Exception as error:  # the judge is a plug: whatever it raises must not lose the other cases
        if isinstance(error, MinicheckError) and not error.retryable:
            raise
        if len(cases) == 1:
            return [_failed(error)]
        return [verdict for case in cases for verdict in _ask([case], evaluator)]


def _writable(response: EvaluationResponse) -> dict[str, Any]:
    verdict = response.to_json()
    encode(verdict)
    return verdict


def _failed(error: Exception) -> dict[str, Any]:
    message = str(error)
    metadata = {"reason": "exception", "error": type(error).__name__, "message": message, "claims": [], "chunks": []}
    return EvaluationResponse(
        Outcome.ERROR, None, f"The judge failed: {metadata['error']}: {message}", metadata
    ).to_json()
