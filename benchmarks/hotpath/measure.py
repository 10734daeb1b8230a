"""Measures engines side by side: in each repeat every engine runs once, so that noise hits all alike."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from hotpath.processes import EngineFailed, EngineProcess, Measured
from hotpath.settings import Settings

__all__ = ["Results", "measure"]


@dataclass(slots=True)
class Results:
    """All runs of one engine, or why there are none."""

    note: str = ""
    runs: list[Measured] = field(default_factory=list)
    failed: str | None = None

    @property
    def seconds(self) -> float:
        """Return the median time of a run."""
        return median(one.run.seconds for one in self.runs)


def measure(
    asked: Mapping[str, tuple[Settings, str]], *, repeats: int, folder: Path, quiet: bool = False
) -> dict[str, Results]:
    """Open all engines, each by its settings and interpreter, then run them in turn; one that fails ends alone."""

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr, flush=True)

    results = {name: Results() for name in asked}
    with contextlib.ExitStack() as stack:
        engines: dict[str, EngineProcess] = {}
        for name, (settings, interpreter) in asked.items():
            say(f"opening {name}")
            try:
                engine = EngineProcess(settings, log=folder / f"{name}.log", interpreter=interpreter)
            except EngineFailed as error:
                results[name].failed = str(error)
            else:
                engines[name] = stack.enter_context(engine)
                results[name].note = engine.note
        for repeat in range(repeats):
            for name, engine in list(engines.items()):
                try:
                    one = engine.run()
                except EngineFailed as error:
                    results[name].failed = str(error)
                    engines.pop(name).close()
                else:
                    results[name].runs.append(one)
                    say(f"repeat {repeat + 1} of {repeats}: {name} {one.run.seconds:.2f} s")
    return results
