"""The pytest plugin: a judge for tests, and a recorder of answers that are judged together when all tests have run.

No test fails because of one answer: a gate over each slice decides at the end.  Nothing is imported and nothing happens
until a test asks for one of the fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from minicheck_eval.errors import MinicheckError
    from minicheck_eval.harness.gates import Rule
    from minicheck_eval.judge import Judge
    from minicheck_eval.tape.options import TapeOptions

__all__ = ["Grounding"]

Rows = dict[str, dict[str, Any]]
RECORDED = pytest.StashKey[Rows]()
"""What a session recorded: test and number of the record → a row of a file of cases."""
REPORT = pytest.StashKey[str]()
RULE = pytest.StashKey["Rule"]()
FROM_WORKER = "minicheck_eval_grounding"
LEAST_WIDTH = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags, which say nothing until a fixture is used."""
    group = parser.getgroup("minicheck-eval", "whether answers are supported by their evidence (minicheck-eval)")
    add = group.addoption
    add("--judge", dest="grounding_judge", default="minicheck-nano", metavar="NAME", help="Judge to ask.")
    add("--tape", dest="grounding_tape", metavar="DIR", help="Folder of recorded answers of judges.")
    add("--mode", dest="grounding_mode", help="replay-only (where $CI is set), record (else), record-always or bypass.")
    add("--grounding-out", metavar="DIR", help="Folder that keeps the recorded cases and their run.")
    add("--grounding-report", metavar="FORMATS", help="Write html, json, markdown, junit into that folder.")
    add("--grounding-min-rate", type=float, metavar="RATE", help="Least pass rate of every slice; else 1.")
    add("--grounding-max-unjudged", type=int, metavar="N", help="Most cases without a verdict; else 0.")
    add("--grounding-gates", metavar="FILE", help="Gates by evaluator and slice, in place of the two above.")
    add("--grounding-baseline", metavar="RUN", help="Folder of a run to compare with.")


def pytest_configure(config: pytest.Config) -> None:
    """Find what cannot be used before any test runs."""
    given = [config.getoption(f"grounding_{name}") for name in ("report", "gates", "baseline")]
    if given == [None] * len(given) or hasattr(config, "workerinput"):
        return
    from minicheck_eval.errors import MinicheckError

    try:
        config.stash[RULE] = _rule(config)
        _formats(config)
    except MinicheckError as error:
        raise pytest.UsageError(_words(error)) from error


class Grounding:
    """Records answers of one test."""

    def __init__(self, test: str, rows: Rows) -> None:
        self._test = test
        self._rows = rows
        self._count = 0

    def record(
        self,
        returned: object,
        *,
        question: str = "",
        slice: str = "all",  # noqa: A002 - the word of the house for a part of a data set
        id: str | None = None,  # noqa: A002 - the column of that name
        must_retrieve: Sequence[str] = (),
        in_scope: bool = True,
    ) -> None:
        """Record what an application returned: an `Observation`, or anything that `run --app` reads as one.

        Whether its answer is supported by its documents is judged at the end of the session.  A case without an `id`
        has the name of its test.
        """
        from minicheck_eval.harness.case import case_from_row
        from minicheck_eval.harness.observation import read_observation

        seen = read_observation(returned)
        self._count += 1
        name = self._test if self._count == 1 else f"{self._test}#{self._count}"
        row = {
            "id": name if id is None else id,
            "question": question,
            "slice": slice,
            "answer": seen.answer,
            "documents": [document.to_json() for document in seen.documents],
            "must_retrieve": list(must_retrieve),
            "in_scope": in_scope,
        }
        # A test that is run again takes the place of its first try.
        self._rows[name] = case_from_row(json.loads(json.dumps(row))).to_json()


@pytest.fixture(scope="session")
def judge(pytestconfig: pytest.Config) -> Iterator[Judge]:
    """Open the judge that --judge names, on the tape that --tape names."""
    from minicheck_eval.judge import open_judge

    with open_judge(pytestconfig.getoption("grounding_judge"), tape=_tape(pytestconfig)) as opened:
        yield opened


