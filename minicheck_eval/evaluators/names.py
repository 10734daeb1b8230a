"""The names by which evaluators, readings and reasons to fall back are asked for; light, for flags list them."""

from __future__ import annotations

__all__ = ["EVALUATORS", "FALLBACK_ON", "READINGS", "RETRIEVAL", "WITHOUT_EVIDENCE"]

EVALUATORS = ("fact-checking", "relevancy", "answers-question", "rubric")
"""What a judge can be asked; all but the first want a chat model."""

WITHOUT_EVIDENCE = ("answers-question", "rubric")
"""Evaluators that can judge an answer without documents."""

RETRIEVAL = "retrieval"
"""The verdict on what was retrieved, which needs no judge."""

READINGS = ("auto", "first-token", "words", "strict")
"""How a chat model's yes or no is read."""

FALLBACK_ON = ("uncertain", "invalid", "error", "too_long")
"""A verdict near the threshold; no usable answer; no answer; a question that did not fit (one kind of `invalid`)."""
