"""A tape: the recorded answers of one judge, in one folder that git can keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.files import writing
from minicheck_eval.harness.provenance import now
from minicheck_eval.tape.header import HEADER, TapeHeader
from minicheck_eval.tape.record import line_of, read_line, recorded_on, text_key
from minicheck_eval.tape.shards import (
    CLOSED,
    DIGITS,
    Shard,
    append,
    files,
    locked,
    merge,
    note_used,
    read_journal,
    resolved,
    shard_path,
)

__all__ = ["Stats", "Tape", "is_tape"]

MOST_UNMERGED = 50_000
"""Lines in the journal, about 20 MB, and it is merged while the recording goes on."""
DAY = 10
GIT = {".gitattributes": b"*.jsonl text eol=lf merge=union\n", ".gitignore": b".lock\n.used\n*.new\n"}
"""Lines that two branches add are all kept, and what is of this machine stays here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a tape holds."""

    records: Mapping[str, int] = field(default_factory=dict)
    """By kind."""
    first: str | None
    last: str | None
    """The days of the oldest and of the newest answer."""
    digest: str
    """SHA-256 over all records, whatever order they lie in."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON-ready values."""
        return {"records": dict(self.records), "first": self.first, "last": self.last, "digest": self.digest}


class Tape:
    """Recorded answers by the keys of what was asked; open in as many processes as one likes, for writing too."""

    def __init__(self, folder: Path, header: TapeHeader, *, writes: bool) -> None:
        self.folder = folder
        self.header = header
        self.writes = writes
        self._lock = RLock()  # questions are counted in another thread than answers are looked up in
        self._shards: dict[str, Shard] = {}
        self._new = read_journal(folder)

    @classmethod
    def open(cls, folder: Path) -> Tape:
        """Open a recorded tape for reading."""
        header = _header(folder)
        if header is None:
            raise BadInput(
                f"there is no tape in {folder}",
                hint="record one: the same command with --mode record, on a machine that has the judge",
            )
        return cls(folder, header, writes=False)

    @classmethod
    def record(cls, folder: Path, judge: TapeHeader) -> Tape:
        """Open a tape for writing, a new one where there is none; it must be of the same judge."""
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            header = _header(folder)
            if header is not None:
                header.check(judge, folder, opened=True)
            completed = judge if header is None else header.completed(judge)
            if completed != header:
                for name, content in GIT.items():
                    (folder / name).write_bytes(content)
                completed.write(folder)
        merge(folder)
        return cls(folder, completed, writes=True)

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the record whose key is, or begins with, `key`."""
        with self._lock:
            new = self._new.get(key)
            return self._shard(key[0]).find(key) if new is None else read_line(new, str(self.folder))

    def texts(self, name: str) -> list[str]:
        """Return the texts that a record names."""
        with self._lock:
            new = next((line for key, line in self._new.items() if key.startswith(name)), None)
            record = self._shard(name[0]).find(name) if new is None else read_line(new, str(self.folder))
        return [] if record is None else record["texts"]

    def add(self, records: Iterable[tuple[str, str, Mapping[str, Any]]], texts: Iterable[list[str]] = ()) -> None:
        """Add records (key, kind, content) and the texts that they name, and return when they are on the disk."""
        today = now()[:DAY]
        lines = {key: line_of(key, today, kind, content) for key, kind, content in records}
        with self._lock:
            for text in texts:
                key = text_key(text)
                if self.find(key) is None:
                    lines[key] = line_of(key, today, "text", {"texts": text})
            if lines:
                append(self.folder, lines.values())
                self._new |= lines
            if len(self._new) >= MOST_UNMERGED:
                self.settle()

    def settle(self) -> None:
        """Merge what was added into the shards."""
        with self._lock:
            if self.writes and self._new:
                merge(self.folder)
                self._shards, self._new = {}, read_journal(self.folder)

    def note_used(self, ids: Collection[str]) -> None:
        """Note which records a recording has met, now that it ends, for pruning."""
        if ids:
            with locked(self.folder):
                note_used(self.folder, (*ids, CLOSED))

    def lines(self) -> Iterator[bytes]:
        """Read all lines in the order of their keys, one shard after the other; each key comes once."""
        for digit in DIGITS:
            # As they are found: what waits to be merged takes the place of what was recorded before.
            new = {key: line for key, line in self._new.items() if key[0] == digit}
            yield from sorted({**resolved(self._shard(digit).lines()), **new}.values())

    def records(self) -> Iterator[dict[str, Any]]:
        """Read and verify all records."""
        for line in self.lines():
            yield read_line(line, str(self.folder))

    def stats(self) -> Stats:
        """Count the records, and take the digest of all."""
        whole = sha256()
        kinds: Counter[str] = Counter()
        first: str | None = None
        last: str | None = None
        for line in self.lines():
            whole.update(line)
            kind = line[line.index(b'"kind": "') + 9 :].partition(b'"')[0].decode()
            kinds[kind] += 1
            if kind in ("score", "reply"):
                day = recorded_on(line)
                first, last = min(first or day, day), max(last or day, day)
        return Stats(records=dict(sorted(kinds.items())), first=first, last=last, digest=whole.hexdigest())

    def _shard(self, digit: str) -> Shard:
        if digit not in self._shards:
            self._shards[digit] = Shard(shard_path(self.folder, digit))
        return self._shards[digit]


def is_tape(folder: Path) -> bool:
    """Tell whether a folder holds a tape, or what is left of one."""
    return (folder / HEADER).exists() or bool(files(folder))


def _header(folder: Path) -> TapeHeader | None:
    header = TapeHeader.load(folder)
    if header is None and files(folder):
        raise BadInput(
            f"{folder} holds answers and no {HEADER}: nothing says which judge gave them",
            hint=f"restore {HEADER} from version control, or remove the folder and record anew",
        )
    return header
