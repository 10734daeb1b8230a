"""What makes two runs unlike beside what is compared: another judge, prompt, threshold, or other cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minicheck_eval.border import cut
from minicheck_eval.counts import counted
from minicheck_eval.harness.changes import Before
from minicheck_eval.harness.comparison import EvaluatorComparison
from minicheck_eval.harness.header import flat, short_digest

__all__ = ["Overlap", "warnings_of"]

SHOWN = 40
LEAST_GROUP = 3
NAMES = {
    "judge": "the judge",
    "prompt_digest": "the prompt",
    "threshold": "the threshold",
    "revision": "the model's revision",
}


@dataclass(slots=True, kw_only=True)
class Overlap:
    """How far the cases of two runs are the same."""

    baseline: int
    run: int = 0
    shared: int = 0
    questions: int = 0
    """Cases of the same id that ask another question."""
    answers: int = 0
    documents: int = 0
    moved: int = 0
    """Cases of the same id in another slice."""

    def add(self, record: Mapping[str, Any], before: Before | None) -> None:
        """Count a case of the run, and what of it is not as it was."""
        self.run += 1
        if before is None:
            return
        now = Before.of(record)
        self.shared += 1
        self.questions += now.question != before.question
        self.answers += now.answer != before.answer
        self.documents += now.documents != before.documents
        self.moved += now.slice != before.slice


def warnings_of(
    run: Mapping[str, Any],
    baseline: Mapping[str, Any],
    overlap: Overlap,
    evaluators: Sequence[EvaluatorComparison],
) -> Iterator[str]:
    """Say in sentences what else differs, so that it is not taken for a finding."""
    # By the records, for a gate compares a run whose header is not written yet.
    if overlap.run < (count := run.get("cases", {}).get("count", 0)):
        yield f"the run is not finished: {overlap.run} of {counted(count, 'case')} recorded"
    if overlap.baseline < (count := baseline.get("cases", {}).get("count", 0)):
        yield f"the baseline has lost records: {overlap.baseline} of {counted(count, 'case')} left"
    yield from _judges(run.get("judge", {}), baseline.get("judge", {}))
    yield from _cases(run, baseline, overlap)
    for found in evaluators:
        if found.overall.run is None or found.overall.baseline is None:
            where = "run" if found.overall.run is None else "baseline"
            yield f"{found.name}: no case has a verdict in the {where}"
        if found.no_verdict_now:
            yield f"{found.name}: {counted(len(found.no_verdict_now), 'case')} had a verdict, and none now"
        largest = max((len(group.ids) for group in found.groups if group.document is not None), default=0)
        if largest >= LEAST_GROUP:
            failing = len(found.newly_failing)
            yield (
                f"{found.name}: {largest} of {failing} newly failing cases share a document; they may have one cause, "
                "and the statistics take each for a case of its own"
            )


def _judges(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> Iterator[str]:
    now, then = flat(run), flat(baseline)
    for name in sorted(now.keys() | then.keys(), key=lambda key: (key not in NAMES, key)):
        if now.get(name) != then.get(name):
            what = NAMES.get(name, f"the judge's {name}")
            yield f"{what} is another: {_shown(now.get(name))}, in the baseline {_shown(then.get(name))}"


def _cases(run: Mapping[str, Any], baseline: Mapping[str, Any], overlap: Overlap) -> Iterator[str]:
    now, then = (header.get("cases", {}).get("sha256") for header in (run, baseline))
    if now != then:
        parts = (
            (overlap.answers, "with another answer"),
            (overlap.documents, "with other documents"),
            (overlap.questions, "with another question"),
            (overlap.moved, "in another slice"),
        )
        found = "; ".join(f"{count} {what}" for count, what in parts if count) or "all with the same content"
        both = f"of {counted(overlap.shared, 'case')} in both {found}" if overlap.shared else "no case is in both"
        yield f"the data set is another ({_shown(now)}, {_shown(then)}): {both}"
    alone = [
        f"{counted(count, 'case is', 'cases are')} only in the {where}"
        for count, where in ((overlap.run - overlap.shared, "run"), (overlap.baseline - overlap.shared, "baseline"))
        if count
    ]
    if alone:
        yield " and ".join(alone)


def _shown(value: object) -> str:
    return short_digest(value) or ("nothing" if value in (None, "") else cut(str(value), SHOWN))
