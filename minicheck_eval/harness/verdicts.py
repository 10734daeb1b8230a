"""The verdicts of one evaluator on batch after batch: a batch that fails as a whole is asked case by case."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from time import perf_counter
from typing import Any, NamedTuple

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Evaluator, Outcome, evaluate_stream
from minicheck_eval.counts import counted
from minicheck_eval.errors import BackendError, MinicheckError
from minicheck_eval.harness.files import compact
from minicheck_eval.harness.observed import Observed, unasked

__all__ = ["Judged", "Verdict", "stream_verdicts"]


class Verdict(NamedTuple):
    """What an evaluator said of a case, and how long it took: its share of its batch."""

    response: dict[str, Any]
    seconds: float


class Judged(NamedTuple):
    """A batch, and one verdict for each of its cases."""

    batch: Sequence[Observed]
    verdicts: list[Verdict]


def stream_verdicts(batches: Iterable[Sequence[Observed]], evaluator: Evaluator) -> Generator[Judged, None, None]:
    """Judge batch after batch, in order.

    Where a batch fails as a whole each of its cases is asked alone, so that a bad one fails alone.
    """
    left = iter(batches)
    while True:
        waiting: deque[Sequence[Observed]] = deque()
        try:
            with closing(_stream(left, waiting, evaluator)) as stream:
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
        answers = [_ask_alone(one, evaluator) for one in _asked(failed, evaluator)]
        yield _judged(failed, answers, evaluator, perf_counter() - started)
        left = chain(waiting, left)


def _stream(
    batches: Iterator[Sequence[Observed]], waiting: deque[Sequence[Observed]], evaluator: Evaluator
) -> Generator[Judged, None, None]:
    def requests() -> Iterator[list[EvaluationRequest]]:
        for batch in batches:
            waiting.append(batch)
            yield [one.case.to_request() for one in _asked(batch, evaluator)]

    started = perf_counter()
    with closing(evaluate_stream(evaluator, requests())) as answered:
        for responses in answered:
            if not waiting:
                raise BackendError("the judge gave an answer that nobody asked for")
            judged = _judged(waiting[0], [_writable(r) for r in responses], evaluator, perf_counter() - started)
            waiting.popleft()
            yield judged
            started = perf_counter()
    if waiting:
        raise ValueError(f"the judge left {counted(len(waiting), 'batch', 'batches')} without an answer")


def _asked(batch: Sequence[Observed], evaluator: Evaluator) -> list[Observed]:
    return [one for one in batch if _unasked(one, evaluator) is None]


def _unasked(one: Observed, evaluator: Evaluator) -> EvaluationResponse | None:
    return unasked(one, needs_evidence=getattr(evaluator, "needs_evidence", True))


def _judged(
    batch: Sequence[Observed], answers: Sequence[dict[str, Any]], evaluator: Evaluator, seconds: float
) -> Judged:
    known = [None if (response := _unasked(one, evaluator)) is None else response.to_json() for one in batch]
    asked = known.count(None)
    if len(answers) != asked:
        # Verdicts too few or too many would go to the wrong cases.
        raise ValueError(f"the judge gave {counted(len(answers), 'answer')} to {counted(asked, 'question')}")
    left = iter(answers)
    share = seconds / asked if asked else 0.0
    found = [Verdict(next(left), share) if response is None else Verdict(response, 0.0) for response in known]
    return Judged(batch, found)


def _ask_alone(one: Observed, evaluator: Evaluator) -> dict[str, Any]:
    try:
        (response,) = evaluator.evaluate_batch([one.case.to_request()])
        return _writable(response)
    except Exception as error:  # as above, and now it is known which case it is
        if isinstance(error, MinicheckError) and not error.retryable:
            raise
        return _failed(error)


def _writable(response: EvaluationResponse) -> dict[str, Any]:
    verdict = response.to_json()
    compact(verdict)
    return verdict


def _failed(error: Exception) -> dict[str, Any]:
    message = str(error)
    metadata = {"reason": "exception", "error": type(error).__name__, "message": message, "claims": [], "chunks": []}
    return EvaluationResponse(
        Outcome.ERROR, None, f"The judge failed: {metadata['error']}: {message}", metadata
    ).to_json()
