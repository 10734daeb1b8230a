"""The record of a case: what was asked, what the evidence was, and every verdict on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from time import perf_counter
from typing import Any

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Evaluator, Outcome, evaluate_stream
from minicheck_eval.errors import BackendError, MinicheckError
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.deterministic import RETRIEVAL, retrieval, without_judge
from minicheck_eval.harness.files import encode

__all__ = ["stream_records"]


def stream_records(
    batches: Iterable[Sequence[Case]], *, evaluator: Evaluator, name: str
) -> Generator[list[dict[str, Any]], None, None]:
    """Judge batch after batch and yield one self-contained record a case, in order.

    Where a batch fails as a whole each of its cases is asked alone, so that a bad one fails alone.
    """
    left = iter(batches)
    while True:
        waiting: deque[Sequence[Case]] = deque()
        try:
            with closing(_stream(left, waiting, evaluator, name)) as stream:
                yield from stream
        except Exception as error:  # the judge is a plug: whatever it raises must not lose the other cases
            # Where nothing was asked, asking again would fail again, for ever.
            if not waiting or (isinstance(error, MinicheckError) and not error.retryable):
                raise
        else:
            return
        # Answers come in order: the first batch that waits is the one that failed, or one of a few that share a pass.
        failed = waiting.popleft()
        started = perf_counter()
        verdicts = [_ask_alone(case, evaluator) for case in _asked(failed, evaluator)]
        yield _records(failed, verdicts, evaluator, name, perf_counter() - started)
        left = chain(waiting, left)


def _stream(
    batches: Iterator[Sequence[Case]], waiting: deque[Sequence[Case]], evaluator: Evaluator, name: str
) -> Generator[list[dict[str, Any]], None, None]:
    def requests() -> Iterator[list[EvaluationRequest]]:
        for batch in batches:
            waiting.append(batch)
            yield [case.to_request() for case in _asked(batch, evaluator)]

    started = perf_counter()
    with closing(evaluate_stream(evaluator, requests())) as answered:
        for responses in answered:
            if not waiting:
                raise BackendError("the judge gave an answer that nobody asked for")
            records = _records(waiting[0], [_writable(r) for r in responses], evaluator, name, perf_counter() - started)
            waiting.popleft()
            yield records
            started = perf_counter()
    if waiting:
        raise ValueError(f"the judge left {len(waiting)} batches without an answer")


def _asked(batch: Sequence[Case], evaluator: Evaluator) -> list[Case]:
    return [case for case in batch if _unasked(case, evaluator) is None]


def _unasked(case: Case, evaluator: Evaluator) -> EvaluationResponse | None:
    return without_judge(case, needs_evidence=getattr(evaluator, "needs_evidence", True))


def _records(
    batch: Sequence[Case], verdicts: Sequence[Mapping[str, Any]], evaluator: Evaluator, name: str, seconds: float
) -> list[dict[str, Any]]:
    known = {case.id: response.to_json() for case in batch if (response := _unasked(case, evaluator)) is not None}
    asked = [case for case in batch if case.id not in known]
    # A verdict too few or too many would go to the wrong cases: strict, so that it is an error.
    judged = {case.id: verdict for case, verdict in zip(asked, verdicts, strict=True)}
    share = seconds / len(asked) if asked else 0.0
    return [
        _record(case, name, judged[case.id], share) if case.id in judged else _record(case, name, known[case.id], 0.0)
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


def _ask_alone(case: Case, evaluator: Evaluator) -> dict[str, Any]:
    try:
        (response,) = evaluator.evaluate_batch([case.to_request()])
        return _writable(response)
    except Exception as error:  # as above, and now it is known which case it is
        if isinstance(error, MinicheckError) and not error.retryable:
            raise
        return _failed(error)


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
