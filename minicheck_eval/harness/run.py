"""A run: every case gets one record, a killed run goes on where it stopped, and nothing is judged twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicheck_eval.contract import Evaluator
from minicheck_eval.errors import MinicheckError
from minicheck_eval.evaluators.names import RETRIEVAL
from minicheck_eval.harness.application import Application
from minicheck_eval.harness.baseline import kept_of
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.cost import Meter
from minicheck_eval.harness.deterministic import NO_JUDGE
from minicheck_eval.harness.gates import Decision, GateRule, Rule
from minicheck_eval.harness.header import SCHEMA, begin, flat, identities_json
from minicheck_eval.harness.journal import Journal, is_answered, read_header, read_records
from minicheck_eval.harness.observed import Observed
from minicheck_eval.harness.progress import Progress, Step, claims_of
from minicheck_eval.harness.provenance import now, package_versions
from minicheck_eval.harness.queue import Queue
from minicheck_eval.harness.records import stream_records
from minicheck_eval.harness.source import Problem
from minicheck_eval.harness.summary import Summary, summarise
from minicheck_eval.identity import JudgeIdentity

__all__ = ["Run", "finished_run", "run_cases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run, as its folder holds it."""

    directory: Path
    header: Mapping[str, Any]
    summary: Summary
    decision: Decision
    repairs: tuple[str, ...] = ()
    """What a crash had left and was mended."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Read the records from results.jsonl, one at a time."""
        return read_records(self.directory)


def run_cases(
    cases: Iterable[Case],
    *,
    evaluators: Mapping[str, Evaluator],
    identities: Mapping[str, JudgeIdentity],
    out: Path,
    arguments: Mapping[str, Any],
    meta: Mapping[str, str],
    cases_path: Path,
    cases_digest: str,
    application: Application | None = None,
    left_out: Sequence[Problem] = (),
    rule: Rule | None = None,
    restart: bool = False,
    batch_cases: int = 32,
    progress: Progress | None = None,
) -> Run:
    """Judge the cases that have no verdict yet, and decide; what got no answer before is asked again.

    `evaluators` and `identities` go by the names of evaluators, in the order in which they are asked; without any only
    retrieval is checked, which needs no judge.  With `application` it gives answers and evidence.
    Raises `RunMismatch` when `out` holds a run of another judge or of other cases.
    """
    queue = Queue(cases, batch_cases)
    source = _source(cases_path, cases_digest, len(queue.ids), left_out)
    with Journal(out, anew=restart) as journal:
        header = begin(journal, _who(identities), source, meta, app=_app(application))
        journal.forget_unanswered(identities)
        header |= {"arguments": dict(arguments), "meta": {**header["meta"], **meta}}
        if any(name not in journal.ids for name in queue.ids):
            header |= {"status": "started", "finished_at": None, "summary": None, "decision": None}
            journal.write_header(header)
        meter = Meter(evaluators)
        observe = _as_they_are if application is None else application.observe
        with _usage_noted(journal, header, meter):
            _judge(queue, journal, evaluators, observe=observe, progress=progress or _silent, meter=meter)
        header |= {"usage": meter.added_to(header["usage"]), "tapes": _tapes(evaluators.values())}
        journal.arrange(queue.ids)
        return _finish(journal, header, rule or GateRule())


def _source(path: Path, sha256: str, count: int, left_out: Sequence[Problem]) -> dict[str, Any]:
    lines = [{"line": problem.line, "message": problem.message} for problem in left_out]
    return {"path": str(path), "sha256": sha256, "count": count, "left_out": lines}


def _app(application: Application | None) -> dict[str, Any] | None:
    return None if application is None else application.app.to_json()


def finished_run(
    out: Path,
    *,
    cases_digest: str,
    identities: Mapping[str, JudgeIdentity],
    arguments: Mapping[str, Any],
    meta: Mapping[str, str],
    rule: Rule,
    app: Mapping[str, Any] | None = None,
) -> Run | None:
    """Decide a finished run again, without a judge; None where there is none of these cases by this very judge.

    What only open judges know of themselves is empty in `identities` and is not compared: backend and dtype; the
    versions of the packages behind them are.  A judge whose weights are not known before it is opened, as on a server,
    has to be opened to see that it is the same.

    A run with cases that got no answer is not finished: the judge is asked for them.
    """
    header = read_header(out) if all(identity.names_weights for identity in identities.values()) else None
    known = flat(identities_json(_who(identities)))
    asked = {
        "schema": SCHEMA,
        "status": "finished",
        "cases.sha256": cases_digest,
        "evaluators": list(_who(identities)),
        **{f"judges.{name}": value for name, value in known.items() if value not in ("", None)},
        **flat({"app": app}),
        **{f"packages.{name}": value for name, value in package_versions().items()},
        **{f"arguments.{name}": value for name, value in arguments.items()},
        **{f"meta.{name}": value for name, value in meta.items()},
    }
    there = flat(header or {})
    if header is None or any(there.get(name) != value for name, value in asked.items()):
        return None
    answered = {record["id"] for record in read_records(out) if is_answered(record, identities)}
    if len(answered) != there.get("cases.count"):
        return None
    with Journal(out) as journal:
        return _finish(journal, header, rule)


def _who(identities: Mapping[str, JudgeIdentity]) -> Mapping[str, JudgeIdentity]:
    return identities or {RETRIEVAL: NO_JUDGE}


def _judge(
    queue: Queue,
    journal: Journal,
    evaluators: Mapping[str, Evaluator],
    *,
    observe: Callable[[Sequence[Case]], Sequence[Observed]],
    progress: Progress,
    meter: Meter,
) -> None:
    done, total = len(journal.ids), len(queue.ids)
    claims = 0
    progress(Step(done, total))
    observed = map(observe, queue.without(journal.ids))
    with closing(stream_records(observed, evaluators=evaluators, meter=meter)) as stream:
        for records in stream:
            journal.append(records)
            done += len(records)
            claims += claims_of(records)
            progress(Step(done, total, claims, meter.total))
    # A judge on a server must still be the one that was opened.
    for evaluator in evaluators.values():
        if (confirm := getattr(evaluator, "confirm", None)) is not None:
            confirm()


@contextmanager
def _usage_noted(journal: Journal, header: Mapping[str, Any], meter: Meter) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # What was spent is worth a note, and not worth hiding why the run ended.
        with suppress(MinicheckError, OSError):
            journal.write_header({**header, "usage": meter.added_to(header["usage"])})
        raise


def _tapes(evaluators: Iterable[Evaluator]) -> dict[str, Any]:
    """Return what was replayed or recorded, by judge: evaluators of one judge share its tape."""
    tapes: dict[str, Any] = {}
    for evaluator in evaluators:
        for judge, tape in getattr(evaluator, "tapes", {}).items():
            tapes[judge] = {**tape, "missed": tape["missed"] + tapes.get(judge, {}).get("missed", 0)}
    return tapes


def _as_they_are(cases: Sequence[Case]) -> list[Observed]:
    return [Observed(case) for case in cases]


def _silent(_: Step) -> None:
    pass


def _finish(journal: Journal, header: Mapping[str, Any], rule: Rule) -> Run:
    summary = summarise(journal.records())
    decision = rule.decide(summary, journal.directory)
    decided = {**decision.to_json(), "baseline": kept_of(rule.baseline)}
    found = {"summary": summary.to_json(), "decision": decided}
    finished = {**header, "status": "finished", "finished_at": header["finished_at"] or now(), **found}
    if finished != journal.header():
        journal.write_header(finished)
    return Run(
        directory=journal.directory, header=finished, summary=summary, decision=decision, repairs=journal.repairs
    )
