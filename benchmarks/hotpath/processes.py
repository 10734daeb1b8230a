"""Runs each engine in a process of its own, so that its memory is its own and its libraries may differ."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hotpath.settings import Run, Settings

__all__ = ["EngineFailed", "EngineProcess", "Measured", "close_engines_on_termination", "environment"]

BENCHMARKS = Path(__file__).parents[1]


class EngineFailed(Exception):
    """An engine could not be opened, or a run of it ended without a result."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run, the most memory that the engine's process had held until then, and what its threads spent on the run."""

    run: Run
    peak_bytes: int | None
    processor_seconds: float = 0.0
    """Over all cores of this process; much less than seconds × threads tells of busy neighbours."""


def environment(threads: int) -> dict[str, str]:
    """Return the environment of an engine: it finds these modules and keeps to its threads."""
    path = os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}


def close_engines_on_termination() -> None:
    """Let a SIGTERM to this program, as `timeout` sends it, leave its `with` statements: engines hold a device."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class EngineProcess:
    """An open engine; close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings, *, log: Path, interpreter: str = sys.executable) -> None:
        self._log = log
        with log.open("wb") as stderr:
            # An own session: closing ends whatever the engine has started, too.
            self._process = subprocess.Popen(  # noqa: S603 - no shell; the user may name the interpreter
                [interpreter, "-m", "hotpath.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(settings.threads),
                start_new_session=True,
                text=True,
            )
        try:
            self.note = str(self._ask(asdict(settings))["note"])
        except BaseException:
            self.close()
            raise

    def run(self) -> Measured:
        """Run all of the work once."""
        answer = self._ask("run")
        return Measured(Run(**answer["run"]), answer["peak_bytes"], answer["processor_seconds"])

    def close(self) -> None:
        """End the engine and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: Any) -> dict[str, Any]:
        if self._process.stdin is None or self._process.stdout is None:
            raise EngineFailed("the engine has no pipes")
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"failed": f"the process ended: {self._last_words()}"}
        if "failed" in answer:
            raise EngineFailed(str(answer["failed"]))
        return answer

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "it said nothing"
