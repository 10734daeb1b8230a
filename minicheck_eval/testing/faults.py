"""What goes wrong on a fake server, how often, and for which prompts: the same ones in every run."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from dataclasses import dataclass, field, fields

from minicheck_eval.errors import BadInput

__all__ = ["Faults"]

LASTING = ("silent_cut", "no_logprobs", "empty_reply", "prose")
"""What a model or a server does to a prompt each time it is asked; the others pass when a request is repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The share of prompts, from 0 to 1, that meet each fault; a prompt meets one fault at most.

    Which prompts are hit follows from their text and the seed, so order and concurrency do not matter.
    """

    seed: int = 0
    times: int = 1
    """How often a prompt meets a fault that passes, before it is answered."""
    slow_s: float = 0.2
    """By how much a slow answer is late."""

    burst_503: float = 0.0
    """The server is busy: status 503."""
    reset: float = 0.0
    """The connection is reset, without an answer."""
    hang: float = 0.0
    """The request is never answered."""
    half_json: float = 0.0
    """The body ends in the middle of its JSON, and HTTP says that all is well."""
    torn_body: float = 0.0
    """The connection closes before the announced length."""
    midstream_error: float = 0.0
    """An error in the body, under the status 200."""
    slow: float = 0.0
    """The answer is right but late, so that answers come out of order."""
    silent_cut: float = 0.0
    """A prompt that is too long is cut and answered, whatever the request says; one that fits is not touched."""
    no_logprobs: float = 0.0
    """The answer has no log-probabilities."""
    empty_reply: float = 0.0
    """The model says nothing."""
    prose: float = 0.0
    """The model answers with a sentence that holds no verdict."""

    _met: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        rates = self._rates()
        if any(not 0 <= rate <= 1 for _, rate in rates) or sum(rate for _, rate in rates) > 1 + 1e-9:
            raise BadInput(f"the rates of faults are {dict(rates)}", hint="give shares from 0 to 1, together at most 1")

    def _rates(self) -> list[tuple[str, float]]:
        settings = ("seed", "times", "slow_s", "_met", "_lock")
        return [(one.name, getattr(self, one.name)) for one in fields(self) if one.name not in settings]

    def of(self, prompt: str) -> str | None:
        """Name the fault that this prompt meets, if it meets one."""
        drawn = hashlib.sha256(f"{self.seed}\n{prompt}".encode()).digest()[:8]
        place = int.from_bytes(drawn) / 2**64
        for name, rate in self._rates():
            if place < rate:
                return name
            place -= rate
        return None

    def meet(self, prompt: str) -> str | None:
        """Name the fault of this request, and remember that the prompt was asked."""
        name = self.of(prompt)
        if name is None or name in LASTING:
            return name
        with self._lock:
            self._met[prompt] += 1
            return name if self._met[prompt] <= self.times else None
