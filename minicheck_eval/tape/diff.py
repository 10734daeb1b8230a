"""Compares two recordings: what the same questions were answered then and now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from minicheck_eval.counts import counted
from minicheck_eval.scoring import Failure, Reply, Score
from minicheck_eval.tape.record import answer_of
from minicheck_eval.tape.tape import Tape

__all__ = ["Change", "Drift", "compare"]

SHOWN = 80


class Change(NamedTuple):
    """One question that is answered otherwise."""

    asked: str
    old: Score | Reply | Failure
    new: Score | Reply | Failure
    crosses: bool
    """Its support moved across the threshold, or the words are others."""

    @property
    def moved(self) -> float:
        """Return how far the support moved; an answer that is no score moved all the way."""
        is_score = isinstance(self.old, Score) and isinstance(self.new, Score)
        return abs(self.new.support - self.old.support) if is_score else 1.0  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What changed between two recordings, the largest changes first."""

    same: int
    changed: tuple[Change, ...]
    only_old: int
    only_new: int

    @property
    def largest(self) -> float:
        """Return the largest move of a support."""
        return max((change.moved for change in self.changed), default=0.0)

    def summary(self) -> str:
        """Say it in one line."""
        crossed = sum(change.crosses for change in self.changed)
        moved = f"{crossed:,} of them across the threshold, by {self.largest:.3g} at most"
        only = f"{self.only_old:,} only on the old tape, {self.only_new:,} only on the new one"
        same = counted(self.same, "answer is", "answers are")
        return f"{same} the same, {len(self.changed):,} changed ({moved}), {only}"

    def lines(self) -> list[str]:
        """Say of each change what was asked and what was answered."""
        return [
            f"{'!' if change.crosses else '~'} {_said(change.old)} → {_said(change.new)} {change.asked[:SHOWN]}"
            for change in self.changed
        ]


def compare(old: Tape, new: Tape, *, threshold: float = 0.5) -> Drift:
    """Compare the answers of two tapes to the questions that both have."""
    same = only_old = common = 0
    changed: list[Change] = []
    for record in old.records():
        if record["kind"] not in ("score", "reply"):
            continue
        other = new.find(record["key"])
        if other is None:
            only_old += 1
            continue
        common += 1
        before, after = answer_of(record), answer_of(other)
        if before == after:
            same += 1
        else:
            changed.append(Change(" | ".join(record["suffix"]), before, after, _crosses(before, after, threshold)))
    total = sum(count for kind, count in new.stats().records.items() if kind in ("score", "reply"))
    changed.sort(key=lambda change: (not change.crosses, -change.moved, change.asked))
    return Drift(same=same, changed=tuple(changed), only_old=only_old, only_new=total - common)


def _crosses(old: object, new: object, threshold: float) -> bool:
    if isinstance(old, Score) and isinstance(new, Score):
        return (old.support > threshold) != (new.support > threshold)
    return True


def _said(answer: Score | Reply | Failure) -> str:
    match answer:
        case Score():
            return f"{answer.support:.3f}"
        case Reply():
            return repr(answer.text[:SHOWN])
        case _:
            return answer.reason
