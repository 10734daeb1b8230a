"""Finds out how many requests at once help: doubles while the throughput rises, and backs away from overload."""

from __future__ import annotations

__all__ = ["Climb"]

MOST_LANES = 32

LEAST_GAIN = 1.15
"""So much more throughput must twice the requests bring."""

WINDOW = 4
"""A window has so many requests for each lane, and at least twice as many in all."""


class Climb:
    """Decides on a number of lanes from when requests end; `lanes` is the number to use.

    Only windows in which all lanes were busy are judged: an idle lane says nothing about the server.
    """

    def __init__(self, most: int = MOST_LANES) -> None:
        self.lanes = 1
        self._most = most
        self._settled = False
        self._before_per_s = 0.0
        self._overloads = 0
        self._skip = 0
        self._start_s: float | None = None
        self._count = 0

    def ended(self, now_s: float, *, full: bool, overloads: int) -> int:
        """Take note of a request that ended, with all lanes busy or not, and return how many lanes to use.

        `overloads` is the number of times that the server has been found overloaded so far.
        """
        self._skip -= 1
        if self._skip >= 0:
            # What began before the last change belongs to neither side of it.
            self._overloads = overloads
        elif overloads > self._overloads:
            self._change(max(1, self.lanes // 2), settled=True, overloads=overloads)
        elif not self._settled:
            self._judge(now_s, full=full)
        return self.lanes

    def _judge(self, now_s: float, *, full: bool) -> None:
        if self._start_s is None or not full:
            self._start_s, self._count = now_s, 0
            return
        self._count += 1
        if self._count < WINDOW * max(2, self.lanes):
            return
        per_s = self._count / max(now_s - self._start_s, 1e-9)
        if per_s < LEAST_GAIN * self._before_per_s:
            self._change(self.lanes // 2, settled=True, overloads=self._overloads)
        elif self.lanes >= self._most:
            self._settled = True
        else:
            self._before_per_s = per_s
            self._change(min(2 * self.lanes, self._most), settled=False, overloads=self._overloads)

    def _change(self, lanes: int, *, settled: bool, overloads: int) -> None:
        self.lanes = lanes
        self._settled = settled
        self._overloads = overloads
        self._skip = lanes
        self._start_s = None
