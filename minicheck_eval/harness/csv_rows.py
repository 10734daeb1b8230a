"""Rows of CSV: a header names the columns, some cells hold JSON, and an empty cell is one that is not there."""

from __future__ import annotations

import csv
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from minicheck_eval.harness.case import CaseRow, unknown_keys
from minicheck_eval.harness.source import Line, Problem, Row, garbled, read_lines
from minicheck_eval.harness.strict_json import parse

__all__ = ["read_csv"]

JSON_LIST = re.compile(r'\s*\[\s*[{"\]]')
JSON_OBJECT = re.compile(r'\s*\{\s*["}]')
TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def read_csv(path: Path) -> Iterator[Row | Problem]:
    """Read the rows below a header; quotes that do not match spoil only the line that they begin in."""
    header: list[str] | None = None
    for record in _records(path):
        if isinstance(record, Problem):
            yield record
            continue
        line, cells = record
        if header is None:
            header = [cell.strip() for cell in cells]
            if complaint := _wrong_header(header):
                yield Problem(path=path, line=line, message=f"{complaint}; the rows are not read")
                return
            continue
        if len(cells) != len(header):
            message = f"the row has {len(cells)} cells, the header has {len(header)}"
            yield Problem(path=path, line=line, message=message)
            continue
        try:
            given = zip(header, cells, strict=True)
            yield Row(line, {name: CELLS.get(name, _plain)(cell) for name, cell in given if cell.strip()})
        except ValueError as error:
            yield Problem(path=path, line=line, message=str(error))


class _Lines:
    """Lines that can be put back: after a quote that is never closed, reading goes on with the next line."""

    def __init__(self, lines: Iterator[Line | Problem]) -> None:
        self.lines = lines
        self.back: deque[Line] = deque()
        self.taken: list[Line] = []
        self.problem: Problem | None = None

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self.back.popleft() if self.back else next(self.lines)
        if isinstance(line, Problem):
            self.problem = line
            raise StopIteration
        self.taken.append(line)
        return line.text

    def put_back_all_but_first(self) -> None:
        self.back.extendleft(reversed(self.taken[1:]))


def _records(path: Path) -> Iterator[tuple[int, list[str]] | Problem]:
    lines = _Lines(read_lines(path))
    while True:
        lines.taken.clear()
        try:
            cells = _one_record(lines)
        except StopIteration:
            break
        except csv.Error as error:
            yield Problem(path=path, line=lines.taken[0].number, message=f"is not CSV: {error}")
            lines.put_back_all_but_first()
            continue
        number = lines.taken[0].number
        text = "".join(line.text for line in lines.taken)
        if complaint := garbled(text) or ("a NUL byte" if "\0" in text else None):
            # The quotes of a damaged row prove nothing about the lines after it.
            yield Problem(path=path, line=number, message=complaint)
            lines.put_back_all_but_first()
        elif any(cell.strip() for cell in cells):
            yield number, cells
    if lines.problem is not None:
        yield lines.problem


def _one_record(lines: _Lines) -> list[str]:
    # The limit belongs to the whole process: it is raised for one record and put back.
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(csv.reader(lines, strict=True))
    finally:
        csv.field_size_limit(limit)


def _wrong_header(header: list[str]) -> str | None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        return f"the header has the column {', '.join(map(ascii, twice))} twice"
    return unknown_keys(dict.fromkeys(header), CaseRow.model_fields)


def _plain(cell: str) -> str:
    return cell


def _documents(cell: str) -> Any:
    if JSON_LIST.match(cell):
        return _json("documents", cell)
    return [_json("documents", cell) if JSON_OBJECT.match(cell) else cell]


def _must_retrieve(cell: str) -> Any:
    if JSON_LIST.match(cell):
        return _json("must_retrieve", cell)
    return [name.strip() for name in cell.split(";") if name.strip()]


def _metadata(cell: str) -> Any:
    return _json("metadata", cell)


def _truth(cell: str) -> bool | str:
    return TRUTHS.get(cell.strip().lower(), cell)


def _json(name: str, cell: str) -> Any:
    try:
        return parse(cell)
    except ValueError as error:
        raise ValueError(f"{name}: the cell is not JSON: {error}") from error


CELLS: dict[str, Callable[[str], Any]] = {
    "documents": _documents,
    "must_retrieve": _must_retrieve,
    "metadata": _metadata,
    "label": _truth,
    "in_scope": _truth,
}
