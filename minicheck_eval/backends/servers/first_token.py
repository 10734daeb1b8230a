"""Reads a score from the likeliest first tokens of a reply."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from minicheck_eval.scoring import Failure, Score

__all__ = ["score_from"]


ROUNDING = 0.01
"""By so much may rounded probabilities exceed 1 together."""


def score_from(top: Sequence[tuple[str, float]], yes: Collection[str], no: Collection[str]) -> Score | Failure:
    """Sum the probabilities of all candidates that say yes or no, in any case and with any white space around them.

    `yes` and `no` hold words in lower case; a candidate is a token's text and the logarithm of its probability.  Where
    the candidates together are more than certain the numbers are none, and there is no score.
    """
    total = sum(0.0 if math.isnan(logprob) else math.exp(min(logprob, 1.0)) for _, logprob in top)
    if total > 1 + ROUNDING:
        return Failure("backend", f"the server's probabilities of the first token sum to {total:.3g}: they are none")
    support = sum(_probability(logprob) for text, logprob in top if _word(text) in yes)
    refute = sum(_probability(logprob) for text, logprob in top if _word(text) in no)
    likeliest = max(top, key=lambda candidate: _probability(candidate[1]), default=("", 0.0))
    # Sums of rounded probabilities may exceed 1 in the last digit.
    return Score(min(1.0, support), min(1.0, refute), likeliest[0])


def _word(text: str) -> str:
    return text.strip().casefold()


def _probability(logprob: float) -> float:
    """Return exp(logprob): servers write minus infinity as the least float, and a value above 0 is a rounding error."""
    return 0.0 if math.isnan(logprob) else math.exp(min(0.0, logprob))
