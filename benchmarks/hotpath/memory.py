"""How much memory a process has held at most."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

__all__ = ["peak_resident_bytes"]


def peak_resident_bytes(process: int | str = "self") -> int | None:
    """Return the peak resident memory of this or another process, None where the system does not tell."""
    status = Path(f"/proc/{process}/status")
    if status.is_file() and (found := re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)):
        return int(found[1]) * 1024
    if process != "self":
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
