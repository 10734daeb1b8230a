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

    Only windows in which all lanes were busy are judged: an idle lane says nothing about the server.  Overload is what
    meets more than half of the lanes; a single error that passes is none.
    """

    def __init__(self, most: int = MOST_LANES) -> None:
        self.lanes = 1
        self._most = most
        self._settled = False
        self._before_per_s = 0.0
        self._skip = 0
        self._start_s: float | None = None
        self._ended = 0
        self._since_look = 0
        self._overloads = 0

    def ended(self, now_s: float, *, full: bool, overloads: int) -> None:
        """Take note of a request that ended, and whether all lanes were busy since the one before.

        `overloads` is the number of times that the server has been found overloaded so far.
        """
        if self._skip:
            # What began before the last change belongs to neither side of it.
            self._skip -= 1
            self._overloads = overloads
        elif overloads - self._overloads > max(1, self.lanes // 2):
            self._settled |= self.lanes > 1
            self._change(max(1, self.lanes // 2), overloads)
        else:
            self._look(now_s, full=full, overloads=overloads)

    def _look(self, now_s: float, *, full: bool, overloads: int) -> None:
        window = WINDOW * max(2, self.lanes)
        self._since_look += 1
        if self._since_look >= window:
            self._since_look, self._overloads = 0, overloads
        if self._start_s is None or not full:
            self._start_s, self._ended = now_s, 0
            return
        self._ended += 1
        if not self._settled and self._ended >= window:
            self._judge(self._ended / max(now_s - self._start_s, 1e-9), overloads)

    def _judge(self, per_s: float, overloads: int) -> None:
        if per_s < LEAST_GAIN * self._before_per_s:
            self._settled = True
            self._change(self.lanes // 2, overloads)
        elif self.lanes >= self._most:
            self._settled = True
        else:
            self._before_per_s = per_s
            self._change(min(2 * self.lanes, self._most), overloads)

    def _change(self, lanes: int, overloads: int) -> None:
        self.lanes = lanes
        self._skip = lanes
        self._start_s = None
        self._since_look, self._overloads = 0, overloads
