"""Writing that outlives a crash: JSON that any text survives, files replaced whole, bytes that reached the disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from minicheck_eval.errors import CouldNotJudge

__all__ = ["compact", "encode", "file_name", "replace", "writing"]

NOT_NUMBERS = (b"NaN", b"Infinity")


def encode(value: Any, *, indent: int | None = None) -> bytes:
    """Write a value as JSON in UTF-8; NaN raises `ValueError`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    # Only lone surrogates have no UTF-8, and the backslash escape of one is its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def compact(value: Any) -> bytes:
    """Write a value, which may hold dataclasses, as `encode` does, on one line and several times as fast."""
    # The slow way alone has a spelling for a lone surrogate, and tells what is no number from a text that says so.
    with suppress(PydanticSerializationError):
        line = to_json(value)
        if not any(name in line for name in NOT_NUMBERS):
            return line
    return encode(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value)


def replace(path: Path, content: Iterable[bytes]) -> None:
    """Replace a file as a whole: a reader, and a crash, meet the old content or the new."""
    temporary = path.with_name(f"{path.name}.new")
    with writing(path):
        with temporary.open("wb") as stream:
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write into one of ours."""
    try:
        yield
    except OSError as error:
        raise CouldNotJudge(
            f"{path} cannot be written: {error.strerror or error}",
            hint="make room or choose another --out; the same command goes on where this one stopped",
        ) from error


def file_name(text: str) -> str:
    """Return a name that every file system takes; empty where nothing of the text may stand in one."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")


def _sync_folder(folder: Path) -> None:
    # The new name is safe once its folder is; Windows does not open folders.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
