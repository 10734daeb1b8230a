"""Puts a tape between a judge and its model, or in the place of both."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.scoring import Backend
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import TapeOptions, folder_of
from minicheck_eval.tape.tape import Tape

__all__ = ["Replayed", "record_over", "replay"]


class Replayed(NamedTuple):
    """A judge that was recorded, and what plays it."""

    identity: JudgeIdentity
    backend: TapeBackend


def replay(options: TapeOptions, known: JudgeIdentity, *, dtype: str) -> Replayed:
    """Open the tape of a judge without the judge; what was known of it alone when it was open is on the tape.

    `dtype` is what was asked for: "auto" is any.
    """
    folder = folder_of(options.folder, known.judge)
    tape = Tape.open(folder)
    wanted = known if dtype == "auto" else replace(known, dtype=dtype)
    tape.header.check(TapeHeader.of(wanted), folder, opened=False)
    return Replayed(tape.header.identity(known), TapeBackend(tape, options.mode, repeat=options.repeat))


def record_over(backend: Backend, options: TapeOptions | None, identity: JudgeIdentity) -> Backend:
    """Return the backend with a tape before it; without one where there are no options or they bypass it."""
    if options is None or not options.active:
        return backend
    tape = Tape.record(folder_of(options.folder, identity.judge), TapeHeader.of(identity, backend))
    return TapeBackend(tape, options.mode, backend, repeat=options.repeat)
