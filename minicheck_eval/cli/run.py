"""`minicheck-eval run`: check a file of cases, or go on with a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicheck_eval.cli.gate_options import GATES, gate_options, print_due
from minicheck_eval.cli.judge_options import ABOVE_0, judge_arguments, judge_options, not_nan
from minicheck_eval.errors import BadInput, CouldNotJudge, RunMismatch
from minicheck_eval.evaluators.names import EVALUATORS, RETRIEVAL

if TYPE_CHECKING:
    from minicheck_eval.harness.application import App, Application
    from minicheck_eval.harness.cases import Loaded
    from minicheck_eval.harness.gates import Rule
    from minicheck_eval.harness.run import Run
    from minicheck_eval.tape.options import TapeOptions

__all__ = ["run"]

MOST_WARNINGS = 10
LEAST_WIDTH = 20
SHAPING = (
    "judge",
    "dtype",
    "threshold",
    "chunk_tokens",
    "quantize",
    "parity",
    "recheck",
    "evaluators",
    "app",
    "pass_score",
    "reading",
    "yes_word",
    "no_word",
    "fallback",
    "fallback_on",
    "fallback_band",
    "window_tokens",
    "tape",
    "mode",
)
"""Options that make other verdicts."""


def _read_meta(_: click.Context, __: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    meta: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} should be key=value")
        if key in meta:
            raise click.BadParameter(f"the key {key!r} is given twice")
        meta[key] = value
    return meta


def _read_evaluators(_: click.Context, __: click.Parameter, text: str) -> list[str]:
    names = list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    if wrong := [name for name in names if name not in (*EVALUATORS, RETRIEVAL)]:
        raise click.BadParameter(f"{wrong[0]!r} is not one of {', '.join((*EVALUATORS, RETRIEVAL))}")
    if not names:
        raise click.BadParameter("no evaluator is named")
    return names


@click.command()
@click.argument("cases", type=click.Path(path_type=Path))
@click.option("--judge", default="minicheck-nano", show_default=True, metavar="NAME", help="Judge to ask.")
@click.option(
    "--evaluators",
    default="fact-checking",
    show_default=True,
    metavar="NAMES",
    callback=_read_evaluators,
    help=f"What the judge is asked, by commas: {', '.join(EVALUATORS)}; all but the first want a chat model.  "
    "retrieval is checked without a judge, always where cases say what must be retrieved; alone it needs no judge.",
)
@click.option(
    "--app", metavar="MODULE:FUNCTION", help="Application that answers the questions; else answers are in the cases."
)
@click.option(
    "--app-concurrency", type=click.IntRange(1), default=4, show_default=True, help="Most questions to it at once."
)
@click.option(
    "--app-retries", type=click.IntRange(0), default=2, show_default=True, help="How often it is asked again."
)
@click.option(
    "--app-timeout",
    type=ABOVE_0,
    callback=not_nan,
    default=60.0,
    show_default=True,
    help="Seconds for an answer of it.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run; else runs/CASES-JUDGE.")
@click.option("--skip-bad", is_flag=True, help="Go on without the rows that cannot be read, and name them.")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", callback=_read_meta, help="Recorded with the run.")
@click.option(
    "--batch-cases", type=click.IntRange(1), default=32, show_default=True, help="Cases judged and recorded together."
)
@click.option("--restart", is_flag=True, help="Forget the run that the folder holds.")
@click.option("--report", metavar="FORMATS", help="Write html, json, markdown, junit into the run's folder.")
@gate_options
@judge_options
def run(cases: Path, out: Path | None, *, restart: bool, report: str | None, **options: Any) -> int:
    """Check every case of CASES (.jsonl, .json or .csv, also .gz), and decide.

    A run that was interrupted goes on with the same command.  Exit code 0: passed; 1: did not pass; 2: bad input; 3:
    could not judge.
    """
    from rich.console import Console

    from minicheck_eval.harness.cases import load
    from minicheck_eval.harness.gate_file import read_rule
    from minicheck_eval.reports.finished import print_run, write_run
    from minicheck_eval.reports.writing import read_formats

    out = out or _folder(cases, options["judge"], options["evaluators"])
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a folder", hint="choose another --out")
    rule = read_rule(out, **{name: options[name] for name in GATES})
    formats = read_formats(report)
    loaded = load(cases, skip_bad=options["skip_bad"])
    _warn(f"left out: {problem}" for problem in loaded.problems)
    result = _run(cases, loaded, out, rule=rule, restart=restart, **options)
    _warn(result.repairs)
    try:
        console = Console()
        console = console if console.width >= LEAST_WIDTH else Console(width=LEAST_WIDTH)
        print_run(result, console)
        print_due(loaded.cases, options["stale_after"])
    except OSError as error:
        raise CouldNotJudge(
            f"the report cannot be printed: {error.strerror}", hint=f"the run is in {result.directory}"
        ) from error
    write_run(result, formats)
    return result.decision.exit_code


def _run(
    cases: Path, loaded: Loaded, out: Path, *, rule: Rule, restart: bool, meta: dict[str, str], **options: Any
) -> Run:
    from minicheck_eval.harness.application import load_app
    from minicheck_eval.harness.run import finished_run, run_cases
    from minicheck_eval.judge import identity_without_weights, open_judges
    from minicheck_eval.reports.progress import progress_bar

    name, how = options["judge"], judge_arguments(options)
    options = {key: _recorded(value) for key, value in options.items()}
    shape = {key: options[key] for key in SHAPING}
    known = {key: value for key, value in how.items() if key not in ("dtype", "device", "max_memory", "server", "tape")}
    asked = [evaluator for evaluator in options["evaluators"] if evaluator != RETRIEVAL]
    app = None if options["app"] is None else load_app(options["app"])
    same: dict[str, Any] = {"cases_digest": loaded.digest, "meta": meta, "rule": rule}
    restart = restart or _is_on_tape(out, how["tape"], app)
    if not restart:
        identities = {evaluator: identity_without_weights(name, evaluator=evaluator, **known) for evaluator in asked}
        app_json = None if app is None else app.to_json()
        done = finished_run(out, identities=identities, arguments=shape, app=app_json, **same)
        if done is not None and app is not None:
            _warn([f"{out} holds a finished run and is shown as it is: to ask the application again add --restart"])
        if done is not None:
            return done
    with (
        _application(app, options) as application,
        open_judges(name, asked, **how) as judges,
        progress_bar() as progress,
    ):
        _warn(dict.fromkeys(note for judge in judges.values() for note in judge.notes))
        return run_cases(
            loaded.cases,
            evaluators=judges,
            identities={evaluator: judge.identity for evaluator, judge in judges.items()},
            out=out,
            arguments=options,
            cases_path=cases,
            application=application,
            left_out=loaded.problems,
            restart=restart,
            batch_cases=options["batch_cases"],
            progress=progress,
            **same,
        )


def _is_on_tape(out: Path, tape: TapeOptions | None, app: App | None) -> bool:
    """Tell whether a run begins anew since all that it needs again is on a tape; refuse to forget what is on none."""
    from minicheck_eval.harness.journal import OTHER_OUT, read_header
    from minicheck_eval.tape.options import Mode

    if tape is None or not tape.active:
        return False
    header = read_header(out)
    arguments = {} if header is None else header.get("arguments", {})
    there = None if arguments.get("mode") == Mode.BYPASS else arguments.get("tape")
    if header is not None and there != str(tape.folder):
        raise RunMismatch(f"{out} holds a run whose answers are not on the tape {tape.folder}", hint=OTHER_OUT)
    # What an application answered is on no tape: an interrupted run of one goes on.
    return app is None or header is None or header.get("status") == "finished"


def _recorded(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _application(app: App | None, options: dict[str, Any]) -> AbstractContextManager[Application | None]:
    from minicheck_eval.harness.application import Application

    if app is None:
        return nullcontext()
    return Application(
        app,
        concurrency=options["app_concurrency"],
        retries=options["app_retries"],
        timeout_s=options["app_timeout"],
    )


def _folder(cases: Path, judge: str, evaluators: Sequence[str]) -> Path:
    """Name the folder of a run; a judge may be named by an address or a path."""
    from minicheck_eval.harness.files import file_name

    stem = Path(cases.name.removesuffix(".gz")).stem
    parts = [stem, *([] if list(evaluators) == [RETRIEVAL] else [judge])]
    parts += [] if list(evaluators) == ["fact-checking"] else evaluators
    return Path("runs") / file_name("-".join(parts))


def _warn(messages: Any) -> None:
    lines = list(messages)
    for line in lines[:MOST_WARNINGS]:
        click.echo(line, err=True)
    if len(lines) > MOST_WARNINGS:
        click.echo(f"and {len(lines) - MOST_WARNINGS} more", err=True)
