"""How far a run is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minicheck_eval.scoring import Usage

__all__ = ["Progress", "Step", "claims_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """What has been done of a run: of all its cases, and by this process."""

    done: int
    """Cases that have a record."""
    total: int
    claims: int = 0
    """Claims judged by this process."""
    usage: Usage | None = None
    """What this process computed, where the judge says."""


Progress = Callable[[Step], None]


def claims_of(records: Sequence[Mapping[str, Any]]) -> int:
    """Count the claims that were judged in some records."""
    found = [verdict["metadata"].get("claims") for record in records for verdict in record["verdicts"].values()]
    return sum(len(claims) for claims in found if isinstance(claims, list))
