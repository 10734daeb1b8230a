"""`minicheck-eval tape`: what recorded answers are there, whether they are whole, and which are still in use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from minicheck_eval.cli.judge_options import not_nan
from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput, IntegrityError

__all__ = ["tape"]

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
MOST_SHOWN = 20


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def tape() -> None:
    """Look after tapes: the recorded answers of judges, in the folder that --tape names."""


@tape.command()
@click.argument("folder", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(folder: Path, *, as_json: bool) -> None:
    """Say for each tape what it holds, of which judge, and when it was recorded."""
    from minicheck_eval.tape.tape import Tape

    tapes = {path.name: Tape.open(path) for path in _tapes(folder)}
    found = {name: {"judge": tape.header.model_dump(), **tape.stats().to_json()} for name, tape in tapes.items()}
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for name, one in found.items():
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in one["records"].items()) or "empty"
        click.echo(f"{name}: {kinds}; recorded {one['first']} to {one['last']}; digest {one['digest'][:12]}")
        click.echo(
            "  " + ", ".join(filter(None, (one["judge"][of] for of in ("model", "backend", "dtype", "reading"))))
        )


@tape.command()
@click.argument("folder", type=FOLDER)
def verify(folder: Path) -> None:
    """Read every line; exit code 3 where an answer is damaged."""
    from minicheck_eval.tape.verify import problems

    found = [problem for path in _tapes(folder) for problem in problems(path)]
    _list([f"{'damaged' if is_severe else 'note'}: {text}" for is_severe, text in found])
    damaged = sum(is_severe for is_severe, _ in found)
    if damaged:
        raise IntegrityError(
            f"{counted(damaged, f'line of {folder} is', f'lines of {folder} are')} damaged",
            hint="restore the files from version control, or remove these lines and record again",
        )
    click.echo(f"{folder} is whole")


@tape.command()
@click.argument("folder", type=FOLDER)
@click.option("--unused", is_flag=True, required=True, help="Drop what no recording has met since the last pruning.")
@click.option("--dry-run", is_flag=True, help="Only say how much would go.")
def prune(folder: Path, *, unused: bool, dry_run: bool) -> None:  # noqa: ARG001 - the flag says what goes, and must be given
    """Drop records: run all your cases with --mode record first, on this machine, and prune when none runs."""
    from minicheck_eval.tape.prune import prune_unused

    for path in _tapes(folder):
        gone, left = prune_unused(path, dry_run=dry_run)
        click.echo(f"{path.name}: {counted(gone, 'line')} {'would go' if dry_run else 'went'}, {left:,} kept")


@tape.command()
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    callback=not_nan,
    default=0.5,
    show_default=True,
    help="Where a support changes sides.",
)
def diff(old: Path, new: Path, *, threshold: float) -> int:
    """Compare two recordings: which answers changed, and which are on one tape only.

    Exit code 0: no answer changed; 1: some did.
    """
    from minicheck_eval.tape.diff import compare
    from minicheck_eval.tape.tape import Tape

    changed = 0
    for before, after in _pairs(old, new):
        drift = compare(Tape.open(before), Tape.open(after), threshold=threshold)
        _list(drift.lines())
        changed += len(drift.changed)
        click.echo(f"{before.name}: {drift.summary()}")
    return int(changed > 0)


def _tapes(folder: Path) -> list[Path]:
    """Return the tapes in a folder, which may be one itself."""
    from minicheck_eval.tape.tape import is_tape

    found = [folder] if is_tape(folder) else sorted(path for path in folder.iterdir() if is_tape(path))
    if not found:
        raise BadInput(f"there is no tape in {folder}", hint="name the folder that --tape names")
    return found


def _pairs(old: Path, new: Path) -> Iterator[tuple[Path, Path]]:
    before, after = _tapes(old), _tapes(new)
    if len(before) == len(after) == 1:
        yield before[0], after[0]
        return
    both = {path.name: path for path in after}
    pairs = [(path, both[path.name]) for path in before if path.name in both]
    if not pairs:
        raise BadInput(f"{old} and {new} have no judge in common", hint="name the folders of two tapes of one judge")
    alone = sorted({path.name for path in (*before, *after)} - {path.name for path, _ in pairs})
    _list([f"{name}: there is no such tape in the other folder" for name in alone])
    yield from pairs


def _list(lines: list[str]) -> None:
    from minicheck_eval.reports.plain import plain

    for line in lines[:MOST_SHOWN]:
        click.echo(plain(line))
    if len(lines) > MOST_SHOWN:
        click.echo(f"and {len(lines) - MOST_SHOWN:,} more")
