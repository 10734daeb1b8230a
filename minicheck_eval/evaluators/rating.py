"""A rating as a judge writes it: JSON with a reason and a score from 1 to 5."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, ValidationError

from minicheck_eval.border import Strict, explain
from minicheck_eval.text.replies import after_thought

__all__ = ["BEST", "SCHEMA", "WORST", "Rating", "read_rating"]

WORST, BEST = 1, 5

LONGEST_REASON = 600
"""Characters: a small model held to a schema may go on until its reply is cut off."""

# Written out, and with an enum: not every server knows the bounds of a number.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": LONGEST_REASON},
        "score": {"type": "integer", "enum": list(range(WORST, BEST + 1))},
    },
    "required": ["reason", "score"],
    "additionalProperties": False,
}

_FENCED = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL | re.IGNORECASE)


class Rating(Strict):
    """A score and what it rests on."""

    reason: str
    score: Annotated[int, Field(ge=WORST, le=BEST)]


def read_rating(text: str) -> Rating | str:
    """Read the JSON object that a reply is, fenced or after a block of thought; or say what is wrong with it."""
    # A reason may quote the tag that ends a thought.
    answer = text if text.lstrip().startswith("{") else after_thought(text)
    if answer is None:
        return "the block of thought has no certain end"
    fenced = _FENCED.fullmatch(answer.strip())
    try:
        return Rating.model_validate_json(fenced[1] if fenced else answer)
    except ValidationError as error:
        return explain(error)
