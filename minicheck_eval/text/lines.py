"""The lines of a text, Markdown or plain prose: what kind each is, and where its content begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from minicheck_eval.text.spans import trimmed

__all__ = ["STOPS", "Block", "Kind", "read_lines"]


class Kind(StrEnum):
    """What a block is."""

    TEXT = "text"
    ITEM = "item"
    """A list item."""
    HEADING = "heading"
    """A title."""
    HEADER = "header"
    """The header row of a table."""
    ROW = "row"
    """A data row of a table."""
    CODE = "code"
    """A fence, or a line of code between fences."""
    RULE = "rule"
    """A line without letters and digits: a rule, an underline, an empty bullet."""


class Block(NamedTuple):
    """One or more lines that belong together: offsets, trimmed of white space."""

    start: int
    body: int
    """Where the content begins, after quote marks, list marker, heading marks and speaker label."""
    end: int
    kind: Kind
    adjoins: bool
    """Whether no blank line stands before it."""


_QUOTE = re.compile(r"[>\s]*")
_HEADING = re.compile(r"#{1,6}\s+")
_BULLET = re.compile(r"(?:[-*+•‣◦▪●–—]|\(?[a-z]\)|\((?=\d{1,3}\))|(?=\d{1,3}[.)]))")
_NUMBER = re.compile(r"(\d{1,3})[.)](?:\s+|$)")
_CHECKBOX = re.compile(r"\s*(?:\[[ xX]\]\s+)?")
_GERMAN_DATE = re.compile(r"\d{1,2}\.\s+(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
# A closed list: "Capital: Paris" must keep its first half.
_SPEAKER = re.compile(
    r"(?:\*\*)?(?:user|human|assistant|ai|bot|chatbot|system|agent|customer|speaker(?:\s\w{1,3})?|q|a|question|answer"
    r"|nutzer(?:in)?|benutzer(?:in)?|kund(?:e|in)|assistent(?:in)?|frage|antwort)(?:\*\*)?\s?[:：](?:\*\*)?\s+",
    re.IGNORECASE,
)
_FENCE = re.compile(r"[>\s]*(`{3,}|~{3,})\s*([\w+-]*)[^`]*$")
_PROSE_FENCES = {"markdown", "md", "plaintext", "text", "txt"}
_TABLE_RULE = re.compile(r"(?=.*\|)(?=.*-)[>\s:|-]+$")
# Three dashes are a rule in the answers of models, whatever Markdown says of the line above.
_UNDERLINE = re.compile(r"=+$")
# A line of an unlabelled fence that only prose has: three words or more, and a stop.
_PROSE_LINE = re.compile(r"\S+(?:\s+\S+){2,}[.!?。！？]$")
STOPS = tuple(".!?:;…。！？：；।؟")
"""What ends a line that the next one does not continue in mid-sentence."""


def read_lines(text: str) -> list[Block]:
    """Read the lines that are not blank, each as a block of its own."""
    return _classified(text, _trimmed_lines(text))


def _trimmed_lines(text: str) -> list[Block]:
    lines, start, adjoins = [], 0, True
    for line in text.splitlines(keepends=True):
        span = trimmed(text, start, start + len(line))
        start += len(line)
        if span.end > span.start:
            lines.append(Block(span.start, span.start, span.end, Kind.TEXT, adjoins))
        adjoins = span.end > span.start
    return lines


def _classified(text: str, lines: list[Block]) -> list[Block]:
    contents = [text[line.start : line.end] for line in lines]
    code = _code_lines(contents)
    numbers: set[int] = set()
    result = []
    for index, (line, content) in enumerate(zip(lines, contents, strict=True)):
        if index in code:
            result.append(line._replace(kind=Kind.CODE))
        elif not any(map(str.isalnum, content)):
            result.append(line._replace(kind=Kind.RULE))
        else:
            body, kind = _marks(content, numbers, alone=len(lines) == 1)
            result.append(line._replace(body=line.start + body, kind=kind))
    _mark_tables(contents, result)
    _mark_underlined(contents, result)
    return result


def _code_lines(contents: Sequence[str]) -> set[int]:
    """Return the lines of closed code fences; a fence that is never closed holds no code, so that nothing is lost."""
    code: set[int] = set()
    opened: tuple[int, str, str] | None = None
    for index, content in enumerate(contents):
        match = _FENCE.match(content)
        if match is None:
            continue
        if opened is None:
            opened = index, match[1], match[2].casefold()
            code.add(index)
        elif match[1].startswith(opened[1]) and not match[2]:
            prose = opened[2] in _PROSE_FENCES or (
                not opened[2] and any(map(_PROSE_LINE.match, contents[opened[0] + 1 : index]))
            )
            code.update(() if prose else range(opened[0], index), (index,))
            opened = None
    return code


def _marks(content: str, numbers: set[int], *, alone: bool) -> tuple[int, Kind]:
    """Return where the content of a line begins and what kind of line it is."""
    body, kind = _match_end(_QUOTE, content, 0), Kind.TEXT
    if heading := _HEADING.match(content, body):
        return heading.end(), Kind.HEADING
    if content.startswith("|", body) and content.endswith("|"):
        return body, Kind.ROW
    marker = _list_marker_end(content, body, numbers, alone=alone)
    if marker is not None:
        body, kind = _match_end(_CHECKBOX, content, marker), Kind.ITEM
    return _match_end(_SPEAKER, content, body), kind


def _list_marker_end(content: str, body: int, numbers: set[int], *, alone: bool) -> int | None:
    bullet = _BULLET.match(content, body)
    if bullet is None:
        return None
    number = _NUMBER.match(content, bullet.end())
    if number is None:
        return bullet.end() if content[bullet.end() : bullet.end() + 1].isspace() else None
    # "42." may be the whole answer, and "3. Oktober" is a date: a number counts from one or follows its predecessor.
    value = int(number[1])
    starts = value <= 1 and not (alone and number.end() == len(content))
    if not (starts or value - 1 in numbers) or _GERMAN_DATE.match(content, number.start()):
        return None
    numbers.add(value)
    return number.end()


def _match_end(pattern: re.Pattern[str], content: str, start: int) -> int:
    match = pattern.match(content, start)
    return match.end() if match else start


def _mark_tables(contents: Sequence[str], lines: list[Block]) -> None:
    inside = False
    for index, (content, line) in enumerate(zip(contents, lines, strict=True)):
        if line.kind is Kind.RULE and _TABLE_RULE.match(content):
            inside = True
            if index and line.adjoins and "|" in contents[index - 1] and lines[index - 1].kind is not Kind.CODE:
                lines[index - 1] = lines[index - 1]._replace(body=lines[index - 1].start, kind=Kind.HEADER)
        elif inside and line.adjoins and "|" in content and line.kind is not Kind.CODE:
            lines[index] = line._replace(body=line.start, kind=Kind.ROW)
        else:
            inside = False


def _mark_underlined(contents: Sequence[str], lines: list[Block]) -> None:
    for index in range(1, len(lines)):
        title, underline = lines[index - 1], lines[index]
        if not (underline.kind is Kind.RULE and underline.adjoins and _UNDERLINE.match(contents[index])):
            continue
        # "Some prose.\n---" is prose and a rule in the answers of models, whatever Markdown says.
        single = index == 1 or not title.adjoins or lines[index - 2].kind is not Kind.TEXT
        if title.kind is Kind.TEXT and single and not contents[index - 1].endswith(STOPS):
            lines[index - 1] = title._replace(kind=Kind.HEADING)
