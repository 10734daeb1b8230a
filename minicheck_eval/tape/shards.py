"""The files of a tape: sorted JSON Lines, in one shard for each first digit of the key, looked up in place.

What is new is appended to a journal first, synced, and merged into the shards later: whatever dies in between, the next
to open the tape for writing merges what it left.
"""

from __future__ import annotations

import os
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from filelock import FileLock

from minicheck_eval.errors import IntegrityError
from minicheck_eval.harness.files import replace, writing
from minicheck_eval.tape.record import ID_DIGITS, is_line, key_of, read_line, recorded_on, same_answer

__all__ = [
    "CLOSED",
    "DIGITS",
    "JOURNAL",
    "USED",
    "Shard",
    "append",
    "files",
    "locked",
    "merge",
    "merge_locked",
    "note_used",
    "read_journal",
    "resolved",
    "rewrite",
    "shard_path",
    "used",
]

DIGITS = "0123456789abcdef"
JOURNAL = "new.jsonl"
LOCK = ".lock"
USED = ".used"
CLOSED = "closed"
INDEX_DIGITS = 16
"""Of a key: an unsigned 64-bit number."""


def files(folder: Path) -> list[Path]:
    """Return those of a tape's files that are there and hold answers."""
    paths = [*(shard_path(folder, digit) for digit in DIGITS), folder / JOURNAL]
    return [path for path in paths if path.exists()]


def shard_path(folder: Path, digit: str) -> Path:
    """Return the file that holds the keys of one first digit."""
    return folder / f"{digit}.jsonl"


class Shard:
    """One file, open for reading; in memory is only its index, of 16 bytes for each line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys = array("Q")
        self._starts = array("Q")
        self._lock = Lock()  # a line is sought and then read
        with suppress(FileNotFoundError):
            # Once open, it stays the same: another recorder may put a new file in its place.
            self._file = path.open("rb")
            weakref.finalize(self, self._file.close)
            self._index()

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the record whose key begins with `key`: of two the later one."""
        wanted = int(key[:INDEX_DIGITS], 16)
        place = bisect_left(self._keys, wanted)
        found: list[bytes] = []
        while place < len(self._keys) and self._keys[place] == wanted:
            line = self._line(self._starts[place])
            if key_of(line).startswith(key):
                found.append(line)
            place += 1
        if not found:
            return None
        return read_line(found[0] if len(found) == 1 else max(found, key=_later), str(self.path))

    def lines(self) -> Iterator[bytes]:
        """Read all lines in the order of their keys."""
        return map(self._line, self._starts)

    def _line(self, start: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return self._file.readline()

    def _index(self) -> None:
        start = 0
        ordered = True
        for number, line in enumerate(self._file, 1):
            check_line(line, f"{self.path}:{number}")
            key = int(key_of(line)[:INDEX_DIGITS], 16)
            ordered = ordered and (not self._keys or self._keys[-1] <= key)
            self._keys.append(key)
            self._starts.append(start)
            start += len(line)
        if not ordered:
            # A merge of two branches may have put lines side by side that are not neighbours.
            pairs = sorted(zip(self._keys, self._starts, strict=True))
            self._keys, self._starts = array("Q", map(itemgetter(0), pairs)), array("Q", map(itemgetter(1), pairs))


def check_line(line: bytes, where: str) -> None:
    """Raise `IntegrityError` for what is no record: a torn line, or what a merge left unresolved."""
    if is_line(line) and set(key_of(line)) <= set(DIGITS):
        return
    raise IntegrityError(
        f"{where} is no record: {line[:60]!r}",
        hint="restore the file from version control, or remove that line and record again",
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a tape."""
    with writing(folder), FileLock(folder / LOCK):
        yield


def append(folder: Path, lines: Iterable[bytes]) -> None:
    """Add lines to the journal and return when they are on the disk."""
    path = folder / JOURNAL
    with locked(folder), path.open("a+b") as stream:
        _cut_torn_end(stream)
        stream.write(b"".join(lines))
        stream.flush()
        os.fsync(stream.fileno())


def read_journal(folder: Path) -> dict[str, bytes]:
    """Return what waits to be merged, by key; what a crash left unfinished is passed over."""
    path = folder / JOURNAL
    if not path.exists():
        return {}
    with path.open("rb") as stream:
        lines = [line for line in stream if line.endswith(b"\n")]
    for number, line in enumerate(lines, 1):
        check_line(line, f"{path}:{number}")
    return {key_of(line): line for line in lines}


def merge(folder: Path) -> None:
    """Put the journal's lines into the shards; dying in between loses nothing, since it can be done again."""
    with locked(folder):
        merge_locked(folder)


def merge_locked(folder: Path) -> None:
    """Merge, where the lock is held already."""
    new = read_journal(folder)
    if new:
        # Whatever is recorded is in use, be its recorder killed or not at its end.
        note_used(folder, (key[:ID_DIGITS] for key in new))
    for digit in DIGITS:
        mine = {key: line for key, line in new.items() if key[0] == digit}
        if mine:
            _merge_shard(shard_path(folder, digit), mine)
    (folder / JOURNAL).unlink(missing_ok=True)


def note_used(folder: Path, ids: Iterable[str]) -> None:
    """Note on this machine which records a recording has met, by the first digits of their keys; the lock is held."""
    replace(folder / USED, (f"{name}\n".encode() for name in sorted({*ids, *used(folder)})))


def used(folder: Path) -> set[str]:
    """Return which records have been met since the tape was last pruned, and `CLOSED` where a recording ended."""
    path = folder / USED
    return set(path.read_text(encoding="ascii").split()) if path.exists() else set()


def rewrite(path: Path, lines: Iterable[bytes]) -> None:
    """Replace a shard by some of its lines, sorted and each key once; a file with none is removed."""
    content = sorted(resolved(lines).values())
    if content:
        replace(path, content)
    else:
        path.unlink(missing_ok=True)


def resolved(lines: Iterable[bytes]) -> dict[str, bytes]:
    """Return one line for each key: of two the later one."""
    found: dict[str, bytes] = {}
    for line in lines:
        key = key_of(line)
        found[key] = max(line, found[key], key=_later) if key in found else line
    return found


def _merge_shard(path: Path, new: Mapping[str, bytes]) -> None:
    old = resolved(Shard(path).lines())
    # The same answer on another day changes nothing, so that a diff shows what changed.
    changed = {key: line for key, line in new.items() if key not in old or not same_answer(line, old[key])}
    if changed:
        replace(path, sorted({**old, **changed}.values()))


def _later(line: bytes) -> tuple[str, bytes]:
    return recorded_on(line), line


def _cut_torn_end(stream: BinaryIO) -> None:
    """Cut off what a crash left of a line that was never finished."""
    size = stream.seek(0, os.SEEK_END)
    if size:
        stream.seek(size - 1)
        if stream.read() != b"\n":
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)
