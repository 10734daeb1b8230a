"""What crosses a border (a file, a flag, HTTP) is checked here, once: strict models, and errors in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from minicheck_eval.errors import BadInput

__all__ = ["Strict", "cut", "explain", "read"]

Model = TypeVar("Model", bound=BaseModel)
SHOWN = 60


class Strict(BaseModel):
    """A model of something that comes from outside: unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def read(model: type[Model], value: Mapping[str, Any]) -> Model:
    """Validate `value`, or raise `BadInput` that names each wrong field."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise BadInput(explain(error)) from error


def explain(error: ValidationError, most: int = 5) -> str:
    """Say in one line which fields are wrong and why."""
    parts = []
    for item in error.errors(include_url=False)[:most]:
        where = ".".join(str(step) for step in item["loc"]) or "the value"
        given = "" if item["type"] == "missing" else f" (given: {cut(repr(item['input']), SHOWN)})"
        message = "unknown key" if item["type"] == "extra_forbidden" else item["msg"]
        parts.append(f"{where}: {message}{given}")
    more = error.error_count() - most
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def cut(text: str, most: int) -> str:
    """Return the text, or where it is longer than `most` characters its beginning."""
    return text if len(text) <= most else text[: most - 1] + "…"
