"""Where a piece of a text stands: offsets into the original string."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Span", "trimmed"]


class Span(NamedTuple):
    """A piece of a text, by the offsets of its characters; `end` is exclusive."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the piece of `text` that the span names."""
        return text[self.start : self.end]


def trimmed(text: str, start: int, end: int) -> Span:
    """Return the span without the white space at its ends; it is empty when there is nothing else."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return Span(start, max(start, start + len(piece.strip())))
