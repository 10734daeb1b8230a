"""JSON as its standard has it: no NaN, no key twice, no depth without end; every complaint is a `ValueError`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["DEEPEST", "Torn", "parse", "parse_at"]

DEEPEST = 100
"""Levels of lists and objects in one row; what is written later must not fail for want of stack."""


class Torn(ValueError):
    """The text is no JSON at `position`."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def parse(text: str) -> Any:
    """Parse a text that holds one value and nothing else."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    value, end = parse_at(text, start)
    if rest := text[end:].lstrip(" \t\r\n"):
        raise Torn("more text after the value", len(text) - len(rest))
    return value


def parse_at(text: str, start: int) -> tuple[Any, int]:
    """Parse the value that begins at `start`; return it and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise Torn(error.msg[:1].lower() + error.msg[1:], error.pos) from error
    except RecursionError as error:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from error
    if _too_deep(value):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    return value, end


def _too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a value of JSON; leave the key out or write null")


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise ValueError(f"a number of {len(digits)} digits is too large") from error


def _object(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {json.dumps(twice[:60])} stands twice in one object")
    return value


_DECODER = json.JSONDecoder(
    parse_constant=_constant, parse_float=_number, parse_int=_integer, object_pairs_hook=_object
)
