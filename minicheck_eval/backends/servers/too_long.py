"""Knows how servers say that a prompt is too long for them, and how one is found out that was cut in silence."""

from __future__ import annotations

import re

__all__ = ["LONGER", "LONGER_TOKENS", "MOST_BYTES_A_TOKEN", "tells_of_length"]

MOST_BYTES_A_TOKEN = 12
"""More than texts of any language have on average; runs of spaces and lines may have more."""

LONGER = " ." * 8
LONGER_TOKENS = range(1, 17)
"""What that adds to a prompt: one that is cut has as many tokens as before, a whole one so many more."""

_WORDS = re.compile(
    r"context.?(length|size|window)|exceed.?context|context the overflows|context overflows|prompt (is )?too long"
    r"|tokens?.{0,80} must be <=|longer than the (model|maximum|context)|input length exceeds",
    re.IGNORECASE,
)


def tells_of_length(error: str) -> bool:
    """Say whether the words of an error are about the length of a prompt: then asking again does not help."""
    return bool(_WORDS.search(error))
