"""Rates and their intervals."""

import pytest

from minicheck_eval.harness.statistics import Rate, rate


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(18, 20, 0.699, 0.972), (15, 20, 0.531, 0.888), (20, 20, 0.839, 1.0), (0, 20, 0.0, 0.161), (1, 1, 0.207, 1.0)],
)
def test_wilson_intervals(k, n, low, high):
    """The interval is Wilson's of 95 %, as tables have it."""
    found = rate(k, n)
    assert (k, n, k / n) == (found.k, found.n, found.value)
    assert pytest.approx((low, high), abs=0.0005) == (found.low, found.high)


def test_a_rate_over_nothing_is_none():
    """No rate is made up where nothing was judged."""
    assert rate(0, 0) is None


def test_a_rate_as_json():
    """The rate is written with its counts and plain numbers."""
    found = rate(1, 2).to_json()
    assert ["k", "n", "value", "low", "high"] == list(found)
    assert {int, float} == {type(value) for value in found.values()}
    assert Rate(k=1, n=2, low=found["low"], high=found["high"]) == rate(1, 2)
