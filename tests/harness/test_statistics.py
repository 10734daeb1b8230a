"""Rates and differences, and their intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from minicheck_eval.harness.statistics import (
    Difference,
    Rate,
    mcnemar,
    paired_difference,
    percent,
    points,
    rate,
    unpaired_difference,
)

COUNTS = st.integers(0, 40)
PAIRS = st.tuples(COUNTS, COUNTS, COUNTS, COUNTS).filter(any)


def paired(both, first_only, second_only, neither):
    return paired_difference(both=both, first_only=first_only, second_only=second_only, neither=neither)


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
    """No rate is made up where nothing was judged, and no difference either."""
    assert rate(0, 0) is None
    assert paired(0, 0, 0, 0) is None


def test_a_rate_as_json():
    """The rate is written with its counts and plain numbers."""
    found = rate(1, 2).to_json()
    assert ["k", "n", "value", "low", "high"] == list(found)
    assert {int, float} == {type(value) for value in found.values()}
    assert Rate(k=1, n=2, low=found["low"], high=found["high"]) == rate(1, 2)


@pytest.mark.parametrize(
    ("first", "second", "value", "low", "high"),
    [
        ((56, 70), (48, 80), 0.2, 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.6, 0.1705, 0.8090),
        ((5, 56), (0, 29), 0.0893, -0.0381, 0.1926),
        ((0, 10), (0, 10), 0.0, -0.2775, 0.2775),
    ],
)
def test_unpaired_intervals_are_the_published_ones(first, second, value, low, high):
    """The interval is that of Newcombe 1998 (page 873), method 10, in his own examples."""
    found = unpaired_difference(rate(*first), rate(*second))
    assert pytest.approx((value, low, high), abs=6e-5) == (found.value, found.low, found.high)


@pytest.mark.parametrize(
    ("table", "value", "low", "high"),
    [
        ((14, 5, 0, 22), 0.122, 0.011, 0.226),
        ((15, 0, 3, 2), -0.15, -0.352, 0.045),
        ((20, 0, 0, 0), 0.0, -0.161, 0.161),
    ],
)
def test_paired_intervals(table, value, low, high):
    """The interval is that of Newcombe 1998 (page 2635), method 10; the first example is Altman's, 0.01 to 0.23."""
    found = paired(*table)
    assert pytest.approx((value, low, high), abs=0.0006) == (found.value, found.low, found.high)


@settings(max_examples=60, deadline=None)
@given(PAIRS)
def test_a_paired_interval_holds_its_value_and_turns_round(table):
    """The value lies in the interval, within [-1, 1], and the runs in the other order give the mirror image."""
    both, first, second, neither = table
    found, turned = paired(*table), paired(both, second, first, neither)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert pytest.approx((-found.value, -found.high, -found.low)) == (turned.value, turned.low, turned.high)


@settings(max_examples=60, deadline=None)
@given(COUNTS, COUNTS)
def test_mcnemar_is_the_exact_test(gained, lost):
    """The p is twice the binomial tail of the rarer flip, at most 1."""
    expected = min(1.0, 2 * binom.cdf(min(gained, lost), gained + lost, 0.5)) if gained + lost else 1.0
    assert pytest.approx(expected) == mcnemar(gained=gained, lost=lost)


@settings(max_examples=60, deadline=None)
@given(PAIRS)
def test_statsmodels_finds_the_same(table):
    """Wilson, Newcombe's unpaired interval and the exact McNemar test equal those of statsmodels."""
    pytest.importorskip("statsmodels")
    from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
    from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

    both, first_only, second_only, neither = table
    n, first, second = sum(table), both + first_only, both + second_only
    found = rate(first, n)
    assert pytest.approx(proportion_confint(first, n, method="wilson"), abs=1e-12) == (found.low, found.high)
    difference = unpaired_difference(found, rate(second, n))
    theirs = confint_proportions_2indep(first, n, second, n, method="newcomb")
    assert pytest.approx(theirs, abs=1e-9) == (difference.low, difference.high)
    # Theirs can be a little above 1 where the flips are equal.
    p = their_mcnemar([[both, first_only], [second_only, neither]], exact=True).pvalue
    assert pytest.approx(min(p, 1.0)) == mcnemar(gained=first_only, lost=second_only)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_without_correlation_a_paired_interval_is_the_unpaired_one(a, b, c, d):
    """Where the verdicts of two runs have nothing to do with each other, the interval is the one of statsmodels."""
    pytest.importorskip("statsmodels")
    from statsmodels.stats.proportion import confint_proportions_2indep

    # Rows and columns that are multiples of each other have no correlation.
    both, first_only, second_only, neither = a * c, a * d, b * c, b * d
    n = both + first_only + second_only + neither
    if not n:
        return
    found = paired(both, first_only, second_only, neither)
    theirs = confint_proportions_2indep(both + first_only, n, both + second_only, n, method="newcomb")
    assert pytest.approx(theirs, abs=1e-9) == (found.low, found.high)


@settings(max_examples=100, deadline=None)
@given(PAIRS)
def test_a_paired_interval_is_the_published_formula(table):
    """Newcombe's method 10 written out in his letters, with Wilson's limits and phi from SciPy and NumPy."""
    e, f, g, h = table
    n = sum(table)
    theta = (f - g) / n
    l2, u2 = binomtest(e + f, n).proportion_ci(method="wilson")
    l3, u3 = binomtest(e + g, n).proportion_ci(method="wilson")
    margins = (e + f) * (g + h) * (e + g) * (f + h)
    top = e * h - f * g
    # Negative surpluses stay as they are; positive ones lose n / 2, and none falls below zero.
    phi = 0.0 if not margins else (max(top - n / 2, 0.0) if top > 0 else top) / np.sqrt(margins)
    dl2, du2, dl3, du3 = (e + f) / n - l2, u2 - (e + f) / n, (e + g) / n - l3, u3 - (e + g) / n
    low = theta - np.sqrt(max(dl2**2 - 2 * phi * dl2 * du3 + du3**2, 0))
    high = theta + np.sqrt(max(du2**2 - 2 * phi * du2 * dl3 + dl3**2, 0))
    found = paired(*table)
    assert pytest.approx((theta, max(low, -1), min(high, 1)), abs=1e-6) == (found.value, found.low, found.high)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.99999, "99.9 %"), (0.00001, "0.1 %"), (0.5, "50.0 %"), (0.699, "69.9 %")],
)
def test_percentages_never_round_to_all_or_nothing(share, expected):
    """Only all is 100 % and only nothing is 0 %."""
    assert expected == percent(share)


def test_points_have_a_sign():
    """A difference says in which direction it goes; nothing is not negative."""
    assert "-15.0 points [-38.0, +9.4]" == points(Difference(value=-0.15, low=-0.3803, high=0.0939))
    assert "+0.0 points [+0.0, +0.0]" == points(Difference(value=-1e-9, low=0.0, high=0.0))
