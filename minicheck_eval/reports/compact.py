"""JSON of many cases: as `encode` writes it, and several times as fast where the text allows it."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from minicheck_eval.harness.files import encode

__all__ = ["compact"]


def compact(value: Any) -> bytes:
    """Write a value, which may hold dataclasses, as JSON on one line; what is no number is null."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        # A lone surrogate: only the slow way has a spelling for it.
        return encode(to_jsonable_python(value, inf_nan_mode="null"))
