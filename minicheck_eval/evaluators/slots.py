"""What a request puts into the slots of a question, and what it means when it has nothing to put there."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Outcome, supporting_text
from minicheck_eval.evaluators.prompts import QuestionTemplate
from minicheck_eval.scoring import Prompt

__all__ = ["prepare"]

EMPTY = {
    "answer": ("empty_answer", "There is no answer to judge."),
    "context": ("no_evidence", "There is no evidence to judge the answer by."),
    "question": ("empty_question", "There is no question to judge the answer by."),
}


def prepare(
    template: QuestionTemplate, requests: Iterable[EvaluationRequest], settings: Mapping[str, Any], criterion: str = ""
) -> tuple[list[EvaluationResponse | None], list[Prompt]]:
    """Return the response to each request that a judge cannot be asked about, else None, and prompts for the others."""
    values = [_values_of(request, criterion) for request in requests]
    known = [_nothing_to_judge(template, value, settings) for value in values]
    return known, [template.fill(**v) for v, response in zip(values, known, strict=True) if response is None]


def _values_of(request: EvaluationRequest, criterion: str) -> dict[str, str]:
    """Return the text for each slot."""
    return {
        "context": supporting_text(request),
        "question": request.user_text,
        "answer": request.response,
        "criterion": criterion,
    }


def _nothing_to_judge(
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
