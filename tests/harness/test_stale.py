"""Cases that are due for review."""

from datetime import UTC, datetime, timedelta

import pytest

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.stale import age, due_for_review

TODAY = datetime(2026, 8, 31, tzinfo=UTC)


def test_the_oldest_stand_first_and_the_undated_are_counted(make_case):
    """A case is due when it is older than the age, whether its date has a zone, a time or neither."""
    dates = {"a": "2026-03-03", "b": "2026-03-04", "c": "2026-01-01T10:00:00+02:00", "d": None, "e": "2026-03-03T01:00"}
    found = due_for_review(
        [make_case(name, date=date) for name, date in dates.items()], after=timedelta(days=180), today=TODAY
    )
    assert ["c", "a", "e"] == [name for name, _ in found.due]
    assert 1 == found.undated


def test_ages():
    """Days and weeks are ages."""
    assert (timedelta(days=180), timedelta(days=14)) == (age("180d"), age("2w"))


@pytest.mark.parametrize("text", ["", "180", "d", "-1d", "0d", "1.5d", "1y", "9" * 30 + "d"])
def test_what_is_no_age_is_bad_input(text):
    """Anything else is refused with an example."""
    with pytest.raises(BadInput, match="is no age") as caught:
        age(text)
    assert "180d" in caught.value.hint
