"""Rates with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Rate", "rate"]


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


def rate(k: int, n: int) -> Rate | None:
    """Return the rate of k in n, or None over nothing."""
    if n == 0:
        return None
    from scipy.stats import binomtest

    interval = binomtest(k, n).proportion_ci(method="wilson")
    return Rate(k=k, n=n, low=float(interval.low), high=float(interval.high))
