"""Many questions at once, in lanes: what shares a key goes one after the other, and answers come back by place."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import BoundedSemaphore, Condition, Lock, Thread
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from minicheck_eval.backends.servers.climb import Climb
from minicheck_eval.errors import GivenUp

__all__ = ["Lanes"]

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_AHEAD = 4096
"""So many items (an empty batch counts as one) are in memory before no more batches are read."""

TICK_S = 1.0
"""How often whoever waits looks up, so that an interruption gets through on every system."""


class Lanes(Generic[Item, Result]):
    """Asks through `concurrency` lanes, or through as many as are found to help.

    `ask` answers one item, in a thread; what it raises ends the stream.  If no answer comes for `stall_s` the stream
    ends with `GivenUp`.  `overloads` tells how often the server has been overloaded so far.
    """

    def __init__(
        self,
        ask: Callable[[Item], Result],
        *,
        concurrency: int | None,
        stall_s: float,
        overloads: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ask = ask
        self.stall_s = stall_s
        self.clock = clock
        self._concurrency = concurrency
        self._overloads = overloads
        self._climb = Climb()
        # Streams that are open side by side share the bound.
        self.gate: AbstractContextManager[Any] = BoundedSemaphore(concurrency) if concurrency else nullcontext()
        self._lock = Lock()

    @property
    def count(self) -> int:
        """Return how many lanes there are at present."""
        return self._concurrency or self._climb.lanes

    def ended(self, *, full: bool) -> None:
        """Take note that an item was answered, with all lanes busy or not."""
        with self._lock:
            self._climb.ended(self.clock(), full=full, overloads=self._overloads())

    def stream(self, batches: Iterable[Sequence[tuple[Hashable, Item]]]) -> Generator[list[Result], None, None]:
        """Answer batch after batch of pairs of key and item, in order.

        Later batches are read while lanes would be idle otherwise, in the thread that asks for the answers.
        """
        run = _Run(self)
        source = iter(batches)
        ended: Exception | None = None
        try:
            while (step := run.next_step(more=ended is None)) != "end":
                if step == "hand":
                    yield run.hand()
                    continue
                try:
                    run.take(next(source))
                except Exception as error:  # noqa: BLE001 - it comes out after the answers to what was before it
                    ended = error
            if not isinstance(ended, StopIteration | None):
                raise ended
        finally:
            run.stop()


@dataclass(slots=True, eq=False)
class _Batch:
    results: list[Any]
    left: int


class _Place(NamedTuple):
    """Where the answer to an item goes."""

    batch: _Batch
    place: int
    item: Any


class _Run(Generic[Item, Result]):
    """One stream: the items of each key in a queue, and the threads that serve them."""

    def __init__(self, lanes: Lanes[Item, Result]) -> None:
        self._lanes = lanes
        self._lock = Lock()
        self._work = Condition(self._lock)
        self._news = Condition(self._lock)
        self._queues: dict[Hashable, deque[_Place]] = {}
        self._ready: deque[Hashable] = deque()
        """Keys that have items and no lane."""
        self._pending: deque[_Batch] = deque()
        self._ahead = 0
        self._threads = 0
        self._busy = 0
        self._was_idle = True
        self._wants_more = False
        self._heard_s = 0.0
        self._error: BaseException | None = None
        self._stopped = False

    # What the reader of the stream does.

    def next_step(self, *, more: bool) -> Literal["hand", "read", "end"]:
        """Wait until there is something to hand on or to read, or nothing left."""
        start_s = self._lanes.clock()
        with self._lock:
            while self._error is None:
                if self._pending and not self._pending[0].left:
                    return "hand"
                if more and self._is_hungry():
                    return "read"
                if not self._pending:
                    return "end"
                self._wants_more = more
                # Time that the reader spent elsewhere does not count against the server.
                quiet_s = self._lanes.clock() - max(start_s, self._heard_s)
                if quiet_s >= self._lanes.stall_s:
                    raise GivenUp(
                        f"no request was answered for {quiet_s:.0f} s, {self._busy} are under way",
                        hint="see whether the server still works, or allow a request more time",
                    )
                self._news.wait(min(TICK_S, self._lanes.stall_s - quiet_s))
            raise self._error

    def hand(self) -> list[Result]:
        """Return the answers to the first batch."""
        with self._lock:
            batch = self._pending.popleft()
            self._ahead -= max(1, len(batch.results))
        return cast("list[Result]", batch.results)

    def take(self, pairs: Sequence[tuple[Hashable, Item]]) -> None:
        """Queue the items of a batch."""
        batch = _Batch([None] * len(pairs), len(pairs))
        with self._lock:
            self._was_idle |= not self._queues
            self._pending.append(batch)
            self._ahead += max(1, len(pairs))
            for place, (given, item) in enumerate(pairs):
                key = (given,)  # whatever is given, it is not None
                if key not in self._queues:
                    self._queues[key] = deque()
                    self._ready.append(key)
                self._queues[key].append(_Place(batch, place, item))
            self._call_lanes()

    def stop(self) -> None:
        """Let the lanes end once they have done what they are at; nobody waits for them."""
        with self._lock:
            self._stopped = True
            self._work.notify_all()

    def _is_hungry(self) -> bool:
        """Say whether a lane that ends with its key would have no other one."""
        return len(self._ready) < self._lanes.count and self._ahead < MOST_AHEAD

    def _call_lanes(self) -> None:
        while self._threads < min(self._lanes.count, self._busy + len(self._ready)):
            # A daemon, so that an interrupted program ends without waiting for a server.
            Thread(target=self._lane, args=(self._threads,), name=f"lane-{self._threads}", daemon=True).start()
            self._threads += 1
        self._work.notify_all()

    # What a lane does.

    def _lane(self, number: int) -> None:
        key: Hashable | None = None
        while (found := self._next(number, key)) is not None:
            key, (batch, place, item) = found
            try:
                with self._lanes.gate:
                    result = self._lanes.ask(item)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to who reads the stream
                with self._lock:
                    self._error = self._error or error
                    self._stopped = True
                    self._news.notify_all()
                    self._work.notify_all()
                return
            batch.results[place] = result
            self._end(batch)

    def _next(self, number: int, key: Hashable | None) -> tuple[Hashable, _Place] | None:
        """Return the next item of the key, else of one that is ready; wait where there is none."""
        with self._lock:
            if key is not None and not self._queues[key]:
                del self._queues[key]
                key = None
            if key is not None and number >= self._lanes.count:
                self._ready.appendleft(key)
                self._work.notify_all()
                key = None
            while key is None and not self._stopped:
                if self._ready and number < self._lanes.count:
                    key = self._ready.popleft()
                else:
                    self._work.wait()
            if self._stopped or key is None:
                return None
            self._busy += 1
            return key, self._queues[key].popleft()

    def _end(self, batch: _Batch) -> None:
        with self._lock:
            before = self._lanes.count
            self._lanes.ended(full=self._busy >= before and not self._was_idle)
            self._was_idle = False
            self._busy -= 1
            batch.left -= 1
            self._heard_s = self._lanes.clock()
            if self._lanes.count != before:
                self._call_lanes()
            if not self._pending[0].left or (self._wants_more and self._is_hungry()):
                self._news.notify_all()
