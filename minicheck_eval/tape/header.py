"""What a tape says of the judge that it was recorded with: all that shapes an answer, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from minicheck_eval.border import Strict, read
from minicheck_eval.errors import BadInput, RunMismatch
from minicheck_eval.harness.files import encode
from minicheck_eval.harness.files import replace as replace_file
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.scoring import Backend

__all__ = ["HEADER", "TapeHeader"]

HEADER = "tape.json"
SCHEMA = 1
SHOWN = 80


class TapeHeader(Strict):
    """The part of a judge's identity that a tape belongs to; what is empty or None is not known.

    What is applied to an answer afterwards (threshold, aggregation) is no part of it, and neither is what shapes the
    prompt: that is in the key of each record.
    """

    schema_version: int = SCHEMA
    model: str
    revision: str = ""
    digests: dict[str, str] = Field(default_factory=dict)
    backend: str = ""
    dtype: str = ""
    quantization: str = ""
    labels_digest: str = ""
    parity: dict[str, Any] = Field(default_factory=dict)
    recheck: bool = False
    reading: str = ""
    window_tokens: int | None = None
    counts_exactly: bool = True

    @classmethod
    def of(cls, identity: JudgeIdentity, backend: Backend | None = None) -> Self:
        """Return what is known of a judge, more where its backend is open."""
        value = identity.to_json()
        kept = {name: value[name] for name in cls.model_fields if name in value}
        # A rubric reads replies by rules of its own, afterwards.
        kept |= {"reading": ""} if identity.evaluator == "rubric" else {}
        if backend is not None:
            exactly = bool(getattr(backend, "counts_exactly", True))
            kept |= {"window_tokens": backend.window_tokens, "counts_exactly": exactly}
        return cls(**kept)

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read tape.json; None where there is none."""
        path = folder / HEADER
        try:
            return read(cls, json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, BadInput) as error:
            raise BadInput(f"{path} cannot be read: {error}", hint="restore it from version control") from error

    def write(self, folder: Path) -> None:
        """Write tape.json, the same bytes for the same judge."""
        replace_file(folder / HEADER, [encode(self.model_dump(), indent=2), b"\n"])

    def differences(self, other: TapeHeader, *, opened: bool) -> list[str]:
        """Say where another judge is not this one; before it is opened not all is known of it."""
        here, there = self.model_dump(), other.model_dump()
        skipped = () if opened else ("counts_exactly",)
        pairs = {name: (here[name], there[name]) for name in here if name not in skipped and name != "digests"}
        common = here["digests"].keys() & there["digests"].keys()
        pairs |= {f"digests.{name}": (here["digests"][name], there["digests"][name]) for name in sorted(common)}
        return [
            f"{name} is {_shown(mine)} on the tape and {_shown(theirs)} here"
            for name, (mine, theirs) in pairs.items()
            if mine != theirs and not {"", None} & {_hashable(mine), _hashable(theirs)}
        ]

    def check(self, other: TapeHeader, folder: Path, *, opened: bool) -> None:
        """Raise `RunMismatch` where a tape was recorded with another judge."""
        if wrong := self.differences(other, opened=opened):
            raise RunMismatch(
                f"the tape {folder} was recorded with another judge: {'; '.join(wrong)}",
                hint="choose another --tape folder for this judge, or remove this one and record anew",
            )

    def completed(self, other: TapeHeader) -> TapeHeader:
        """Return the header with what another one knows more."""
        more = {name: value for name, value in other.model_dump().items() if getattr(self, name) in ("", None, {})}
        return self.model_copy(update=more)

    def identity(self, known: JudgeIdentity) -> JudgeIdentity:
        """Return the identity of a judge that is replayed: what was known when it was recorded."""
        return replace(
            known,
            revision=self.revision or known.revision,
            digests={**known.digests, **self.digests},
            backend=self.backend,
            dtype=self.dtype,
            quantization=self.quantization or known.quantization,
            window_tokens=self.window_tokens,
            reading=known.reading or self.reading,
        )


def _hashable(value: object) -> object:
    return value if isinstance(value, str | None) else str(value)


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
