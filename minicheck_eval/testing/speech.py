"""What a fake model says: its reply in tokens, and how likely each candidate of a token was."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["MOST_CANDIDATES", "PROSE", "Answer", "Answering", "Spoken", "speak"]

Answer = float | str | Mapping[str, float]
"""P(yes), what is said, or the probability of each candidate of the one token that is said."""
Answering = Callable[[str], Answer]
"""Answers the text that the model sees: the last message, or what a cut has left of the prompt."""

PROSE = "Based on the document, this depends on how one reads it."
_LOWEST = -3.4028234663852886e38  # what llama.cpp gives for a probability of zero
_PIECES = re.compile(r"\s*\w+|\s*[^\w\s]+|\s+")
MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply, token by token."""

    tokens: tuple[str, ...]
    candidates: tuple[Mapping[str, float], ...]
    """The probabilities behind each token."""
    complete: bool

    @property
    def text(self) -> str:
        """Return the reply as one string."""
        return "".join(self.tokens)

    def logprobs(self, top: int) -> list[dict[str, Any]]:
        """Return an entry for each token, with its `top` likeliest candidates, as servers write them."""
        return [
            {**_entry(token, likely[token]), "top_logprobs": [_entry(*one) for one in _likeliest(likely)[:top]]}
            for token, likely in zip(self.tokens, self.candidates, strict=True)
        ]


def speak(answer: Answer, most_tokens: int | None) -> Spoken:
    """Say an answer in at most so many tokens."""
    if isinstance(answer, float | int):
        # A sum over spellings is not the same as the likeliest one.
        answer = {"Yes": 0.99 * answer, "yes": 0.01 * answer, "No": 1.0 - answer}
    if isinstance(answer, str):
        tokens = _PIECES.findall(answer)
        candidates: list[Mapping[str, float]] = [{token: 1.0} for token in tokens]
    else:
        tokens = [max(answer, key=lambda token: answer[token])]
        candidates = [answer]
    if tokens == [""]:
        tokens, candidates = [], []
    said = tokens[:most_tokens]
    return Spoken(tuple(said), tuple(candidates[: len(said)]), len(said) == len(tokens))


def _likeliest(likely: Mapping[str, float]) -> list[tuple[str, float]]:
    fillers = {f"<0x{i:02X}>": 0.0 for i in range(MOST_CANDIDATES)}
    return sorted({**fillers, **likely}.items(), key=lambda one: -one[1])


def _entry(token: str, probability: float) -> dict[str, Any]:
    logprob = math.log(probability) if probability > 0 else _LOWEST
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
