"""Turns scores into an outcome: pure functions, applied alike to fresh and to recorded scores.

Support of a claim is the maximum over the chunks, support of an answer the minimum over its claims (MiniCheck,
arXiv 2404.10774), and the answer passes above the threshold.  A score that is missing never counts as a no: a verdict
is given where no missing score could change it, and is `error` or `invalid` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from minicheck_eval.contract import Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.scoring import Failure, Score

__all__ = ["ClaimVerdict", "DecisionConfig", "check_rule", "decide_answer", "decide_claim"]

HALVINGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionConfig:
    """The rule of deciding; it is recorded with every verdict."""

    threshold: float
    chunk_aggregation: str = "max"
    claim_aggregation: str = "min"
    least_mass: float = 0.5
    """Below this P(yes) + P(no) the judge said neither."""
    support_map: Callable[[float], float] | None = None
    """What a support is worth, where a calibration says so: a rising map, and the threshold is on its scale."""

    @property
    def marks(self) -> dict[str, bool]:
        """Return what a verdict says of its supports beyond the threshold: that they are no longer the judge's own."""
        return {} if self.support_map is None else {"calibrated": True}

    @property
    def raw_threshold(self) -> float:
        """Return the threshold on the scale of the judge's own support."""
        if self.support_map is None:
            return self.threshold
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.support_map(middle) > self.threshold else (middle, high)
        return (low + high) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """The verdict on one claim."""

    outcome: Outcome
    support: float | None
    best_chunk: int | None
    """The chunk that supports the claim most, as a place in the list of scores."""
    reason: str = ""
    """Why there is no verdict: the reason of a failure, or `neither_yes_nor_no`."""


def check_rule(*, threshold: float | None, claim_aggregation: str | None) -> None:
    """Raise `BadInput` for what a caller may give of a rule and is not possible; None is as usual."""
    if threshold is not None and not 0 <= threshold <= 1:  # also refuses NaN
        raise BadInput(f"threshold {threshold} is not in [0, 1]", hint="support is a probability")
    if claim_aggregation not in (None, "min", "mean"):
        raise BadInput(f"claim aggregation {claim_aggregation!r} is not known", hint="choose min or mean")


def decide_claim(scores: Sequence[Score | Failure], config: DecisionConfig) -> ClaimVerdict:
    """Decide one claim from its scores, one for each chunk; there must be at least one."""
    usable = [(s.support, i) for i, s in enumerate(scores) if isinstance(s, Score) and s.mass >= config.least_mass]
    failures = [s for s in scores if isinstance(s, Failure)]
    unclear = len(scores) - len(usable) - len(failures)
    # Of equal supports the first chunk is the best.
    support, best = max(usable, key=lambda pair: (pair[0], -pair[1])) if usable else (None, None)
    if support is not None and config.support_map is not None:
        support = config.support_map(support)
    if support is not None and support > config.threshold:
        return ClaimVerdict(outcome=Outcome.PASS, support=support, best_chunk=best)
    if failures:
        invalid = all(failure.reason == "too_long" for failure in failures)
        outcome = Outcome.INVALID if invalid else Outcome.ERROR
        reason = next((f.reason for f in failures if f.reason != "too_long"), "too_long")
        return ClaimVerdict(outcome=outcome, support=None, best_chunk=best, reason=reason)
    if unclear:
        return ClaimVerdict(outcome=Outcome.INVALID, support=None, best_chunk=best, reason="neither_yes_nor_no")
    return ClaimVerdict(outcome=Outcome.FAIL, support=support, best_chunk=best)


def decide_answer(claims: Sequence[ClaimVerdict], config: DecisionConfig) -> tuple[Outcome, float | None]:
    """Decide an answer from its claims: the outcome, and its support where that is known.

    With the minimum one unsupported claim decides, whatever became of the others; with the mean every claim is needed.
    """
    if not claims:
        return Outcome.NOT_CHECKABLE, None
    supports = [claim.support for claim in claims if claim.support is not None]
    outcomes = {claim.outcome for claim in claims}
    gaps = [outcome for outcome in (Outcome.ERROR, Outcome.INVALID) if outcome in outcomes]
    if config.claim_aggregation == "min":
        if Outcome.FAIL in outcomes:
            return Outcome.FAIL, min(supports)
        return (gaps[0], None) if gaps else (Outcome.PASS, min(supports))
    if gaps:
        return gaps[0], None
    support = fmean(supports)
    return (Outcome.PASS if support > config.threshold else Outcome.FAIL), support
