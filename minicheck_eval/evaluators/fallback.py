"""A second judge for what the first one leaves open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Evaluator, Outcome, evaluate_stream
from minicheck_eval.errors import BadInput, MinicheckError
from minicheck_eval.evaluators.feedback import failed
from minicheck_eval.evaluators.names import FALLBACK_ON
from minicheck_eval.evaluators.streamed import StreamedEvaluator, usage_of
from minicheck_eval.scoring import Usage, beside

__all__ = ["FallbackEvaluator", "check_fallback"]

ROUNDING = 1e-9
"""0.6 - 0.5 is a little less than 0.1, 0.8 - 0.7 a little more."""


def check_fallback(on: Collection[str], band: float) -> None:
    """Raise `BadInput` for reasons to fall back that are not known, and for a band that is no distance of supports."""
    wrong = [on] if isinstance(on, str) else [reason for reason in on if reason not in FALLBACK_ON]
    if wrong or not on:
        raise BadInput(f"fallback on {', '.join(wrong) or 'nothing'}", hint=f"choose of {', '.join(FALLBACK_ON)}")
    if not 0 <= band <= 1:
        raise BadInput(f"fallback band {band} is not in [0, 1]", hint="it is a distance of probabilities")


class FallbackEvaluator(StreamedEvaluator):
    """Asks `second` about the requests that `first` leaves open in one of the ways of `on`, and about no others.

    The second verdict counts where it is one, and the metadata keeps the first as it was; where it is none the first
    stands, and the metadata says so.  Uncertain is a score within `band` of the threshold.  `asked` and `decided` count
    requests by the names of the judges.
    """

    def __init__(
        self,
        first: Evaluator,
        second: Evaluator,
        *,
        on: Collection[str],
        band: float = 0.1,
        names: tuple[str, str] = ("first", "second"),
    ) -> None:
        check_fallback(on, band)
        if names[0] == names[1]:
            raise BadInput(f"both judges are called {names[0]!r}", hint="give them names that tell them apart")
        self.first = first
        self.second = second
        self.on = frozenset(on)
        self.band = band
        self.names = names
        self.asked: Counter[str] = Counter()
        self.decided: Counter[str] = Counter()

    @property
    def usages(self) -> dict[str, Usage | None]:
        """Tell by name what each judge has been asked and has computed; None where it does not say."""
        return {name: usage_of(judge) for name, judge in zip(self.names, (self.first, self.second), strict=True)}

    @property
    def usage(self) -> Usage | None:
        """Tell what both together have been asked and have computed; None where neither says."""
        known = [usage for usage in self.usages.values() if usage is not None]
        return reduce(lambda one, other: one + other, known) if known else None

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, in order; the first judge may go on while the second is asked."""
        pairs = ((requests, requests) for requests in batches)
        with closing(beside(partial(evaluate_stream, self.first), pairs)) as answered:
            for requests, responses in answered:
                yield self._settle(requests, responses)

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        """Evaluate many requests at once; where that fails as a whole, one by one, so that each may fall back."""
        try:
            first = self.first.evaluate_batch(requests)
        except MinicheckError as error:
            if not error.retryable or "error" not in self.on:
                raise
            if len(requests) > 1:
                return [self.evaluate(request) for request in requests]
            first = [failed(error)]
        return self._settle(requests, first)

    def _settle(
        self, requests: Sequence[EvaluationRequest], first: Sequence[EvaluationResponse]
    ) -> list[EvaluationResponse]:
        why = [self._why_open(response) for response in first]
        again = [request for request, reason in zip(requests, why, strict=True) if reason]
        second = iter(self._ask_second(again))
        self.asked.update({self.names[0]: len(requests), self.names[1]: len(again)})
        settled = [
            self._join(response, next(second), reason) if reason else self._decided(response, self.names[0])
            for response, reason in zip(first, why, strict=True)
        ]
        self.decided.update(r.metadata["decided_by"] for r in settled if r.outcome.judged)
        return settled

    def _why_open(self, response: EvaluationResponse) -> str:
        """Return the first of the ways in which a verdict leaves its question open; "" where it does not."""
        ways = {
            "too_long": not response.outcome.judged and "too_long" in _reasons(response),
            "invalid": response.outcome is Outcome.INVALID,
            "error": response.outcome is Outcome.ERROR,
            "uncertain": response.outcome.judged and self._is_near(response),
        }
        return next((way for way, is_so in ways.items() if is_so and way in self.on), "")

    def _is_near(self, response: EvaluationResponse) -> bool:
        threshold = response.metadata.get("threshold")
        if threshold is None or response.score is None:
            return False
        return bool(abs(response.score - threshold) <= self.band + ROUNDING)

    def _ask_second(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        if not requests:
            return []
        try:
            return self.second.evaluate_batch(requests)
        except MinicheckError as error:
            # The first judge's verdicts must not be lost with a second that is away for a while.
            if not error.retryable:
                raise
            return [failed(error)] * len(requests)

    def _join(self, first: EvaluationResponse, second: EvaluationResponse, why: str) -> EvaluationResponse:
        if second.outcome.judged:
            return self._decided(second, self.names[1], fallback_on=why, first=first.to_json())
        stands = f"{self.names[1]} was asked ({why}) and has no verdict: {second.feedback}"
        response = replace(first, feedback=f"{first.feedback}\n{stands}".strip())
        return self._decided(response, self.names[0], fallback_on=why, second=second.to_json())

    @staticmethod
    def _decided(response: EvaluationResponse, name: str, **more: Any) -> EvaluationResponse:
        return replace(response, metadata={**response.metadata, "decided_by": name, **more})


def _reasons(response: EvaluationResponse) -> set[Any]:
    claims = response.metadata.get("claims", ())
    return {response.metadata.get("reason"), *(claim.get("reason") for claim in claims)}
