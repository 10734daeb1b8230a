"""Knows the words with which servers say that a prompt is too long for them."""

from __future__ import annotations

import re

__all__ = ["tells_of_length"]

_WORDS = re.compile(
    r"context.?(length|size|window)|exceed.?context|context the overflows|context overflows|prompt (is )?too long"
    r"|tokens?.{0,80} must be <=|longer than the (model|maximum|context)|input length exceeds",
    re.IGNORECASE,
)


def tells_of_length(error: str) -> bool:
    """Say whether the words of an error are about the length of a prompt: then asking again does not help."""
    return bool(_WORDS.search(error))
