"""How many cases it takes."""

import numpy as np
import pytest
from scipy.stats import binom

from minicheck_eval.harness.sample_size import (
    cases_for_drop,
    cases_for_lower_bound,
    cases_for_paired_drop,
    cases_for_width,
    power_of_mcnemar,
)
from minicheck_eval.harness.statistics import rate


@pytest.mark.parametrize(("share", "width", "expected"), [(0.5, 0.1, 381), (0.9, 0.1, 141), (1.0, 0.1, 35)])
def test_a_width(share, width, expected):
    """So many cases give a Wilson interval of that width at that rate, and one fewer does not."""
    assert expected == cases_for_width(share, width)
    if share == 1.0:
        assert rate(35, 35).high - rate(35, 35).low <= width < rate(34, 34).high - rate(34, 34).low


@pytest.mark.parametrize(("share", "least"), [(0.95, 0.9), (1.0, 0.9), (0.75, 0.5)])
def test_a_lower_bound(share, least):
    """At the planned number the Wilson interval begins at the asked rate."""
    n = cases_for_lower_bound(share, least)
    # The next number at which the rate can be exactly this one.
    whole = next(m for m in range(n, n + 20) if abs(share * m - round(share * m)) < 1e-9)
    assert least <= rate(round(share * whole), whole).low < least + 0.01
    assert cases_for_lower_bound(0.9, 0.9) is None


def test_a_drop_between_different_cases():
    """A drop from 90 % to 75 % takes 100 cases in each run, as tables for 80 % power and 5 % have it."""
    assert 100 == cases_for_drop(0.9, 0.75)
    assert 388 == cases_for_drop(0.5, 0.4)
    assert cases_for_drop(0.9, 0.75, power=0.9) > 100
    assert cases_for_drop(0.9, 0.9) is None


def test_statsmodels_finds_the_same_power():
    """At the planned number the power that statsmodels computes reaches what was asked, and not with one fewer."""
    pytest.importorskip("statsmodels")
    from statsmodels.stats.proportion import power_proportions_2indep

    random = np.random.default_rng(3)
    rates = np.sort(random.uniform(0.02, 0.98, size=(40, 2)))[:, ::-1]
    for before, after in ((0.9, 0.75), (0.95, 0.9), (0.5, 0.4), (0.99, 0.9), *rates[rates[:, 0] - rates[:, 1] > 0.03]):
        n = cases_for_drop(before, after)
        power = [power_proportions_2indep(before - after, after, m, return_results=False) for m in (n - 1, n)]
        assert power[0] < 0.8 <= power[1]


@pytest.mark.parametrize(("lost", "gained"), [(0.15, 0.0), (0.1, 0.05), (0.3, 0.02)])
def test_a_drop_between_the_same_cases(lost, gained):
    """The planned number has the power that was asked, and it is the exact test's."""
    n = cases_for_paired_drop(lost, gained)
    assert power_of_mcnemar(n - 1, lost, gained) < 0.8 <= power_of_mcnemar(n, lost, gained)
    losses, gains = np.indices((n + 1, n + 1))
    p = 2 * binom.cdf(np.minimum(losses, gains), losses + gains, 0.5)
    seen = (losses > gains) & (p < 0.05)
    lose = binom.pmf(np.arange(n + 1), n, lost)
    gain = np.array([binom.pmf(np.arange(n + 1), n - i, gained / (1 - lost)) for i in range(n + 1)])
    assert pytest.approx(float((lose[:, None] * gain * seen).sum()), abs=1e-6) == power_of_mcnemar(n, lost, gained)


def test_what_no_number_shows_is_none():
    """Where as many are gained as lost there is no drop, and a difference beyond all means has no plan."""
    assert cases_for_paired_drop(0.1, 0.1) is None
    assert cases_for_width(0.5, 1e-9) is None
