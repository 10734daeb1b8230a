"""Lay a pass out in memory and cut its attention into segments: pure Python, no tensors.

In depth-first order the tokens of a subtree are one range, so what a token sees is few ranges: the nodes on its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from minicheck_eval.engine.plan import Pass

__all__ = ["Layout", "Range", "Segment", "lay_out"]

Range = tuple[int, int]

GROUP_TOKENS = 512
"""A subtree of at most so many tokens is one segment, together with its neighbours."""

MASK_CELLS = 1 << 22
"""Most queries × keys of a long segment with a mask; the mask takes a byte or more for each."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Queries whose attention is computed at once: they see all of `above`, and of each other what stands before."""

    queries: Range
    above: tuple[Range, ...]
    """The ranges of the path that leads here, from the root."""
    is_chain: bool
    """Each query sees all queries before it; otherwise only those on its own path."""
    repeats_above: bool
    """Compute the rows of `above` once more: where little stands there, that costs less than a mask."""

    @property
    def depth(self) -> int:
        """Return how many tokens stand above."""
        return sum(end - start for start, end in self.above)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the nodes of a pass lie."""

    ranges: tuple[Range, ...]
    """The tokens of each node."""
    ends: tuple[int, ...]
    """For each node, where the tokens of its subtree end."""
    segments: tuple[Segment, ...]

    @property
    def seen_until(self) -> list[int]:
        """Return for each token the first place from which no later token sees it."""
        return [stop for (start, end), stop in zip(self.ranges, self.ends, strict=True) for _ in range(start, end)]


def lay_out(one: Pass) -> Layout:
    """Place the nodes of a pass one after the other, and cut their attention into segments."""
    ranges: list[Range] = []
    for node in one.nodes:
        start = ranges[-1][1] if ranges else 0
        ranges.append((start, start + len(node.ids)))
    ends = [end for _, end in ranges]
    children = [0] * len(ranges)
    for i in reversed(range(len(ranges))):
        if (parent := one.nodes[i].parent) >= 0:
            ends[parent] = max(ends[parent], ends[i])
            children[parent] += 1
    return Layout(tuple(ranges), tuple(ends), tuple(_segments(one, ranges, ends, children)))


def _segments(one: Pass, ranges: list[Range], ends: list[int], children: list[int]) -> Iterator[Segment]:
    i = 0
    while i < len(ranges):
        start, depth, parent = ranges[i][0], one.nodes[i].depth, one.nodes[i].parent
        last = i
        while children[last] == 1:
            last += 1
        stop = ranges[last][1]
        is_chain = True
        if ends[i] - start <= GROUP_TOKENS:
            # Neighbours join as long as they see more above than of each other.
            most = start + max(ends[i] - start, min(GROUP_TOKENS, depth))
            is_chain = stop == ends[i]
            stop = ends[i]
            while (after := _node_at(ranges, last, stop)) is not None:
                if one.nodes[after].parent != parent or ends[after] > most:
                    break
                is_chain, stop, last = False, ends[after], after
        own = stop - start
        repeats_above = is_chain and (depth <= own or own * (depth + own) > MASK_CELLS)
        yield Segment((start, stop), _above(one, ranges, parent), is_chain, repeats_above)
        while i < len(ranges) and ranges[i][0] < stop:
            i += 1


def _node_at(ranges: list[Range], place: int, start: int) -> int | None:
    """Return the node, from `place` on, whose tokens begin at `start`."""
    while place < len(ranges) and ranges[place][0] < start:
        place += 1
    return place if place < len(ranges) else None


def _above(one: Pass, ranges: list[Range], node: int) -> tuple[Range, ...]:
    """Return the ranges from the root to the node, neighbours joined."""
    path: list[Range] = []
    while node >= 0:
        start, end = ranges[node]
        if path and path[-1][0] == end:
            path[-1] = (start, path[-1][1])
        else:
            path.append((start, end))
        node = one.nodes[node].parent
    return tuple(reversed(path))
