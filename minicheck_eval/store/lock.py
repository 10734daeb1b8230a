"""Remembers what was fetched: beside the weights, the digest of each file as it was when it was first verified."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Self

from minicheck_eval.errors import IntegrityError
from minicheck_eval.identity import file_digest

__all__ = ["Lock", "settled_digest"]

NAME = "lock.json"


@dataclass(frozen=True, slots=True)
class Lock:
    """What a folder of weights holds."""

    repository: str
    commit: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name → SHA-256 of each file as it was published."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Name → SHA-256 of each file that was made here from published ones."""

    @classmethod
    def read(cls, folder: Path, repository: str) -> Self:
        """Read the lock of a folder; where there is none, nothing is locked."""
        path = folder / NAME
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            return cls(repository)
        except (ValueError, TypeError) as error:
            raise IntegrityError(
                f"{path} is damaged: {error}", hint=f"remove the folder {folder} and fetch the judge again"
            ) from error

    def write(self, folder: Path) -> None:
        """Write the lock as a whole or not at all."""
        making = folder / f".{NAME}"
        with making.open("w", encoding="utf-8") as stream:
            json.dump(asdict(self), stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        making.replace(folder / NAME)

    def with_file(self, name: str, digest: str, commit: str) -> Self:
        """Return the lock with one more published file."""
        return replace(self, files={**self.files, name: digest}, commit=commit or self.commit)

    def with_made(self, name: str, digest: str) -> Self:
        """Return the lock with one more file that was made here."""
        return replace(self, made={**self.made, name: digest})


def settled_digest(path: Path) -> str:
    """Return the SHA-256 of a file, computed once in a process for as long as the file stays untouched."""
    state = path.stat()
    return _digest(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=256)
def _digest(path: Path, *_state: int) -> str:
    return file_digest(path)
