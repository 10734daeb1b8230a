"""The record of a case: what was asked, what the evidence was, and every verdict on it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from minicheck_eval.contract import Evaluator
from minicheck_eval.evaluators.names import RETRIEVAL
from minicheck_eval.harness.cost import Meter
from minicheck_eval.harness.deterministic import broken_part, retrieval
from minicheck_eval.harness.observed import Observed
from minicheck_eval.harness.verdicts import Judged, Verdict, stream_verdicts

__all__ = ["stream_records"]


def stream_records(
    batches: Iterable[Sequence[Observed]], *, evaluators: Mapping[str, Evaluator], meter: Meter
) -> Generator[list[dict[str, Any]], None, None]:
    """Judge batch after batch with every evaluator and yield one self-contained record a case, in order."""
    if len(evaluators) == 1:
        # One judge alone may read ahead.  Several that share a model take turns, so that each is charged for its own.
        ((name, evaluator),) = evaluators.items()
        with closing(_charged(batches, name, evaluator, meter)) as stream:
            for batch, verdicts in stream:
                yield _records(batch, {name: verdicts})
        return
    for batch in batches:
        columns = {}
        for name, evaluator in evaluators.items():
            (judged,) = _charged([batch], name, evaluator, meter)
            columns[name] = judged.verdicts
        yield _records(batch, columns)


def _charged(
    batches: Iterable[Sequence[Observed]], name: str, evaluator: Evaluator, meter: Meter
) -> Generator[Judged, None, None]:
    try:
        with closing(stream_verdicts(batches, evaluator)) as stream:
            for judged in stream:
                meter.charge(name)
                yield judged
    finally:
        meter.charge(name)


def _records(batch: Sequence[Observed], columns: Mapping[str, Sequence[Verdict]]) -> list[dict[str, Any]]:
    return [
        _record(one, {name: verdicts[place] for name, verdicts in columns.items()}) for place, one in enumerate(batch)
    ]


def _record(one: Observed, found: Mapping[str, Verdict]) -> dict[str, Any]:
    verdicts = {name: verdict.response for name, verdict in found.items()}
    case = one.case
    retrieved = retrieval(case)
    # A case that its application did not answer must be seen, if nothing else is asked about it.
    failed = one.error if retrieved is not None or not verdicts else None
    if (decided := failed or retrieved) is not None:
        verdicts[RETRIEVAL] = decided.to_json()
    content = case.to_json()
    first = {key: content.pop(key) for key in ("id", "slice", "question", "answer", "documents")}
    label = content.pop("label")
    seconds = round(sum(verdict.seconds for verdict in found.values()), 6)
    own = {"verdicts": verdicts, "label": label, "broken_part": broken_part(verdicts)}
    own |= {"seconds": seconds, "case": case.digest}
    return {**first, **own, **content}
