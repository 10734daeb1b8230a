"""Writes the reports of a run: however many there are, the cases are read once."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from minicheck_eval.errors import BadInput, CouldNotJudge
from minicheck_eval.reports.view import View
from minicheck_eval.reports.writer import Writer

__all__ = ["FORMATS", "file_names", "read_formats", "write_reports"]

FORMATS = {
    "html": ("report.html", "minicheck_eval.reports.html", "HtmlReport"),
    "json": ("report.json", "minicheck_eval.reports.json_report", "JsonReport"),
    "markdown": ("report.md", "minicheck_eval.reports.markdown", "MarkdownReport"),
    "junit": ("junit.xml", "minicheck_eval.reports.junit", "JunitReport"),
}
"""The name of a format → the name of its file, and the class that writes it, which is loaded when it is used."""


def read_formats(text: str | None) -> tuple[str, ...]:
    """Read the names of formats, with commas between them; none where nothing is said."""
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        raise BadInput(f"{text!r} names no known report", hint=f"choose from {','.join(FORMATS)}")
    return names


def file_names(formats: Iterable[str], folder: Path) -> dict[str, Path]:
    """Return the file for each format."""
    return {name: folder / FORMATS[name][0] for name in formats}


def write_reports(view: View, paths: Mapping[str, Path]) -> None:
    """Write a report for each format; a file is replaced when all of it is written."""
    with ExitStack() as stack:
        writers: list[Writer] = []
        for name, path in paths.items():
            stream = stack.enter_context(_opened(path))
            _, module, kind = FORMATS[name]
            writer: Writer = getattr(importlib.import_module(module), kind)(view, stream)
            stack.callback(writer.close)
            writers.append(writer)
        for case, record in view.cases():
            for writer in writers:
                writer.add(case, record)
        for writer in writers:
            writer.finish()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is replaced once it is whole; `-` and what is no file are written to as they are."""
    try:
        if str(path) == "-":
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            try:
                with temporary.open("wb") as stream:
                    yield stream
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise CouldNotJudge(
            f"{path} cannot be written: {error.strerror or error}", hint="make room, or name another file"
        ) from error
