"""The folder of a run: results.jsonl grows by synced lines and is mended on opening, run.json is replaced whole."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from filelock import FileLock, Timeout

from minicheck_eval.contract import Outcome
from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput, RunMismatch
from minicheck_eval.harness.files import compact, encode, replace, writing

__all__ = ["HEADER", "OTHER_OUT", "RESULTS", "Journal", "is_answered", "read_header", "read_records"]

HEADER = "run.json"
RESULTS = "results.jsonl"
LOCK = ".lock"
NOWHERE = -1
OTHER_OUT = "choose another --out, or begin anew in this one: --restart"
OUTCOMES = frozenset(outcome.value for outcome in Outcome)


class Journal:
    """The record of a run, open for one process alone.

    Opening mends what a crash left: a torn or NUL-filled end is cut off, a last line without its end gets one, and
    `repairs` says so.  `ids` are the cases that have a record.  With `anew` the run that the folder holds is forgotten,
    in whatever state it is.
    """

    def __init__(self, directory: Path, *, anew: bool = False) -> None:
        self.directory = directory
        self.ids: set[str] = set()
        self.repairs: tuple[str, ...] = ()
        self._results: int
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(directory)
        try:
            self._open(anew=anew)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let the next process in."""
        os.close(self._results)
        self._lock.release()

    def header(self) -> dict[str, Any] | None:
        """Read run.json; None where there is none yet."""
        return read_header(self.directory)

    def write_header(self, header: Mapping[str, Any]) -> None:
        """Replace run.json."""
        replace(self.directory / HEADER, [encode(header, indent=2), b"\n"])

    def records(self) -> Iterator[dict[str, Any]]:
        """Read the records in the order in which they were written."""
        return read_records(self.directory)

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Write records and return when they are on the disk."""
        lines = memoryview(b"".join(compact(record) + b"\n" for record in records))
        with writing(self.directory / RESULTS):
            while lines:
                lines = lines[os.write(self._results, lines) :]
            os.fsync(self._results)
        self.ids.update(record["id"] for record in records)

    def arrange(self, ids: Sequence[str]) -> None:
        """Put the records into the order of `ids`, which names each of them."""
        path = self.directory / RESULTS
        places = {name: place for place, name in enumerate(ids)}
        starts = array("Q", [0])
        lines = array("q", [NOWHERE]) * len(ids)
        with path.open("rb") as stream:
            for number, line in enumerate(stream):
                if (place := places.get(json.loads(line)["id"])) is not None:
                    lines[place] = number
                starts.append(starts[-1] + len(line))
        if NOWHERE in lines:
            raise RunMismatch(f"{path} has no record of the case {ids[lines.index(NOWHERE)]!a}", hint=OTHER_OUT)
        if len(starts) - 1 == len(ids) and all(place == number for place, number in enumerate(lines)):
            return
        with path.open("rb") as stream:
            self._replace_results(_pieces(stream, ((starts[number], starts[number + 1]) for number in lines)))

    def forget_unanswered(self, evaluators: Collection[str]) -> None:
        """Drop the records of cases that got no answer, so that they are asked again; `repairs` says so."""
        kept = {record["id"] for record in self.records() if is_answered(record, evaluators)}
        gone = len(self.ids) - len(kept)
        if not gone:
            return
        self._replace_results(compact(record) + b"\n" for record in self.records() if record["id"] in kept)
        self.ids = kept
        self.repairs += (f"{counted(gone, 'case got no answer and is', 'cases got no answer and are')} asked again",)

    def _replace_results(self, lines: Iterable[bytes]) -> None:
        """Replace results.jsonl; where that fails it stays as it was, and open."""
        path = self.directory / RESULTS
        replace(path, lines)
        old, self._results = self._results, _opened(path)
        os.close(old)

    def _open(self, *, anew: bool) -> None:
        path = self.directory / RESULTS
        with writing(path):
            if anew:
                # Records without a header are refused, so a crash between the two leaves nothing to be mistaken.
                (self.directory / HEADER).unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            self.ids, self.repairs = _mend(path)
            self._results = _opened(path)


def is_answered(record: Mapping[str, Any], evaluators: Collection[str]) -> bool:
    """Tell whether a case has all its answers: an error, be it of a fallback, is none, and may be gone tomorrow."""
    return record["verdicts"].keys() >= set(evaluators) and not any(
        Outcome.ERROR in (verdict["outcome"], verdict.get("metadata", {}).get("second", {}).get("outcome"))
        for verdict in record["verdicts"].values()
    )


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)


def read_header(directory: Path) -> dict[str, Any] | None:
    """Read a run's run.json; None where there is none."""
    path = directory / HEADER
    try:
        header = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RunMismatch(f"{path} cannot be read: {error}", hint=OTHER_OUT) from error
    if not isinstance(header, dict):
        raise RunMismatch(f"{path} holds no object", hint=OTHER_OUT)
    return header


def read_records(directory: Path) -> Iterator[dict[str, Any]]:
    """Read a run's records; what a crash left unfinished is passed over."""
    path = directory / RESULTS
    if path.exists():
        with path.open("rb") as stream:
            yield from (record for line in stream if (record := _record(line)) and _is_whole(record))


def _locked(directory: Path) -> FileLock:
    lock = FileLock(directory / LOCK)
    with writing(directory / LOCK):
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise BadInput(
                f"another process is writing to {directory}", hint="wait for it to finish, or choose another --out"
            ) from error
    return lock


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {}


def _is_whole(record: Mapping[str, Any]) -> bool:
    verdicts = record.get("verdicts")
    return (
        isinstance(record.get("id"), str)
        and isinstance(record.get("slice"), str)
        and isinstance(verdicts, dict)
        and all(isinstance(verdict, dict) and verdict.get("outcome") in OUTCOMES for verdict in verdicts.values())
    )


def _mend(path: Path) -> tuple[set[str], tuple[str, ...]]:
    """Make every line of a results file whole; return the ids it holds and what was done."""
    ids: set[str] = set()
    repairs = []
    if not path.exists():
        return ids, ()
    good: list[tuple[int, int]] = []
    start = 0
    ended = True
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            ended = line.endswith(b"\n")
            record = _record(line.rstrip(b"\0"))
            if record is not None and not _is_whole(record):
                raise RunMismatch(f"{path}:{number}: is no record of a run", hint=OTHER_OUT)
            if record is None:
                repairs.append(f"{path}:{number}: a torn line was cut off; its case is judged again")
            elif record["id"] in ids:
                repairs.append(f"{path}:{number}: a second record of the case {record['id']!a} was cut off")
            else:
                ids.add(record["id"])
                good.append((start, start + len(line.rstrip(b"\0\n"))))
            start += len(line)
    if not repairs and ended:
        return ids, ()
    if not repairs:
        repairs.append(f"{path}:{len(good)}: the last line was given its end")
    _rewrite(path, good)
    return ids, tuple(repairs)


def _rewrite(path: Path, good: Sequence[tuple[int, int]]) -> None:
    end = good[-1][1] if good else 0
    if end == sum(stop - start for start, stop in good) + max(len(good) - 1, 0):
        # The usual case: all before the end is in order, and only the end is touched.
        with path.open("r+b") as stream:
            stream.truncate(end)
            stream.seek(end)
            stream.write(b"\n" if good else b"")
            stream.flush()
            os.fsync(stream.fileno())
        return
    with path.open("rb") as stream:
        replace(path, (line + b"\n" for line in _pieces(stream, good)))


def _pieces(stream: BinaryIO, places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    for start, stop in places:
        stream.seek(start)
        yield stream.read(stop - start)
