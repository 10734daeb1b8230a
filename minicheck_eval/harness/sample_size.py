"""How many cases it takes: for an interval of a wanted width, or to see a drop."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from statistics import NormalDist

from minicheck_eval.harness.statistics import LEVEL, Z, wilson

__all__ = [
    "MOST_CASES",
    "POWER",
    "cases_for_drop",
    "cases_for_lower_bound",
    "cases_for_paired_drop",
    "cases_for_width",
    "power_of_mcnemar",
]

POWER = 0.8
"""How often a drop should be seen where there is one."""
MOST_CASES = 10_000_000
"""Beyond this no plan is made."""


def cases_for_width(share: float, width: float) -> int | None:
    """Return the least number of cases whose Wilson interval at this pass rate is no wider; None beyond all means."""

    def narrow_enough(n: int) -> bool:
        low, high = wilson(share, n)
        return high - low <= width

    return _least(narrow_enough)


def cases_for_lower_bound(share: float, least: float) -> int | None:
    """Return the least number of cases whose Wilson interval at this pass rate begins no lower than `least`."""
    return _least(lambda n: wilson(share, n)[0] >= least)


def cases_for_drop(before: float, after: float, *, power: float = POWER) -> int | None:
    """Return how many cases in each of two runs of different cases show that the rate is another (z-test)."""
    if before == after:
        return None
    mean, beta = (before + after) / 2, NormalDist().inv_cdf(power)
    alike, apart = 2 * mean * (1 - mean), before * (1 - before) + after * (1 - after)

    def enough(n: int) -> bool:
        return Z * sqrt(alike) + beta * sqrt(apart) <= abs(before - after) * sqrt(n)

    return _least(enough)


def cases_for_paired_drop(lost: float, gained: float, *, power: float = POWER) -> int | None:
    """Return how many cases, judged in both runs, show a drop, by the shares that newly fail and newly pass."""
    if lost <= gained:
        return None
    return _least(lambda n: power_of_mcnemar(n, lost, gained) >= power)


def power_of_mcnemar(n: int, lost: float, gained: float) -> float:
    """Return how often the exact McNemar test sees a drop in n cases."""
    import numpy as np
    from scipy.stats import binom

    # Shares of all cases that make up the whole may add up to a little more.
    flips, share = min(lost + gained, 1.0), lost / (lost + gained)
    low, high = (int(binom.ppf(tail, n, flips)) for tail in (1e-9, 1 - 1e-9))
    count = np.arange(max(low, 1), max(high, 1) + 1)
    # Of `count` flips the test sees a drop where at most `rare` are gains.
    rare = binom.ppf(LEVEL / 2, count, 0.5)
    rare = np.where(binom.cdf(rare, count, 0.5) <= LEVEL / 2, rare, rare - 1)
    return float(np.sum(binom.pmf(count, n, flips) * binom.cdf(rare, count, 1 - share)))


def _least(enough: Callable[[int], bool]) -> int | None:
    """Find the least number that is enough, where more than enough is enough."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_CASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
