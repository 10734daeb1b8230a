"""Scores near the threshold are computed again, alone and exactly, so that no verdict depends on its neighbours.

In bfloat16 the last bits of a score depend on what shared its pass.  How much is measured, as a difference of log-odds:
there it is about the same for all scores, while probabilities near 0 and 1 hardly move.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing

from minicheck_eval.scoring import Backend, Failure, Prompt, Score, StreamingBackend, Usage, score_stream

__all__ = ["RecheckingBackend", "measure_noise"]

SAFETY = 4.0
"""The band is so many times the largest difference seen, since other prompts may differ more."""

LEAST_NOISE = {"float32": 1e-4}
"""By number format, whatever the probes say; see below for the others."""

COARSE_NOISE = 0.02
"""About what the last bit of a bfloat16 or float16 logit is worth."""

DIGITS = 1e-4
"""Nearer to 0 or 1 than this a probability says nothing about the noise of its log-odds."""


class RecheckingBackend:
    """Scores with `fast`, and with `exact` what lies within the noise of a border; `noise` is in log-odds."""

    def __init__(self, fast: Backend, exact: Backend, *, borders: Sequence[tuple[str, float]], noise: float) -> None:
        self._fast = fast
        self._exact = exact
        self._borders = borders
        band = SAFETY * max(noise, LEAST_NOISE.get(fast.dtype, COARSE_NOISE))
        # Rounded up to a power of two, so that a resumed run on a similar machine has the same band.
        self._band = 2.0 ** math.ceil(math.log2(band)) if math.isfinite(band) else band
        self.dtype = fast.dtype
        self.window_tokens = fast.window_tokens

    @property
    def name(self) -> str:
        """Name both backends and the band."""
        return f"{self._fast.name}, rechecked in {self._exact.dtype} within {self._band:.3g} of log-odds"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        return self._fast.count_tokens(texts)

    @property
    def usage(self) -> Usage:
        """Tell what has been asked, and what both backends have computed."""
        fast, exact = (
            backend.usage if isinstance(backend, StreamingBackend) else Usage() for backend in (self._fast, self._exact)
        )
        return fast.plus(computed_tokens=exact.computed_tokens, calls=exact.calls, seconds=exact.seconds)

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        return self._rechecked(prompts, self._fast.score(prompts))

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch, in order."""
        asked: deque[Sequence[Prompt]] = deque()

        def noted() -> Iterator[Sequence[Prompt]]:
            for batch in batches:
                asked.append(batch)
                yield batch

        with closing(score_stream(self._fast, noted())) as answered:
            for scores in answered:
                yield self._rechecked(asked.popleft(), scores)

    def _rechecked(self, prompts: Sequence[Prompt], scores: Sequence[Score | Failure]) -> list[Score | Failure]:
        again = [prompt for prompt, score in zip(prompts, scores, strict=True) if self._is_near(score)]
        exact = dict(zip(again, self._exact.score(again), strict=True)) if again else {}
        return [exact.get(prompt, score) for prompt, score in zip(prompts, scores, strict=True)]

    def _is_near(self, score: Score | Failure) -> bool:
        if isinstance(score, Failure):
            return score.reason == "not_a_number"
        return any(abs(log_odds(getattr(score, of)) - log_odds(border)) <= self._band for of, border in self._borders)


def measure_noise(fast: Backend, exact: Backend, prompts: Sequence[Prompt]) -> float:
    """Return the largest difference between the two backends' supports and masses, in log-odds."""
    pairs = [
        (getattr(one, of), getattr(other, of))
        for one, other in zip(fast.score(prompts), exact.score(prompts), strict=True)
        if isinstance(one, Score) and isinstance(other, Score)
        for of in ("support", "mass")
    ]
    differences = [
        abs(log_odds(one) - log_odds(other))
        for one, other in pairs
        if DIGITS < min(one, other) <= max(one, other) < 1 - DIGITS
    ]
    # Where nothing could be compared nothing is known, and everything is computed again.
    return max(differences, default=math.inf)


def log_odds(probability: float) -> float:
    """Return ln(p / (1 - p)), with p kept off 0 and 1."""
    kept = min(max(probability, DIGITS), 1 - DIGITS)
    return math.log(kept / (1 - kept))
