"""Knows how servers say that a prompt is too long for them, and how one is found out that was cut in silence."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["MOST_BYTES_A_TOKEN", "grew", "lengthened", "size_of", "tells_of_length"]

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


def size_of(texts: Sequence[str]) -> int:
    """Return the bytes of texts, as they are sent."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def lengthened(messages: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return a prompt that is a little longer, to see with `grew` whether the server reads all of it."""
    *before, last = messages
    return [*before, {**last, "content": last["content"] + LONGER}]


def grew(counted: int, again: int | None) -> bool:
    """Tell whether a lengthened prompt had as many tokens more as was added: of one that is cut it has as many."""
    return again is not None and again - counted in LONGER_TOKENS
