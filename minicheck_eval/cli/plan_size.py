"""`minicheck-eval plan-size`: how many cases a finding takes."""

from __future__ import annotations

import click

from minicheck_eval.cli.judge_options import not_nan
from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput

__all__ = ["plan_size"]

ROUNDING = 1e-9
INSIDE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(name="plan-size")
@click.option("--rate", type=click.FloatRange(0, 1), callback=not_nan, required=True, help="Pass rate to expect.")
@click.option("--width", type=INSIDE, callback=not_nan, help="Wanted width of the interval of 95 %, such as 0.1.")
@click.option("--drop", type=INSIDE, callback=not_nan, help="Drop of the rate that should be seen, such as 0.05.")
@click.option(
    "--flips",
    type=click.FloatRange(0, 1, max_open=True),
    callback=not_nan,
    default=0.0,
    show_default=True,
    help="Share of cases that newly pass all the same.",
)
@click.option(
    "--power", type=INSIDE, callback=not_nan, default=0.8, show_default=True, help="How often it should be seen."
)
def plan_size(rate: float, width: float | None, drop: float | None, flips: float, power: float) -> None:
    """Say how many cases an interval of a wanted width takes, or a drop that can be seen."""
    from minicheck_eval.harness.sample_size import cases_for_drop, cases_for_paired_drop, cases_for_width

    if width is None and drop is None:
        raise BadInput("neither a width nor a drop is given", hint="give --width 0.1, --drop 0.05, or both")
    if width is not None:
        _say(
            cases_for_width(rate, width),
            f"for an interval of at most {counted(100 * width, 'point')} at {100 * rate:g} %",
        )
    if drop is None:
        return
    lost, after = drop + flips, max(rate - drop, 0.0)
    if lost > rate + ROUNDING or flips > 1 - rate + ROUNDING:
        raise BadInput(
            f"a rate of {rate:g} leaves no room for {lost:g} newly failing and {flips:g} newly passing",
            hint="--drop and --flips together are at most --rate, and --flips at most what does not pass",
        )
    seen = f"to see a drop from {100 * rate:g} % to {100 * after:g} % in {100 * power:g} of 100 comparisons"
    same = f"of the same cases, {100 * flips:g} % newly passing"
    _say(cases_for_paired_drop(lost, flips, power=power), f"{seen}, {same}")
    _say(cases_for_drop(rate, after, power=power), f"{seen}, with different cases in each run")


def _say(count: int | None, what: str) -> None:
    click.echo(f"{'more cases than can be had' if count is None else counted(count, 'case')} {what}")
