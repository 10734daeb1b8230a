"""Rows of JSON Lines, and rows of one JSON document, of which a torn one still gives what stands before the tear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from minicheck_eval.harness.case import unknown_keys
from minicheck_eval.harness.source import Problem, Row, garbled, read_lines, read_text
from minicheck_eval.harness.strict_json import Torn, parse, parse_at

__all__ = ["read_json", "read_jsonl"]

BLANK = " \t\r\n"
SHAPE = 'the file should hold a list of rows, or {"cases": [...]}'
# Possessive, and a string that is never closed is one mark, so that a text of 50 MB is passed over once.
MARKS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
DEPTHS = {"[": 1, "{": 1, "]": -1, "}": -1}
END_OF_SCALAR = re.compile(r"[,\]}]")
SPACE = re.compile(r"[ \t\r\n]*")


def read_jsonl(path: Path) -> Iterator[Row | Problem]:
    """Read one row a line; blank lines are passed over."""
    for line in read_lines(path):
        if isinstance(line, Problem):
            yield line
            continue
        # Files that were joined may have a byte order mark in the middle.
        text = line.text.removeprefix("\ufeff").strip(BLANK)
        if not text:
            continue
        if complaint := garbled(text):
            yield Problem(path=path, line=line.number, message=complaint)
            continue
        try:
            yield Row(line.number, parse(text))
        except Torn as error:
            where = f"is not JSON: {error}, at character {error.position + 1}"
            message = where if line.complete else f"the file ends in the middle of this row ({where})"
            yield Problem(path=path, line=line.number, message=message)
        except ValueError as error:
            yield Problem(path=path, line=line.number, message=str(error))


def read_json(path: Path) -> Iterator[Row | Problem]:
    """Read the rows of a list, or of the list that is called `cases` in an object."""
    text, problem = read_text(path)
    if problem is None or text:
        yield from _Scanner(path, text.removeprefix("\ufeff")).rows()
    if problem is not None:
        yield problem


class _Scanner:
    """Walks through the outer list or object; each row is parsed alone, so that a bad one hides no other."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.at = 0
        self.unfinished = False
        self._line = 1
        self._counted = 0

    def rows(self) -> Iterator[Row | Problem]:
        try:
            yield from self._document()
        except Torn as error:
            torn = self.unfinished or error.position >= len(self.text.rstrip(BLANK))
            message = f"the file ends in the middle ({error})" if torn else f"{error}; what follows is not read"
            yield self._problem(message, error.position)

    def _document(self) -> Iterator[Row | Problem]:
        match self._next():
            case "":
                return
            case "[":
                yield from self._list()
            case "{":
                yield from self._object()
            case _:
                raise Torn(SHAPE, self.at)
        if self._next():
            raise Torn("more text after the end; one row a line belongs into a .jsonl file", self.at)

    def _next(self) -> str:
        """Go to the next character that is not blank and return it; nothing at the end."""
        found = SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def _take(self, expected: str) -> str:
        """Take the next character, which must be one of `expected`."""
        character = self._next()
        if not character or character not in expected:
            raise Torn(f"expected {' or '.join(expected)}", self.at)
        self.at += 1
        return character

    def _problem(self, message: str, position: int) -> Problem:
        return Problem(path=self.path, line=self._line_of(position), message=message)

    def _line_of(self, position: int) -> int:
        if position < self._counted:
            return self.text.count("\n", 0, position) + 1
        self._line += self.text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def _list(self) -> Iterator[Row | Problem]:
        self._take("[")
        if self._next() == "]":
            self.at += 1
            return
        while True:
            self._next()
            yield self._row()
            if self._take(",]") == "]":
                return

    def _row(self) -> Row | Problem:
        start = self.at
        end = self._end_of_value(start)
        if end is None:
            self.unfinished = True
            value, self.at = self._value()
            return Row(self._line_of(start), value)
        # Cut out first: a row that is no JSON can be left out without losing those after it.
        row, self.at = self.text[start:end], end
        if complaint := garbled(row):
            return self._problem(complaint, start)
        try:
            return Row(self._line_of(start), parse(row))
        except ValueError as error:
            torn = _as_torn(error, start)
            if self._next() not in (",", "]"):
                raise torn from error
            return self._problem(str(torn), torn.position)

    def _end_of_value(self, start: int) -> int | None:
        """Find where a value ends by its brackets and quotes alone; None where the text ends before."""
        if self.text[start : start + 1] not in ("{", "[", '"'):
            end = END_OF_SCALAR.search(self.text, start)
            return end.start() if end else None
        depth = 0
        for mark in MARKS.finditer(self.text, start):
            depth += DEPTHS.get(mark[0], 0)
            if depth == 0:
                # No row ends a list: what reaches the end of the text was never closed.
                return mark.end() if mark.end() < len(self.text) else None
        return None

    def _object(self) -> Iterator[Row | Problem]:
        self._take("{")
        start = self.at - 1
        keys: dict[str, None] = {}
        while True:
            if self._next() != '"':
                self._take('"')
            key, self.at = self._value()
            self._take(":")
            self._next()
            if key == "cases" and self._next() == "[":
                yield from self._list()
            else:
                _, self.at = self._value()
            keys[str(key)] = None
            if self._take(",}") == "}":
                break
        if "cases" not in keys:
            raise Torn(SHAPE, start)
        if complaint := unknown_keys(keys, {"cases": None}):
            yield self._problem(f"{complaint} beside cases", start)

    def _value(self) -> tuple[object, int]:
        try:
            return parse_at(self.text, self.at)
        except Torn:
            raise
        except ValueError as error:
            raise Torn(str(error), self.at) from error


def _as_torn(error: ValueError, start: int) -> Torn:
    """Place an error in a row that begins at `start` of the text."""
    if isinstance(error, Torn):
        return Torn(f"is not JSON: {error}", start + error.position)
    return Torn(str(error), start)
