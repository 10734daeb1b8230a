"""`minicheck-eval calibrate`: hold a judge against itself and against people, and fit its threshold."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicheck_eval.cli.judge_options import evaluator_option, judge_arguments, judge_options
from minicheck_eval.errors import BadInput

if TYPE_CHECKING:
    from minicheck_eval.harness.calibration import CalibrationReport

__all__ = ["calibrate"]

A_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("cases", type=click.Path(path_type=Path))
@click.option("--judge", default="minicheck-nano", show_default=True, metavar="NAME", help="Judge to ask.")
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="How often the same is asked in the same way.",
)
@click.option(
    "--probes/--no-probes",
    default=True,
    show_default=True,
    help="Ask in other batches, in another order and beside unrelated text too.",
)
@click.option(
    "--batch-cases", type=click.IntRange(1), default=32, show_default=True, help="Cases that are asked together."
)
@click.option("--skip-bad", is_flag=True, help="Go on without the rows that cannot be read, and name them.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of resamples, folds and the other order.")
@click.option("--save", type=A_FILE, metavar="FILE", help="Write the threshold, if it is better, and the map.")
@click.option("--map", "map_kind", type=click.Choice(["platt", "isotonic"]), help="Map of supports to save.")
@click.option("--json", "json_path", type=A_FILE, metavar="FILE", help="Write all numbers.")
@click.option("--diagram", type=A_FILE, metavar="FILE", help="Draw the reliability diagram as SVG.")
@evaluator_option
@judge_options
def calibrate(
    cases: Path,
    *,
    save: Path | None,
    map_kind: str | None,
    json_path: Path | None,
    diagram: Path | None,
    **options: Any,
) -> int:
    """Tell what a judge's verdicts on CASES are worth: how steady they are, and how far people's labels agree.

    CASES is a file of cases, and the judge is asked; or the folder of a run, and its verdicts are used as they are. A
    file that is saved is used with --calibration. Exit code 0: measured; 2: bad input; 3: could not judge.
    """
    from rich.console import Console

    from minicheck_eval.harness.files import encode, replace
    from minicheck_eval.reports.calibration import print_calibration

    if map_kind and not save:
        raise BadInput(f"the map {map_kind} is to go nowhere", hint="name a file: --save FILE")
    if diagram is not None and find_spec("matplotlib") is None:
        raise BadInput("a diagram needs Matplotlib", hint="install it: pip install 'minicheck-eval[benchmarks]'")
    report = _examine(cases, options)
    print_calibration(report, Console())
    if json_path is not None:
        replace(json_path, [encode(report.to_json(), indent=2), b"\n"])
    if diagram is not None:
        _draw(report, diagram)
    if save is not None:
        _save(report, map_kind, save)
    return 0


def _examine(cases: Path, options: dict[str, Any]) -> CalibrationReport:
    from dataclasses import asdict

    from minicheck_eval.harness.calibration import examine, examine_run
    from minicheck_eval.harness.calibration_rounds import ask_rounds
    from minicheck_eval.harness.cases import load
    from minicheck_eval.harness.cost import Meter

    seed = options["seed"]
    if cases.is_dir():
        return examine_run(cases, options["evaluator"], seed=seed)
    loaded = load(cases, skip_bad=options["skip_bad"])
    for problem in loaded.problems:
        click.echo(f"left out: {problem}", err=True)
    from minicheck_eval.judge import open_judge
    from minicheck_eval.reports.progress import progress_bar

    opened = open_judge(options["judge"], evaluator=options["evaluator"], **judge_arguments(options))
    with opened as judge, progress_bar() as progress:
        for note in judge.notes:
            click.echo(note, err=True)
        meter = Meter({options["evaluator"]: judge})
        rounds = list(
            ask_rounds(
                loaded.cases,
                judge,
                repeats=options["repeats"],
                probes=options["probes"],
                batch_cases=options["batch_cases"],
                seed=seed,
                progress=progress,
            )
        )
        meter.charge(options["evaluator"])
    usage = {name: asdict(spent) for name, spent in meter.spent.get(options["evaluator"], {}).items()}
    source = {"path": str(cases), "sha256": loaded.digest, "count": len(loaded.cases)}
    return examine(rounds, judge=judge.identity.to_json(), cases=source, seed=seed, usage=usage)


def _draw(report: CalibrationReport, path: Path) -> None:
    from minicheck_eval.harness.files import replace
    from minicheck_eval.reports.reliability_diagram import reliability_svg

    if report.agreement is None:
        raise BadInput(f"there is nothing to draw: {report.no_agreement}", hint="give some cases a label")
    replace(path, [reliability_svg(report.agreement, report.judge["judge"])])


def _save(report: CalibrationReport, map_kind: str | None, path: Path) -> None:
    from minicheck_eval.harness.calibration import calibration_of
    from minicheck_eval.harness.files import replace

    found = calibration_of(report, map_kind)
    if map_kind and (found is None or found.map is None):
        click.echo(f"No {map_kind} map is saved: beyond noise it is not better than the judge's own support.")
    if found is None:
        click.echo("Nothing is saved: no other threshold is better beyond noise.")
        return
    replace(path, [found.to_bytes()])
    click.echo(f"Saved; decide by it with: --calibration {path}")
