"""Where a run comes from: versions of what computed it, and the revision of the repository that holds its cases."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["git_state", "now", "package_versions"]

PACKAGES = (
    "minicheck-eval",
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "sentencex",
    "pydantic",
)
GIT_TIMEOUT_S = 20


def package_versions() -> dict[str, str | None]:
    """Return the versions of what shapes a verdict, without importing any of it; None where it is not installed."""
    versions = {name: _version(name) for name in PACKAGES}
    return {**versions, "python": platform.python_version(), "platform": platform.platform()}


def git_state(path: Path) -> dict[str, Any] | None:
    """Return the revision of the repository that holds a file, and whether that is all of it; None without one.

    `dirty` is true when a tracked file was changed, or when the file itself is not in the revision.
    """
    folder = path.absolute().parent
    revision = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    own = _git(folder, "status", "--porcelain", "--untracked-files=all", "--ignored", "--", path.name)
    if revision is None or changed is None or own is None:
        return None
    return {"revision": revision, "dirty": bool(changed or own)}


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    # Neither a lock nor a hook of the repository: looking must change nothing and start nothing.
    command = [program, "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", *arguments]
    # A hook that runs us sets these for its own repository.
    environment = {
        key: value for key, value in os.environ.items() if key not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    }
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program with fixed arguments and one file name after --
            command, cwd=folder, env=environment, capture_output=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None
