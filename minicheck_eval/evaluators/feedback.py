"""The words in which a verdict is explained."""

from __future__ import annotations

from collections.abc import Sequence

from minicheck_eval.border import cut
from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.scoring import Failure, Score

__all__ = ["explain", "failed", "short"]


def short(text: str, most: int = 200) -> str:
    """Return the text on one line, cut at `most` characters."""
    return cut(" ".join(text.split()), most)


def failed(error: Exception) -> EvaluationResponse:
    """Return the response to a request that a judge raised an error for."""
    return EvaluationResponse(Outcome.ERROR, None, f"The judge failed: {error}", {"reason": "exception"})


def explain(scores: Sequence[Score | Failure], reason: str) -> str:
    """Say why there is no verdict, in the words of the first score that stood in the way."""
    for score in scores:
        if isinstance(score, Failure) and score.reason == reason:
            return score.message
    unclear = min((s for s in scores if isinstance(s, Score)), key=lambda s: s.mass)
    if unclear.reply:
        return f"the judge's reply is neither a yes nor a no: {short(unclear.reply)!r}"
    if not unclear.mass and not unclear.top:
        return "the judge's reply is empty"
    said = f"P(yes) + P(no) = {unclear.mass:.3f}, its first token was {unclear.top!r}"
    return f"too little of the judge's answer was a yes or a no: {said}"
