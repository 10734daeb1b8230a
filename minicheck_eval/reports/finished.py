"""A run that has just finished, as whoever began it shows it: with its baseline, and with the reports asked for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from minicheck_eval.harness.compare import compare
from minicheck_eval.harness.run import Run
from minicheck_eval.reports.comparison import print_comparison
from minicheck_eval.reports.terminal import print_report
from minicheck_eval.reports.view import open_view
from minicheck_eval.reports.writing import file_names, write_reports

__all__ = ["print_run", "write_run"]


def print_run(run: Run, console: Console) -> None:
    """Print a run, and what it tells beside its baseline."""
    print_report(run, console)
    baseline = run.decision.rule.baseline
    if baseline is not None:
        print_comparison(run.decision.comparison or compare(run.directory, baseline), console)


def write_run(run: Run, formats: Sequence[str]) -> None:
    """Write reports into the folder of a run."""
    if formats:
        write_reports(open_view(run.directory, run.decision.rule.baseline), file_names(formats, run.directory))
