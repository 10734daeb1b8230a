"""One view of a run, from which every report is made: the decision, the rates, where it all comes from, the cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.compare import compare
from minicheck_eval.harness.gates import EXIT_CODES, Status
from minicheck_eval.harness.journal import read_header, read_records
from minicheck_eval.reports.case_view import STRICT, CaseResult, case_result

__all__ = ["Counts", "DataSet", "DecisionView", "EvaluatorView", "Head", "Provenance", "RateView", "View", "open_view"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateView:
    """`k` of `n`, with the Wilson interval of 95 %."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    k: int
    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often each outcome came, and the pass rate over what was judged."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    passed: int
    failed: int
    invalid: int
    error: int
    not_checkable: int
    unanswered: int
    """Of those that cannot be checked, the cases in scope: there an answer was expected."""
    total: int
    judged: int
    coverage: float | None
    """The share that was judged; none of nothing."""
    rate: RateView | None
    """None over nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorView:
    """What one evaluator found."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    overall: Counts
    slices: Mapping[str, Counts]
    decided_by: Mapping[str, int]
    """Where there is a fallback: how many verdicts each judge gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """What one rule found."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    evaluator: str
    """Empty where the rule is about the whole run."""
    slice: str
    """Empty where the rule is about all slices."""
    status: Status
    reason: str
    """The arithmetic, in words."""
    asked: float | None
    """The least pass rate, where one is asked of the slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """What became of the run, and why."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    status: Status
    exit_code: int
    reasons: tuple[str, ...]
    """The words of the gates that explain the status, what failed first; `gates` has each of them with its own."""
    gates: tuple[GateView, ...]
    """Each rule on its own; the worst of them is the decision."""
    rule: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The cases that were judged."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    path: str
    sha256: str
    count: int
    left_out: tuple[Mapping[str, Any], ...]
    """Rows that could not be read, each with its line and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the verdicts come from."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    judge: Mapping[str, Any]
    """All that shapes the judge's verdicts."""
    judge_digest: str
    packages: Mapping[str, Any]
    git: Mapping[str, Any] | None
    arguments: Mapping[str, Any]
    meta: Mapping[str, str]
    usage: Mapping[str, Any]
    """What each judge was asked and what that cost, by evaluator and judge."""
    judges: Mapping[str, Any]
    """Where several evaluators ask: who judges, by evaluator."""
    app: Mapping[str, Any] | None
    """The application that gave the answers, where they are not in the cases."""
    tapes: Mapping[str, Any]
    """The recordings that answers of judges were taken from, by judge."""
    started_at: str
    finished_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """All of a run but its cases."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    version: Literal[1] = 1
    """Of the format of the report."""
    decision: DecisionView
    judge: str
    data: DataSet
    evaluators: tuple[EvaluatorView, ...]
    comparison: Mapping[str, Any] | None
    """The run against a baseline, where there is one."""
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A finished run."""

    directory: Path
    head: Head

    def cases(self) -> Iterator[tuple[CaseResult, dict[str, Any]]]:
        """Read the cases one at a time, each with its record."""
        for record in read_records(self.directory):
            yield case_result(record), record


def open_view(directory: Path, baseline: Path | None = None) -> View:
    """View the run in a folder, and beside it a baseline; raises `BadInput` where there is none that is finished."""
    header = read_header(directory)
    if header is None:
        raise BadInput(f"{directory} holds no run", hint="name the folder of a run: the one given to --out")
    if header.get("status") != "finished":
        raise BadInput(
            f"the run in {directory} is not finished", hint="go on with it first: the same command that began it"
        )
    compared = None if baseline is None else compare(directory, baseline).to_json()
    return View(directory=directory, head=_head(header, compared))


def _head(header: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> Head:
    decision, cases = header["decision"], header["cases"]
    return Head(
        decision=DecisionView(
            status=decision["status"],
            exit_code=decision.get("exit_code", EXIT_CODES[decision["status"]]),
            reasons=tuple(decision["reasons"]),
            gates=_gates(decision),
            rule=decision["rule"],
        ),
        judge=header["judge"]["judge"],
        data=DataSet(
            path=cases["path"], sha256=cases["sha256"], count=cases["count"], left_out=tuple(cases["left_out"])
        ),
        evaluators=tuple(_evaluator(name, found) for name, found in header["summary"].items()),
        comparison=comparison,
        provenance=Provenance(
            judge=header["judge"],
            judge_digest=header["judge_digest"],
            packages=header["packages"],
            git=header["git"],
            arguments=header["arguments"],
            meta=header["meta"],
            usage=header.get("usage") or {},
            judges=header.get("judges") or {},
            app=header.get("app"),
            tapes=header.get("tapes") or {},
            started_at=header["started_at"],
            finished_at=header["finished_at"],
        ),
    )


def _gates(decision: Mapping[str, Any]) -> tuple[GateView, ...]:
    found = decision.get("findings")
    if found is None:
        # A run of an earlier version tells its reasons alone.
        found = [{"status": decision["status"], "words": reason} for reason in decision["reasons"]]
    return tuple(
        GateView(
            evaluator=gate.get("evaluator", ""),
            slice=gate.get("slice", ""),
            status=gate["status"],
            reason=gate["words"],
            asked=gate.get("asked"),
        )
        for gate in found
    )


def _evaluator(name: str, found: Mapping[str, Any]) -> EvaluatorView:
    return EvaluatorView(
        name=name,
        overall=_counts(found["overall"]),
        slices={part: _counts(tally) for part, tally in found["slices"].items()},
        decided_by=found.get("decided_by") or {},
    )


def _counts(tally: Mapping[str, Any]) -> Counts:
    rate = tally["rate"]
    names = ("invalid", "error", "not_checkable", "unanswered", "total", "judged", "coverage")
    return Counts(
        passed=tally["pass"],
        failed=tally["fail"],
        rate=None if rate is None else RateView(**rate),
        **{name: tally[name] for name in names},
    )
