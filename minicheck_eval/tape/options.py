"""Where a tape lies, and what is done with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from minicheck_eval.backends.servers.options import Address
from minicheck_eval.errors import BadInput
from minicheck_eval.harness.files import file_name

__all__ = ["Mode", "TapeOptions", "folder_of"]

NO = ("", "0", "false", "no", "off")


class Mode(StrEnum):
    """What is done with a tape."""

    REPLAY_ONLY = "replay-only"
    """No model, no network, nothing written: what is not on the tape has no answer."""
    RECORD = "record"
    """What is on the tape is replayed; the rest is asked and added."""
    RECORD_ALWAYS = "record-always"
    """All is asked again; answers that changed take the place of the recorded ones."""
    BYPASS = "bypass"
    """All is asked; the tape is neither read nor written."""


@dataclass(frozen=True, slots=True)
class TapeOptions:
    """A folder of tapes, one for each judge, and what is done with them."""

    folder: Path
    mode: Mode = Mode.RECORD
    repeat: int = 0
    """Which repetition of the same questions this is: each has answers of its own."""

    def __post_init__(self) -> None:
        if self.repeat < 0:
            raise BadInput(f"repeat is {self.repeat}", hint="count repetitions from 0")

    @classmethod
    def read(
        cls, folder: str | Path | None, mode: str | None, environment: Mapping[str, str] = os.environ
    ) -> Self | None:
        """Read the flags; without a mode a tape is only replayed where $CI is set, and recorded elsewhere."""
        if folder is None:
            if mode not in (None, Mode.BYPASS):
                raise BadInput(f"mode {mode} has no tape", hint="name its folder: --tape DIR")
            return None
        if mode is None:
            in_ci = environment.get("CI", "").strip().lower() not in NO
            return cls(Path(folder), Mode.REPLAY_ONLY if in_ci else Mode.RECORD)
        if mode not in list(Mode):
            raise BadInput(f"mode {mode!r} is not known", hint=f"choose one of {', '.join(Mode)}")
        return cls(Path(folder), Mode(mode))

    @property
    def active(self) -> bool:
        """Tell whether the tape is read or written at all."""
        return self.mode is not Mode.BYPASS

    @property
    def replays_only(self) -> bool:
        """Tell whether no model may be asked."""
        return self.mode is Mode.REPLAY_ONLY


def folder_of(tapes: Path, judge: str) -> Path:
    """Name the folder of a judge's tape; where its server stands is no part of the name."""
    address = Address.parse(judge)
    name = f"{address.kind}-{address.model}" if address else Path(judge).name
    return tapes / (file_name(name) or "judge")
