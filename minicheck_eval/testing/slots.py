"""The places where a server computes: a queue before them, and in each the prompt that it computed last."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["BYTES_A_TOKEN", "Closed", "Held", "Slots", "count_tokens", "shared_length"]

BYTES_A_TOKEN = 4
_LEAST_SHARED = 0.10  # of a prompt, so that a slot is chosen for what it remembers


class Closed(Exception):
    """The server closes: nobody is answered any more."""


def count_tokens(text: str) -> int:
    """Count tokens as the fakes do: four bytes of UTF-8 are one, and so is what is left over."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


class Held(NamedTuple):
    """What a request takes of its slot."""

    cached_tokens: int
    """Of its prompt, which the slot remembers."""
    seconds: float


@dataclass(slots=True, eq=False)
class _Slot:
    prompt: str = ""
    used: int = 0
    free_s: float = 0.0
    """When its last request was done, on the clock of `time.perf_counter`."""


@dataclass(slots=True, eq=False)
class _Turn:
    """A request that waits for a slot, and then holds it."""

    prompt: str
    came: threading.Event = field(default_factory=threading.Event)
    slot: _Slot | None = None
    cached: int = 0


class Slots:
    """Lets as many requests compute at once as there are slots, the others in the order of their arrival.

    A request takes its time from its arrival, or from the end of the one before it: what the fake itself does meanwhile
    takes no time of its own.
    """

    def __init__(
        self, slots: int, closing: threading.Event, *, seconds_per_request: float, seconds_per_token: float
    ) -> None:
        self._seconds_per_request = seconds_per_request
        self._seconds_per_token = seconds_per_token
        self._idle = [_Slot() for _ in range(slots)]
        self._closing = closing
        self._lock = threading.Lock()
        self._waiting: deque[_Turn] = deque()
        self._uses = 0
        self.computed_tokens = 0
        """Of all prompts so far, without those that a slot remembered."""

    def wake(self) -> None:
        """Let all who wait see that the server closes."""
        with self._lock:
            for turn in self._waiting:
                turn.came.set()

    @contextmanager
    def take(self, prompt: str, arrived_s: float) -> Generator[Held]:
        """Hold a slot for as long as the prompt takes; leave it when the answer is ready."""
        turn = _Turn(prompt)
        with self._lock:
            self._waiting.append(turn)
            self._serve()
            if self._closing.is_set():
                turn.came.set()
        turn.came.wait()
        if turn.slot is None:
            raise Closed
        computed = count_tokens(prompt) - turn.cached
        seconds = self._seconds_per_request + self._seconds_per_token * computed
        end_s = max(arrived_s, turn.slot.free_s) + seconds
        try:
            yield Held(turn.cached, seconds)
            if self._closing.wait(max(0.0, end_s - time.perf_counter())):
                raise Closed
        finally:
            with self._lock:
                turn.slot.free_s = end_s
                self._idle.append(turn.slot)
                self._serve()

    def _serve(self) -> None:
        """Give the idle slots to those who wait."""
        while self._idle and self._waiting:
            turn = self._waiting.popleft()
            turn.slot, turn.cached = self._best(turn.prompt)
            self._idle.remove(turn.slot)
            self._uses += 1
            turn.slot.prompt, turn.slot.used = turn.prompt, self._uses
            self.computed_tokens += count_tokens(turn.prompt) - turn.cached
            turn.came.set()

    def _best(self, prompt: str) -> tuple[_Slot, int]:
        """Choose the slot that remembers most of a prompt, or the one that was not used for longest."""
        shared = {slot: shared_length(prompt, slot.prompt) for slot in self._idle}
        best = max(self._idle, key=shared.__getitem__)
        if shared[best] <= _LEAST_SHARED * len(prompt):
            best = min(self._idle, key=lambda slot: slot.used)
        # At least one token is computed.
        cached = min(count_tokens(prompt[: shared[best]]), count_tokens(prompt) - 1)
        return best, max(cached, 0)


def shared_length(one: str, other: str) -> int:
    """Return how many characters two texts share at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        # Only the half in doubt is compared.
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
