"""The flags that say what is asked of a run, and beside which run it is set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from minicheck_eval.cli.judge_options import not_nan
from minicheck_eval.counts import counted

if TYPE_CHECKING:
    from minicheck_eval.harness.cases import Case

__all__ = ["GATES", "gate_options", "print_due"]

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_DUE = 20
GATES = ("gates", "baseline", "min_rate", "max_unjudged", "undecided_passes")
"""Options that say what is asked of a run."""


def _read_age(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    from minicheck_eval.harness.stale import age

    if text is not None:
        age(text)
    return text


OPTIONS = (
    click.option(
        "--min-rate",
        type=click.FloatRange(0, 1),
        callback=not_nan,
        help="Least pass rate of every slice; else 1.",
    ),
    click.option("--max-unjudged", type=click.IntRange(0), help="Most cases without a verdict; else 0."),
    click.option(
        "--gates",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Gates by evaluator and slice, in place of the two above: a TOML file, or a pyproject.toml.",
    ),
    click.option("--baseline", type=click.Path(path_type=Path), metavar="RUN", help="Folder of a run to compare with."),
    click.option("--undecided-passes", is_flag=True, help="Exit code 0 where too few cases tell; else 1."),
    click.option(
        "--stale-after",
        metavar="AGE",
        callback=_read_age,
        help="List cases that are older, such as 180d, for review.",
    ),
)


def gate_options(command: Command) -> Command:
    """Add the flags to a verb."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def print_due(cases: Sequence[Case], stale_after: str | None) -> None:
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
