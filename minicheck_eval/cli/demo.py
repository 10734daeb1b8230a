"""`minicheck-eval demo`: the packaged cases, judged and reported like any others."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from minicheck_eval.cli.run import run
from minicheck_eval.errors import CouldNotJudge

__all__ = ["CASES", "demo"]

CASES = Path(__file__).with_name("demo.jsonl")
FIRST_WORDS = """\
Some answers of the demo are wrong on purpose, and some documents were not found.  A judge that sees it fails them, and
with them the gate: FAILED is what you should read below.
"""
LAST_WORDS = """
Check your own cases: minicheck-eval run CASES.jsonl (rows look like those of {cases})"""


@click.command()
@click.option("--judge", default="minicheck-nano", show_default=True, metavar="NAME", help="Judge to ask.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder that keeps the run; else it is not kept.")
def demo(judge: str, out: Path | None) -> int:
    """Check the packaged cases: a returns-policy assistant, and small cases that are easy to read.

    Exit code 0: judged, whatever came out; 2: bad input; 3: could not judge.
    """
    if out is not None:
        return _show(judge, out)
    with TemporaryDirectory(prefix="minicheck-eval-demo-") as folder:
        code = _show(judge, Path(folder))
    click.echo("the folder of this run was temporary and is removed: --out DIR keeps it", err=True)
    return code


def _show(judge: str, out: Path) -> int:
    click.echo(FIRST_WORDS)
    # The verb itself, so that the demo shows what a user's own run will show.
    code = run.main([str(CASES), f"--judge={judge}", f"--out={out}"], standalone_mode=False)
    if code == CouldNotJudge.exit_code:
        return CouldNotJudge.exit_code
    click.echo(f"\n{_agreement(out)}{LAST_WORDS.format(cases=CASES)}")
    return 0


def _agreement(out: Path) -> str:
    """Say how often the judge agreed with the labels of the demo, and where it did not."""
    from minicheck_eval.harness.journal import read_records

    verdicts = {
        record["id"]: record["verdicts"]["fact-checking"]["pass"] == record["label"]
        for record in read_records(out)
        if record["label"] is not None
    }
    wrong = [name for name, agrees in verdicts.items() if not agrees]
    erred = f"; it erred on {', '.join(wrong)}" if wrong else ""
    return f"{len(verdicts) - len(wrong)} of {len(verdicts)} verdicts of the judge agree with the labels{erred}."
