"""A run: every case gets one record, a killed run goes on where it stopped, and nothing is judged twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicheck_eval.contract import Evaluator
from minicheck_eval.errors import BadInput, RunMismatch
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.cost import Meter
from minicheck_eval.harness.files import encode
from minicheck_eval.harness.gates import Decision, GateRule, check
from minicheck_eval.harness.journal import HEADER, OTHER_OUT, RESULTS, Journal, has_error, read_header, read_records
from minicheck_eval.harness.progress import Progress, Step, claims_of
from minicheck_eval.harness.provenance import git_state, now, package_versions
from minicheck_eval.harness.records import stream_records
from minicheck_eval.harness.source import Problem
from minicheck_eval.harness.summary import Summary, summarise
from minicheck_eval.identity import JudgeIdentity, digest

__all__ = ["FACT_CHECKING", "Run", "finished_run", "run_cases"]

SCHEMA = 1
FACT_CHECKING = "fact-checking"
SHORT_DIGEST = 12
SHA256_DIGITS = 64


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
    evaluator: Evaluator,
    identity: JudgeIdentity,
    out: Path,
    arguments: Mapping[str, Any],
    meta: Mapping[str, str],
    cases_path: Path,
    cases_digest: str,
    left_out: Sequence[Problem] = (),
    rule: GateRule | None = None,
    restart: bool = False,
    evaluator_name: str = FACT_CHECKING,
    batch_cases: int = 32,
    progress: Progress | None = None,
) -> Run:
    """Judge the cases that have no verdict yet, and decide; what got no answer before is asked again.

    Raises `RunMismatch` when `out` holds a run of another judge or of other cases.
    """
    cases = tuple(cases)
    if len({case.id for case in cases}) < len(cases):
        raise BadInput("two cases have the same id", hint="give every case an id of its own")
    source = {
        "path": str(cases_path),
        "sha256": cases_digest,
        "count": len(cases),
        "left_out": [{"line": problem.line, "message": problem.message} for problem in left_out],
    }
    with Journal(out, anew=restart) as journal:
        header = _begin(journal, identity, source, evaluator_name, meta)
        journal.forget_errors()
        header |= {"arguments": dict(arguments), "meta": {**header["meta"], **meta}}
        if any(case.id not in journal.ids for case in cases):
            header |= {"status": "started", "finished_at": None, "summary": None, "decision": None}
            journal.write_header(header)
        # In the order of their evidence, cases that share it meet, and what shares a batch does not depend on the file.
        ordered = sorted(cases, key=_evidence)
        batches = [ordered[start : start + batch_cases] for start in range(0, len(cases), batch_cases)]
        meter = Meter(evaluator)
        try:
            _judge(batches, journal, evaluator, evaluator_name, progress=progress or _silent, meter=meter)
        except BaseException:
            journal.write_header(header | {"usage": meter.added_to(header.get("usage"), evaluator_name)})
            raise
        header |= {"usage": meter.added_to(header.get("usage"), evaluator_name)}
        header |= {"tapes": dict(getattr(evaluator, "tapes", {}))}
        journal.arrange([case.id for case in cases])
        return _finish(journal, header, rule or GateRule())


def finished_run(
    out: Path,
    *,
    cases_digest: str,
    identity: JudgeIdentity,
    arguments: Mapping[str, Any],
    meta: Mapping[str, str],
    rule: GateRule,
) -> Run | None:
    """Decide a finished run again, without a judge; None where there is none of these cases by this very judge.

    What only an open judge knows of itself, its backend and its dtype, is empty in `identity` and is not compared; the
    versions of the packages behind them are.

    A run with cases that got no answer is not finished: the judge is asked for them.
    """
    header = read_header(out)
    asked = {
        "schema": SCHEMA,
        "status": "finished",
        "cases.sha256": cases_digest,
        **{f"judge.{name}": value for name, value in _flat(identity.to_json()).items() if value not in ("", None)},
        **{f"packages.{name}": value for name, value in package_versions().items()},
        **{f"arguments.{name}": value for name, value in arguments.items()},
        **{f"meta.{name}": value for name, value in meta.items()},
    }
    there = _flat(header or {})
    if header is None or any(there.get(name) != value for name, value in asked.items()):
        return None
    answered = {record["id"] for record in read_records(out) if not has_error(record)}
    if len(answered) != there.get("cases.count"):
        return None
    with Journal(out) as journal:
        return _finish(journal, header, rule)


def _begin(
    journal: Journal,
    identity: JudgeIdentity,
    source: Mapping[str, Any],
    evaluator_name: str,
    meta: Mapping[str, str],
) -> dict[str, Any]:
    """Return the header to go on with, or a new one."""
    header = journal.header()
    if header is not None:
        # A key that is new says more of the same run; another value says that it is another run.
        known = {key: value for key, value in meta.items() if key in header.get("meta", {})}
        asked = {
            "schema": SCHEMA,
            "judge": identity.to_json(),
            "evaluator": evaluator_name,
            "meta": known,
            "cases": {"sha256": source["sha256"], "count": source["count"]},
        }
        _refuse_another(journal.directory, header, asked)
        return header
    if journal.ids:
        raise RunMismatch(f"{journal.directory} holds {RESULTS} without {HEADER}", hint=OTHER_OUT)
    return {
        "schema": SCHEMA,
        "status": "started",
        "judge": identity.to_json(),
        "judge_digest": identity.digest,
        "evaluator": evaluator_name,
        "cases": dict(source),
        "packages": package_versions(),
        "git": git_state(Path(source["path"])),
        "arguments": {},
        "meta": {},
        "usage": {},
        "tapes": {},
        "started_at": now(),
        "finished_at": None,
        "summary": None,
        "decision": None,
    }


def _refuse_another(directory: Path, header: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    here = _flat(json.loads(encode(asked)))
    there = _flat(header)
    wrong = [
        f"{name} is {_shown(there.get(name))} there and {_shown(here.get(name))} here"
        for name in sorted(here.keys() | {name for name in there if name.startswith("judge.")})
        if there.get(name) != here.get(name)
    ]
    if wrong:
        raise RunMismatch(f"{directory} holds another run: {'; '.join(wrong)}", hint=OTHER_OUT)


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= _flat(item, f"{prefix}{key}.") if isinstance(item, dict) else {f"{prefix}{key}": item}
    return flat


def _shown(value: object) -> str:
    digest = isinstance(value, str) and len(value) == SHA256_DIGITS
    return f"{str(value)[:SHORT_DIGEST]}…" if digest else ascii(value)


def _evidence(case: Case) -> tuple[str, str, str]:
    return digest([document.text for document in case.documents]), case.digest, case.id


def _judge(
    batches: Sequence[Sequence[Case]],
    journal: Journal,
    evaluator: Evaluator,
    name: str,
    *,
    progress: Progress,
    meter: Meter,
) -> None:
    total = sum(len(batch) for batch in batches)
    done = sum(case.id in journal.ids for batch in batches for case in batch)
    claims = 0
    progress(Step(done, total))
    # Batches begin at fixed places, so that a resumed run mostly asks about the same neighbours together.
    missing = [[case for case in batch if case.id not in journal.ids] for batch in batches]
    with closing(stream_records(filter(None, missing), evaluator=evaluator, name=name)) as stream:
        for records in stream:
            journal.append(records)
            done += len(records)
            claims += claims_of(records, name)
            progress(Step(done, total, claims, meter.total))
    # A judge on a server must still be the one that was opened.
    if (confirm := getattr(evaluator, "confirm", None)) is not None:
        confirm()


def _silent(_: Step) -> None:
    pass


def _finish(journal: Journal, header: Mapping[str, Any], rule: GateRule) -> Run:
    summary = summarise(journal.records())
    decision = check(summary, rule)
    found = {"summary": summary.to_json(), "decision": decision.to_json()}
    finished = {**header, "status": "finished", "finished_at": header["finished_at"] or now(), **found}
    if finished != journal.header():
        journal.write_header(finished)
    return Run(
        directory=journal.directory, header=finished, summary=summary, decision=decision, repairs=journal.repairs
    )
