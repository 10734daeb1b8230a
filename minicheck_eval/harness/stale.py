"""Cases that are due for review: what was true when they were written may not be true now."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.case import Case

__all__ = ["Review", "age", "due_for_review"]

DAYS = {"d": 1, "w": 7}
LONGEST_DAYS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What should be looked at again."""

    due: tuple[tuple[str, str], ...]
    """Id and date, the oldest first, else in the order of the cases."""
    undated: int
    """Cases without a date: nobody knows."""


def age(text: str) -> timedelta:
    """Read an age such as 180d or 26w."""
    found = re.fullmatch(r"([0-9]+)([dw])", text.strip())
    days = int(found[1]) * DAYS[found[2]] if found and len(found[1]) < len(str(LONGEST_DAYS)) else 0
    if not 0 < days <= LONGEST_DAYS:
        raise BadInput(f"{text[:20]!a} is no age", hint="write days or weeks, such as 180d or 26w")
    return timedelta(days=days)


def due_for_review(cases: Iterable[Case], *, after: timedelta, today: datetime) -> Review:
    """Find the cases whose date is longer ago than `after`; a date without a zone is in UTC."""
    due = []
    undated = 0
    for case in cases:
        if case.date is None:
            undated += 1
            continue
        date = datetime.fromisoformat(case.date)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        if today - date > after:
            due.append((date, (case.id, case.date)))
    due.sort(key=itemgetter(0))
    return Review(due=tuple(written for _, written in due), undated=undated)
