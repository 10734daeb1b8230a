"""Makes control tokens that are written out in a text plain text again."""

from __future__ import annotations

import re

__all__ = ["neutralised"]

_CONTROL = re.compile(r"<(?=[|\uff5c/]?\s*(?:[|\uff5c]|/?s>))")


def neutralised(text: str) -> tuple[str, bool]:
    """Return the text with each written-out control token broken by a space, and whether there was one."""
    broken = _CONTROL.sub("< ", text)
    return broken, broken != text
