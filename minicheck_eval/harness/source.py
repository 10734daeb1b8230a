"""A file of cases as lines or as one text: compression, encodings, and problems that name their line."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Line", "Problem", "Row", "garbled", "read_lines", "read_text"]

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 1 << 16
BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
UNREADABLE = (OSError, EOFError, zlib.error)

Stream = BufferedReader | gzip.GzipFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a file of cases that cannot be used."""

    path: Path
    line: int
    """Counted from 1; 0 where it is the whole file."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class Row(NamedTuple):
    """A row as it stands in the file, before it is checked."""

    line: int
    value: Any


class Line(NamedTuple):
    """A line of text, with its end; bytes that are no text became lone surrogates."""

    number: int
    text: str

    @property
    def complete(self) -> bool:
        """Tell whether the line has an end; only the last may lack it."""
        return self.text.endswith("\n")


def read_lines(path: Path) -> Iterator[Line | Problem]:
    """Read the lines of a file; what ends it early is a problem after the lines before it."""
    number = 0
    opened = False
    try:
        with _open(path) as stream:
            encoding = _encoding(stream)
            opened = True
            for number, raw in enumerate(_split(stream, encoding), 1):
                yield Line(number, _decode(raw, encoding))
    except UNREADABLE as error:
        yield Problem(path=path, line=number + 1 if opened else 0, message=_reason(error))


def read_text(path: Path) -> tuple[str, Problem | None]:
    """Read a file as one text, as far as that goes, and say what ended it early."""
    data = bytearray()
    encoding = "utf-8"
    problem = None
    try:
        with _open(path) as stream:
            encoding = _encoding(stream)
            while chunk := stream.read1(CHUNK_BYTES):
                data += chunk
    except UNREADABLE as error:
        problem = Problem(path=path, line=0, message=_reason(error))
    return _decode(bytes(data), encoding), problem


def garbled(text: str) -> str | None:
    """Say where a text holds bytes that are no text in its encoding, or None."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"bytes that are no text in the file's encoding, at character {error.start + 1}"
    return None


def _open(path: Path) -> Stream:
    if path.exists() and not path.is_file():
        raise OSError(0, "it is not a file")
    with path.open("rb") as stream:
        magic = stream.read(2)
    if magic == GZIP_MAGIC:
        return gzip.open(path, "rb")
    if magic and path.suffix.lower() == ".gz":
        raise OSError(0, "it is named .gz but is not gzip")
    return path.open("rb")


def _encoding(stream: Stream) -> str:
    """Name the encoding that the byte order mark tells, and leave the stream after the mark."""
    head = stream.read(3)
    for bom, encoding in BOMS:
        if head.startswith(bom):
            stream.seek(len(bom))
            return encoding
    stream.seek(0)
    return "utf-8"


def _split(stream: Stream, encoding: str) -> Iterator[bytes]:
    if encoding == "utf-8":
        yield from stream
        return
    # A byte 0x0A ends a line of UTF-16 only where its unit of two bytes is U+000A.
    little = encoding == "utf-16-le"
    line = bytearray()
    while piece := stream.readline():
        line += piece
        if little and len(line) % 2 and line.endswith(b"\n"):
            line += stream.read(1)
        if len(line) % 2 == 0 and line.endswith("\n".encode(encoding)):
            yield bytes(line)
            line.clear()
    if line:
        yield bytes(line)


def _decode(raw: bytes, encoding: str) -> str:
    # A bad byte must not hide the good rows around it: it becomes a lone surrogate, which `garbled` finds.
    if encoding == "utf-8":
        return raw.decode(encoding, "surrogateescape")
    whole = len(raw) // 2 * 2
    return raw[:whole].decode(encoding, "surrogatepass") + "\udc80" * (len(raw) - whole)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, EOFError):
        return "the compressed file ends in the middle; what follows is lost"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return f"the compressed file is damaged ({error})"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"
