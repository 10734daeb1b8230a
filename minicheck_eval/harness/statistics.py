"""Rates with their uncertainty, and what two of them tell about each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

__all__ = [
    "LEVEL",
    "Difference",
    "Rate",
    "Z",
    "mcnemar",
    "paired_difference",
    "percent",
    "points",
    "rate",
    "rate_in_words",
    "unpaired_difference",
    "wilson",
]

LEVEL = 0.05
"""A finding that chance alone gives more rarely than this can be seen; intervals are of 95 %."""
Z = NormalDist().inv_cdf(1 - LEVEL / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`k` of `n`, with the Wilson interval of 95 %."""

    k: int
    n: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """Return k/n."""
        return self.k / self.n

    def to_json(self) -> dict[str, Any]:
        """Return the rate as JSON-ready values."""
        return {"k": self.k, "n": self.n, "value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One rate less another, with the Newcombe interval of 95 %."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON-ready values."""
        return {"value": self.value, "low": self.low, "high": self.high}


def rate(k: int, n: int) -> Rate | None:
    """Return the rate of k in n, or None over nothing."""
    if n == 0:
        return None
    low, high = wilson(k / n, n)
    # Rounding must not leave a trace of what did not happen.
    return Rate(k=k, n=n, low=low if k else 0.0, high=high if k < n else 1.0)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the interval of 95 % of Wilson, JASA 22 (1927) 209, around a share of n.

    Written out, since every run needs it, and none should wait a second until SciPy is loaded.
    """
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * sqrt(share * (1 - share) / n + (Z / (2 * n)) ** 2) / (1 + Z**2 / n)
    return middle - half, middle + half


def unpaired_difference(first: Rate, second: Rate) -> Difference:
    """Return first less second, of cases that have nothing to do with each other."""
    return _difference(first, second, correlation=0.0)


def paired_difference(*, both: int, first_only: int, second_only: int, neither: int) -> Difference | None:
    """Return the first rate less the second, of the same cases judged twice; None over nothing.

    The interval is that of Newcombe, Statistics in Medicine 17 (1998) 2635, method 10.
    """
    n = both + first_only + second_only + neither
    first, second = rate(both + first_only, n), rate(both + second_only, n)
    if first is None or second is None:
        return None
    spread = sqrt(first.k * (n - first.k)) * sqrt(second.k * (n - second.k))
    surplus = both * neither - first_only * second_only
    # Newcombe's correction for continuity: a weak positive correlation counts as none.
    corrected = max(surplus - n / 2, 0.0) if surplus > 0 else float(surplus)
    return _difference(first, second, correlation=corrected / spread if spread else 0.0)


def mcnemar(*, gained: int, lost: int) -> float:
    """Return how often chance alone flips as unequally (two-sided, exact); 1 where nothing flips."""
    if gained + lost == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost).pvalue)


def percent(share: float) -> str:
    """Write a share as a percentage; only all of it is 100 %, and only nothing is 0 %."""
    value = round(share * 100, 1)
    if share < 1:
        value = min(value, 99.9)
    if share > 0:
        value = max(value, 0.1)
    return f"{value:.1f} %"


def points(difference: Difference) -> str:
    """Write a difference in percentage points, with its interval."""
    value, low, high = (
        f"{round(100 * share, 1) + 0.0:+.1f}" for share in (difference.value, difference.low, difference.high)
    )
    return f"{value} points [{low}, {high}]"


def rate_in_words(found: Rate) -> str:
    """Write a rate with its counts and its interval."""
    shares = f"{percent(found.value)} [{percent(found.low)}, {percent(found.high)}]"
    return f"{found.k} of {found.n} passed = {shares}"


def _difference(first: Rate, second: Rate, *, correlation: float) -> Difference:
    value = first.value - second.value
    down = _joint(first.value - first.low, second.high - second.value, correlation)
    up = _joint(first.high - first.value, second.value - second.low, correlation)
    return Difference(value=value, low=max(value - down, -1.0), high=min(value + up, 1.0))


def _joint(one: float, other: float, correlation: float) -> float:
    # Rounding may leave less than nothing where the two cancel.
    return sqrt(max(one**2 - 2 * correlation * one * other + other**2, 0.0))
