"""Drops what no recording has met since it was last pruned, and the texts that nothing names any more."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.files import replace
from minicheck_eval.tape.record import ID_DIGITS, key_of, read_line
from minicheck_eval.tape.shards import DIGITS, Shard, locked, merge, rewrite, shard_path

__all__ = ["note_used", "prune_unused", "used"]

USED = ".used"


def note_used(folder: Path, ids: Collection[str]) -> None:
    """Note on this machine which records a recording has met, by the first digits of their keys."""
    with locked(folder):
        replace(folder / USED, (f"{name}\n".encode() for name in sorted({*ids, *(used(folder) or ())})))


def used(folder: Path) -> set[str] | None:
    """Return which records have been met since the tape was last pruned; None where nothing says."""
    path = folder / USED
    return set(path.read_text(encoding="ascii").split()) if path.exists() else None


def prune_unused(folder: Path, *, dry_run: bool = False) -> tuple[int, int]:
    """Drop the records that have not been met; return how many lines went and how many are left."""
    ids = used(folder)
    if ids is None:
        raise BadInput(
            f"nothing says which records of {folder} are in use",
            hint="run all your cases with this tape and --mode record on this machine, then prune",
        )
    if not dry_run:
        merge(folder)
    gone = left = 0
    with locked(folder):
        ids |= _named(folder, ids)
        for digit in DIGITS:
            path = shard_path(folder, digit)
            lines = list(Shard(path).lines())
            kept = [line for line in lines if key_of(line)[:ID_DIGITS] in ids]
            gone, left = gone + len(lines) - len(kept), left + len(kept)
            if len(kept) < len(lines) and not dry_run:
                rewrite(path, kept)
        if not dry_run:
            (folder / USED).unlink()
    return gone, left


def _named(folder: Path, ids: Collection[str]) -> set[str]:
    """Return the names of the texts that some records name."""
    named: set[str] = set()
    for digit in DIGITS:
        path = shard_path(folder, digit)
        for line in Shard(path).lines():
            if key_of(line)[:ID_DIGITS] in ids:
                record = read_line(line, str(path))
                named.update(record[of] for of in ("template", "prefix") if of in record)
    return named
