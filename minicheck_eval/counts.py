"""Counts in words."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: float, one: str, many: str | None = None) -> str:
    """Write a count with what is counted: 1 case, 2,000 cases; `many` is for words that take more than an s."""
    digits = f"{count:,}" if isinstance(count, int) else f"{count:,g}"
    return f"{digits} {one if count == 1 else many or f'{one}s'}"
