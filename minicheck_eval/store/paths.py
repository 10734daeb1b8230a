"""Where weights are kept."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["store_folder"]


def store_folder() -> Path:
    """Return the folder of all weights: $MINICHECK_EVAL_HOME, or minicheck-eval in the user's cache folder."""
    if chosen := os.environ.get("MINICHECK_EVAL_HOME"):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "minicheck-eval"
