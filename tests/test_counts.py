"""Counts in words."""

import pytest

from minicheck_eval.counts import counted


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((0, "case"), "0 cases"),
        ((1, "case"), "1 case"),
        ((2000, "case"), "2,000 cases"),
        ((1.0, "point"), "1 point"),
        ((2.5, "point"), "2.5 points"),
        ((1, "row was", "rows were"), "1 row was"),
        ((3, "row was", "rows were"), "3 rows were"),
    ],
)
def test_one_is_not_many(words, expected):
    """Only one stands in the singular, and large numbers have their commas."""
    assert expected == counted(*words)
