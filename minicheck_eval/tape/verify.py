"""Looks at every line of a tape: what is damaged, out of its place, or there twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from minicheck_eval.errors import BadInput, IntegrityError
from minicheck_eval.tape.header import HEADER, TapeHeader
from minicheck_eval.tape.record import key_of, read_line
from minicheck_eval.tape.shards import JOURNAL, files

__all__ = ["Problem", "problems"]

Problem = tuple[bool, str]
"""Whether answers are in danger, and what is wrong."""


def problems(folder: Path) -> Iterator[Problem]:
    """Say what is wrong with the files of a tape."""
    yield from _of_header(folder)
    known = files(folder)
    for path in sorted(folder.glob("*.jsonl")):
        if path not in known:
            yield False, f"{path} is no file of a tape: what it holds is not replayed"
        elif path.name == JOURNAL:
            yield False, f"{path} waits to be merged: the next recording does that"
            yield from _of_journal(path)
        else:
            yield from _of_shard(path)


def _of_header(folder: Path) -> Iterator[Problem]:
    try:
        if TapeHeader.load(folder) is None:
            yield True, f"{folder / HEADER} is not there"
    except BadInput as error:
        yield True, str(error)


def _of_journal(path: Path) -> Iterator[Problem]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                # What a crash left unfinished at the end is no answer.
                if line.endswith(b"\n"):
                    read_line(line, f"{path}:{number}")
            except IntegrityError as error:
                yield True, str(error)


def _of_shard(path: Path) -> Iterator[Problem]:
    before = ""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            where = f"{path}:{number}"
            try:
                read_line(line, where)
            except IntegrityError as error:
                yield True, str(error)
                continue
            key = key_of(line)
            if key[0] != path.name[0]:
                yield True, f"{where} belongs into the file {key[0]}.jsonl"
            elif key == before:
                yield False, f"{where} answers what the line before does; the later day counts"
            elif key < before:
                yield False, f"{where} is out of order, as after a merge of two branches"
            before = key
