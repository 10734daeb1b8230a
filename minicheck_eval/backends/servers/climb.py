"""Finds out how many requests at once help: doubles while the throughput rises, and backs away from overload.

A few requests may mislead, where some of them meet errors or share more than others; so what was found is tried again,
after twice as many requests each time.
"""

from __future__ import annotations

__all__ = ["Climb"]

MOST_LANES = 32

LEAST_GAIN = 1.15
"""So much more throughput must twice the requests bring."""

WINDOW = 4
"""A window has so many requests for each lane, and at least twice as many in all."""

HOPELESS = 0.9
"""With less than this share of the throughput before, half a window is enough to see it."""

FIRST_REST = 32
"""Windows until more lanes are tried again."""


class Climb:
    """Decides on a number of lanes from when requests end; `lanes` is the number to use.

    Only windows in which all lanes were busy are judged: an idle lane says nothing about the server.  Overload is what
    meets more than half of the lanes; a single error that passes is none.
    """

    def __init__(self, most: int = MOST_LANES) -> None:
        self.lanes = 1
        self._most = most
        self._before_per_s = 0.0
        self._rest = 0
        self._next_rest = FIRST_REST
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
            if self.lanes > 1:
                self._settle()
            self._change(max(1, self.lanes // 2), overloads)
        else:
            self._look(now_s, full=full, overloads=overloads)

    def _look(self, now_s: float, *, full: bool, overloads: int) -> None:
        window = WINDOW * max(2, self.lanes)
        self._since_look += 1
        if self._since_look >= window:
            self._since_look, self._overloads = 0, overloads
            self._rest = max(0, self._rest - 1)
        if self._start_s is None or not full or self._rest:
            self._start_s, self._ended = now_s, 0
            return
        self._ended += 1
        per_s = self._ended / max(now_s - self._start_s, 1e-9)
        is_hopeless = self._ended >= window // 2 and per_s < HOPELESS * self._before_per_s
        if is_hopeless or self._ended >= window:
            self._judge(per_s, overloads)

    def _judge(self, per_s: float, overloads: int) -> None:
        if per_s < LEAST_GAIN * self._before_per_s:
            self._settle()
            self._change(self.lanes // 2, overloads)
        elif self.lanes >= self._most:
            self._settle()
        else:
            self._before_per_s = per_s
            self._change(min(2 * self.lanes, self._most), overloads)

    def _settle(self) -> None:
        self._before_per_s = 0.0
        self._rest, self._next_rest = self._next_rest, 2 * self._next_rest

    def _change(self, lanes: int, overloads: int) -> None:
        self.lanes = lanes
        self._skip = lanes
        self._start_s = None
        self._since_look, self._overloads = 0, overloads
