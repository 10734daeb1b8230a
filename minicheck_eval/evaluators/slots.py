"""What a request puts into the slots of a question, and what it means when it has nothing to put there."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Outcome, supporting_text
from minicheck_eval.evaluators.prompts import QuestionTemplate

__all__ = ["nothing_to_judge", "values_of"]

EMPTY = {
    "answer": ("empty_answer", "There is no answer to judge."),
    "context": ("no_evidence", "There is no evidence to judge the answer by."),
    "question": ("empty_question", "There is no question to judge the answer by."),
}


def values_of(request: EvaluationRequest, criterion: str = "") -> dict[str, str]:
    """Return the text for each slot."""
    return {
        "context": supporting_text(request),
        "question": request.user_text,
        "answer": request.response,
        "criterion": criterion,
    }


def nothing_to_judge(
    template: QuestionTemplate, values: Mapping[str, str], settings: Mapping[str, Any]
) -> EvaluationResponse | None:
    """Return the response where a slot of the template stays empty: a judge asked about nothing may say yes."""
    for slot, (reason, feedback) in EMPTY.items():
        if slot in template.slots and _is_empty(slot, values[slot]):
            return EvaluationResponse(Outcome.NOT_CHECKABLE, None, feedback, {**settings, "reason": reason})
    return None


def _is_empty(slot: str, text: str) -> bool:
    if slot != "answer":
        return not any(map(str.isalnum, text))
    # An answer may be an emoji, and a toxic one.
    return all(unicodedata.category(character)[0] in "ZC" for character in text)
