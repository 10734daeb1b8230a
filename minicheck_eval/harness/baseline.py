"""The run that another is set beside: whether it can be, and what is kept of it so that it is known again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.journal import RESULTS, read_header
from minicheck_eval.identity import file_digest

__all__ = ["baseline_header", "kept_of", "recorded_baseline", "run_header"]


def run_header(folder: Path) -> dict[str, Any]:
    """Read the run.json of a run, or raise `BadInput` where the folder holds none."""
    header = read_header(folder)
    if header is None:
        raise BadInput(f"{folder} holds no run", hint="name the folder that a run was written to: it has a run.json")
    return header


def baseline_header(folder: Path) -> dict[str, Any]:
    """Read the run.json of a baseline, or raise `BadInput` where the folder holds no finished run."""
    header = run_header(folder)
    if header.get("status") != "finished":
        raise BadInput(f"the run in {folder} is not finished", hint="finish it first, or compare with another")
    return header


def kept_of(folder: Path | None) -> dict[str, str] | None:
    """Return what a run keeps of its baseline: the place, and the digest of the records."""
    return None if folder is None else {"path": str(folder), "sha256": _digest(folder)}


def recorded_baseline(header: Mapping[str, Any]) -> Path | None:
    """Return the baseline that a run was decided beside; raises `BadInput` where it is not there as it was."""
    kept = (header.get("decision") or {}).get("baseline")
    if kept is None:
        return None
    folder = Path(kept["path"])
    baseline_header(folder)
    if _digest(folder) != kept["sha256"]:
        raise BadInput(f"{folder} holds another run now", hint="name one as the baseline")
    return folder


def _digest(folder: Path) -> str:
    path = folder / RESULTS
    return file_digest(path) if path.is_file() else hashlib.sha256().hexdigest()