@pytest.fixture
def grounding(request: pytest.FixtureRequest) -> Grounding:
    """Record answers; they are judged at the end, and a gate over each slice decides."""
    return Grounding(request.node.nodeid, request.config.stash.setdefault(RECORDED, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of xdist recorded; one that crashed has failed the session already."""
    if rows := getattr(node, "workeroutput", {}).get(FROM_WORKER):
        node.config.stash.setdefault(RECORDED, {}).update(json.loads(rows))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Judge what was recorded, and let the gate decide where no test has failed."""
    config = session.config
    rows = config.stash.get(RECORDED, {})
    if not rows:
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput[FROM_WORKER] = json.dumps(rows)
        return
    if session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    from minicheck_eval.errors import MinicheckError

    try:
        config.stash[REPORT], code = _judged(config, rows)
    except MinicheckError as error:
        config.stash[REPORT] = f"error: {_words(error)}\n"
        code = error.exit_code
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = code


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the report."""
    if REPORT in config.stash:
        terminalreporter.section("grounding")
        terminalreporter.write(config.stash[REPORT])


def _judged(config: pytest.Config, rows: Rows) -> tuple[str, int]:
    """Judge the rows as the run of a file of cases; return the report and the exit code of the gate."""
    from tempfile import TemporaryDirectory

    if out := config.getoption("grounding_out"):
        return _run(config, rows, Path(out))
    with TemporaryDirectory(prefix="minicheck-eval-grounding-") as folder:
        report, code = _run(config, rows, Path(folder))
    return f"{report}\nThe folder of this run was temporary and is removed: --grounding-out DIR keeps it\n", code


def _run(config: pytest.Config, rows: Rows, out: Path) -> tuple[str, int]:
    from minicheck_eval.harness.cases import load
    from minicheck_eval.harness.run import run_cases
    from minicheck_eval.judge import open_judges
    from minicheck_eval.reports.finished import write_run

    name = config.getoption("grounding_judge")
    path = out / "cases.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    # In an order of their own, whichever worker recorded them: the same answers are the same file.
    path.write_text("".join(json.dumps(rows[test]) + "\n" for test in sorted(rows)), encoding="utf-8")
    loaded = load(path)
    with open_judges(name, ["fact-checking"], tape=_tape(config)) as judges:
        run = run_cases(
            loaded.cases,
            evaluators=judges,
            identities={evaluator: opened.identity for evaluator, opened in judges.items()},
            out=out,
            arguments={"judge": name},
            meta={},
            cases_path=path,
            cases_digest=loaded.digest,
            rule=config.stash.get(RULE, None) or _rule(config),
            restart=True,
        )
    write_run(run, _formats(config))
    return _report(run), run.decision.exit_code


def _report(run: Any) -> str:
    from io import StringIO
    from shutil import get_terminal_size

    from rich.console import Console

    from minicheck_eval.reports.finished import print_run

    text = StringIO()
    print_run(run, Console(file=text, width=max(LEAST_WIDTH, get_terminal_size().columns)))
    return text.getvalue()


def _rule(config: pytest.Config) -> Rule:
    from minicheck_eval.harness.gate_file import read_rule

    out, gates, baseline = (
        None if (path := config.getoption(f"grounding_{name}")) is None else Path(path)
        for name in ("out", "gates", "baseline")
    )
    min_rate, max_unjudged = (config.getoption(f"grounding_{name}") for name in ("min_rate", "max_unjudged"))
    return read_rule(out, gates=gates, baseline=baseline, min_rate=min_rate, max_unjudged=max_unjudged)


def _formats(config: pytest.Config) -> tuple[str, ...]:
    from minicheck_eval.errors import BadInput
    from minicheck_eval.reports.writing import read_formats

    formats = read_formats(config.getoption("grounding_report"))
    if formats and not config.getoption("grounding_out"):
        raise BadInput("reports are asked for, and there is no folder for them", hint="name one: --grounding-out DIR")
    return formats


def _words(error: MinicheckError) -> str:
    return f"{error}\nhint: {error.hint}" if error.hint else str(error)


def _tape(config: pytest.Config) -> TapeOptions | None:
    from minicheck_eval.tape.options import TapeOptions

    return TapeOptions.read(config.getoption("grounding_tape"), config.getoption("grounding_mode"))
