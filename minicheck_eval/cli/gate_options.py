"""The flags that say what is asked of a run, and beside which run it is set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from minicheck_eval.cli.judge_options import not_nan
from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput

if TYPE_CHECKING:
    from minicheck_eval.harness.cases import Case
    from minicheck_eval.harness.gates import Rule
    from minicheck_eval.harness.run import Run

__all__ = ["gate_options", "gate_rule", "print_beside", "print_due"]

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_DUE = 20
SHORT = ("min_rate", "max_unjudged")

OPTIONS = (
    click.option(
        "--min-rate",
        type=click.FloatRange(0, 1),
        callback=not_nan,
        default=1.0,
        show_default=True,
        help="Least pass rate of every slice.",
    ),
    click.option(
        "--max-unjudged", type=click.IntRange(0), default=0, show_default=True, help="Most cases without a verdict."
    ),
    click.option(
        "--gates",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Gates by evaluator and slice, in place of the two above: a TOML file, or a pyproject.toml.",
    ),
    click.option("--baseline", type=click.Path(path_type=Path), metavar="RUN", help="Folder of a run to compare with."),
    click.option("--undecided-passes", is_flag=True, help="Exit code 0 where too few cases tell; else 1."),
    click.option("--stale-after", metavar="AGE", help="List the cases that are older, such as 180d, for review."),
)


def gate_options(command: Command) -> Command:
    """Add the flags to a verb."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def gate_rule(options: Mapping[str, Any], out: Path) -> Rule:
    """Return what the flags ask of the run in `out`; what cannot be used is found before a judge is asked."""
    from minicheck_eval.harness.compare import baseline_header_of
    from minicheck_eval.harness.gates import GateRule
    from minicheck_eval.harness.stale import age

    baseline, undecided_passes = options["baseline"], options["undecided_passes"]
    if options["stale_after"] is not None:
        age(options["stale_after"])
    if baseline is not None:
        if baseline.resolve() == out.resolve():
            raise BadInput(f"the baseline {baseline} is the run itself", hint="choose another --out")
        baseline_header_of(baseline)
    if options["gates"] is None:
        short = {name: options[name] for name in SHORT}
        return GateRule(**short, undecided_passes=undecided_passes)
    context = click.get_current_context()
    for name in SHORT:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise BadInput(
                f"--gates and --{name.replace('_', '-')} exclude each other", hint="write the rule into the file"
            )
    from minicheck_eval.harness.gate_file import read_gates

    return read_gates(options["gates"], baseline=baseline, undecided_passes=undecided_passes)


def print_beside(run: Run, baseline: Path | None, console: Any) -> None:
    """Print what a run tells beside its baseline, where one was named."""
    if baseline is None:
        return
    from minicheck_eval.harness.compare import compare
    from minicheck_eval.reports.comparison import print_comparison

    print_comparison(run.decision.comparison or compare(run.directory, baseline), console)


def print_due(cases: tuple[Case, ...], stale_after: str | None) -> None:
    """List the cases that are due for review."""
    if stale_after is None:
        return
    from datetime import UTC, datetime

    from minicheck_eval.harness.stale import age, due_for_review
    from minicheck_eval.reports.plain import plain

    found = due_for_review(cases, after=age(stale_after), today=datetime.now(UTC))
    undated = f"; {found.undated} without a date" if found.undated else ""
    click.echo(
        f"\nolder than {stale_after} and due for review: {len(found.due)} of {counted(len(cases), 'case')}{undated}"
    )
    for name, date in found.due[:MOST_DUE]:
        click.echo(f"  {date}  {plain(name, most=200)}")
    if len(found.due) > MOST_DUE:
        click.echo(f"  and {len(found.due) - MOST_DUE} more")
