"""Text from outside as one harmless line: no control codes, and nothing that the terminal cannot show."""

from __future__ import annotations

__all__ = ["plain"]

JOINERS = "\u200c\u200d"
"""Not printable to Python, and a part of spelling in Persian, in Indian scripts and in emoji."""


def plain(text: str, encoding: str = "utf-8", *, most: int | None = None) -> str:
    """Return a text as one line; what could steer or break a terminal is written as an escape."""
    if most is not None and len(text) > 2 * most:
        # Enough to see the end of what is shown, without walking through 50 MB.
        text = text[: 2 * most]
    line = " ".join(text.split())
    if most is not None and len(line) > most:
        line = f"{line[: most - 3]}..."
    line = "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode() for c in line)
    try:
        return line.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return line.encode("ascii", "backslashreplace").decode("ascii")
