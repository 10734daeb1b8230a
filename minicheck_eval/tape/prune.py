"""Drops what no recording has met since it was last pruned, and the texts that nothing names any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path

from minicheck_eval.errors import BadInput
from minicheck_eval.tape.record import ID_DIGITS, key_of, read_line
from minicheck_eval.tape.shards import (
    CLOSED,
    DIGITS,
    USED,
    Shard,
    locked,
    merge_locked,
    read_journal,
    resolved,
    rewrite,
    shard_path,
    used,
)

__all__ = ["prune_unused"]


def prune_unused(folder: Path, *, dry_run: bool = False) -> tuple[int, int]:
    """Drop the records that have not been met; return how many lines went and how many are left."""
    gone = left = 0
    with locked(folder):
        ids = used(folder)
        if CLOSED not in ids:
            raise BadInput(
                f"nothing says which records of {folder} are in use",
                hint="run all your cases with this tape and --mode record on this machine, then prune",
            )
        # Whatever waits to be merged is in use, and stays.
        waiting = read_journal(folder)
        if not dry_run:
            merge_locked(folder)
        ids |= {key[:ID_DIGITS] for key in waiting}
        ids |= _named(folder, ids, waiting.values())
        for digit in DIGITS:
            path = shard_path(folder, digit)
            lines = resolved([*Shard(path).lines(), *(line for key, line in waiting.items() if key[0] == digit)])
            kept = [line for key, line in lines.items() if key[:ID_DIGITS] in ids]
            gone, left = gone + len(lines) - len(kept), left + len(kept)
            if len(kept) < len(lines) and not dry_run:
                rewrite(path, kept)
        if not dry_run:
            (folder / USED).unlink()
    return gone, left


def _named(folder: Path, ids: Collection[str], waiting: Iterable[bytes]) -> set[str]:
    """Return the names of the texts that some records name."""
    named: set[str] = set()
    for line in chain(waiting, *(Shard(shard_path(folder, digit)).lines() for digit in DIGITS)):
        if key_of(line)[:ID_DIGITS] in ids:
            record = read_line(line, str(folder))
            named.update(record[of] for of in ("template", "prefix") if of in record)
    return named
