"""`minicheck-eval report`: a finished run as files for people and programs."""

from __future__ import annotations

from pathlib import Path

import click

from minicheck_eval.errors import BadInput

__all__ = ["report"]

FILE = click.Path(path_type=Path, allow_dash=True)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--html", type=FILE, metavar="FILE", help="One page that opens from disk, without network.")
@click.option("--json", type=FILE, metavar="FILE", help="Everything, for programs; `schema` prints its JSON Schema.")
@click.option("--markdown", type=FILE, metavar="FILE", help="For a comment on a pull request or a job's summary.")
@click.option("--junit", type=FILE, metavar="FILE", help="Each gate as a test, for whatever shows test results.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="RUN", help="Run to compare with; else its own.")
def report(run: Path, baseline: Path | None, **paths: Path | None) -> None:
    """Report the run in the folder RUN; a FILE of - is stdout.

    Exit code 0: written, whatever the decision was; 2: bad input; 3: could not write.
    """
    from minicheck_eval.reports.view import open_view
    from minicheck_eval.reports.writing import write_reports

    wanted = {name: path for name, path in paths.items() if path is not None}
    if not wanted:
        raise BadInput("no report is asked for", hint="name a file: --html, --json, --markdown or --junit")
    write_reports(open_view(run, baseline or _recorded(run)), wanted)


def _recorded(run: Path) -> Path | None:
    from minicheck_eval.harness.baseline import recorded_baseline
    from minicheck_eval.harness.journal import read_header

    header = read_header(run) or {}
    try:
        return recorded_baseline(header)
    except BadInput as error:
        click.echo(f"note: the baseline of this run is gone: {error}; --baseline RUN names another", err=True)
        return None
