"""`minicheck-eval compare`: set a run beside a baseline."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["compare"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("baseline", type=click.Path(path_type=Path))
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write it as JSON, too.")
def compare(run: Path, baseline: Path, json_file: Path | None) -> int:
    """Compare the run in the folder RUN with the one in BASELINE, case by case.

    Exit code 0: compared, whatever came out; 2: bad input.  A gate on the difference is `run --baseline`.
    """
    from rich.console import Console

    from minicheck_eval.harness.compare import compare as compare_runs
    from minicheck_eval.harness.files import encode, replace
    from minicheck_eval.reports.comparison import print_comparison

    found = compare_runs(run, baseline)
    if json_file is not None:
        replace(json_file, [encode(found.to_json(), indent=2), b"\n"])
    print_comparison(found, Console())
    return 0
