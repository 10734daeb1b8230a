"""`minicheck-eval run`: check a file of cases, or go on with a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicheck_eval.cli.gate_options import gate_options, gate_rule, print_beside, print_due
from minicheck_eval.cli.judge_options import judge_arguments, judge_options
from minicheck_eval.errors import BadInput, CouldNotJudge

if TYPE_CHECKING:
    from minicheck_eval.harness.cases import Loaded
    from minicheck_eval.harness.run import Run

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
    "evaluator",
    "pass_score",
    "reading",
    "yes_word",
    "no_word",
    "fallback",
    "fallback_on",
    "fallback_band",
    "window_tokens",
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


@click.command()
@click.argument("cases", type=click.Path(path_type=Path))
@click.option("--judge", default="minicheck-nano", show_default=True, metavar="NAME", help="Judge to ask.")
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
    from minicheck_eval.reports.terminal import print_report
    from minicheck_eval.reports.view import open_view
    from minicheck_eval.reports.writing import file_names, write_reports

    out = out or _folder(cases, options["judge"], options["evaluator"])
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a folder", hint="choose another --out")
    paths = file_names(report, out) if report is not None else {}
    loaded = load(cases, skip_bad=options["skip_bad"])
    _warn(f"left out: {problem}" for problem in loaded.problems)
    result = _run(cases, loaded, out, restart=restart, **options)
    _warn(result.repairs)
    try:
        console = Console()
        console = console if console.width >= LEAST_WIDTH else Console(width=LEAST_WIDTH)
        print_report(result, console)
        print_beside(result, options["baseline"], console)
        print_due(loaded.cases, options["stale_after"])
    except OSError as error:
        raise CouldNotJudge(
            f"the report cannot be printed: {error.strerror}", hint=f"the run is in {result.directory}"
        ) from error
    if paths:
        write_reports(open_view(out, options["baseline"]), paths)
    return result.decision.exit_code


def _run(cases: Path, loaded: Loaded, out: Path, *, restart: bool, meta: dict[str, str], **options: Any) -> Run:
    from minicheck_eval.harness.run import finished_run, run_cases
    from minicheck_eval.reports.progress import progress_bar

    rule = gate_rule(options, out)
    from minicheck_eval.judge import identity_without_weights, open_judge

    name, how = options["judge"], judge_arguments(options)
    options = {key: _recorded(value) for key, value in options.items()}
    shape = {key: options[key] for key in SHAPING}
    known = {key: value for key, value in how.items() if key not in ("dtype", "device", "max_memory", "server")}
    if not restart:
        identity = identity_without_weights(name, **known)
        done = finished_run(out, cases_digest=loaded.digest, identity=identity, arguments=shape, meta=meta, rule=rule)
        if done is not None:
            return done
    with open_judge(name, **how) as judge, progress_bar() as progress:
        _warn(judge.notes)
        return run_cases(
            loaded.cases,
            evaluator=judge,
            identity=judge.identity,
            out=out,
            arguments=options,
            meta=meta,
            cases_path=cases,
            cases_digest=loaded.digest,
            left_out=loaded.problems,
            rule=rule,
            restart=restart,
            evaluator_name=options["evaluator"],
            batch_cases=options["batch_cases"],
            progress=progress,
        )


def _recorded(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _folder(cases: Path, judge: str, evaluator: str) -> Path:
    """Name the folder of a run; a judge may be named by an address or a path."""
    stem = Path(cases.name.removesuffix(".gz")).stem
    judge += "" if evaluator == "fact-checking" else f"-{evaluator}"
    return Path("runs") / f"{stem}-{re.sub(r'[^A-Za-z0-9._-]+', '-', judge).strip('-.')}"


def _warn(messages: Any) -> None:
    lines = list(messages)
    for line in lines[:MOST_WARNINGS]:
        click.echo(line, err=True)
    if len(lines) > MOST_WARNINGS:
        click.echo(f"and {len(lines) - MOST_WARNINGS} more", err=True)
