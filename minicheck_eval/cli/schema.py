"""`minicheck-eval schema`: what programs may rely on in report.json."""

from __future__ import annotations

import json

import click

__all__ = ["schema"]


@click.command()
def schema() -> None:
    """Print the JSON Schema of report.json."""
    from minicheck_eval.reports.json_report import report_schema

    click.echo(json.dumps(report_schema(), indent=2))
