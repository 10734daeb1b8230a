"""Keeps one model loaded on an Ollama server, with one num_ctx at a time, which only grows.

A request with another num_ctx than the one before makes the server load the model again, so all requests of a run use
the same, and a larger one is taken into use only when those under way are done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from minicheck_eval.backends.servers.http import Refused, Transport, Unanswered
from minicheck_eval.backends.servers.ollama_catalogue import Catalogue
from minicheck_eval.backends.servers.ollama_facts import OpenedModel
from minicheck_eval.backends.servers.ollama_window import TooLong, next_step, step_for
from minicheck_eval.errors import BackendError, IntegrityError
from minicheck_eval.scoring import Failure

__all__ = ["KEEP_ALIVE", "Loading", "changed"]

KEEP_ALIVE = "30m"
"""Longer than any pause of a run: loading takes minutes."""

NO_MEMORY = re.compile(r"memory|alloc", re.IGNORECASE)


class Loading:
    """The model that is asked, as the server has loaded it."""

    def __init__(self, transport: Transport, catalogue: Catalogue, opened: OpenedModel) -> None:
        self._transport = transport
        self._catalogue = catalogue
        self._opened = opened
        self._window = opened.facts.window_tokens
        self._num_ctx = 0
        self._limit: tuple[int, Failure] | None = None
        """What the server could not load, and why."""
        self._turn = Condition()
        self._asking = 0
        self._is_loading = False

    def start(self) -> None:
        """Load the model for short prompts, or raise what keeps the server from it."""
        num_ctx = step_for(1, self._window)
        self._num_ctx = num_ctx  # as if it had been loaded: there is nothing to go back to
        failure = self._load(num_ctx)
        if failure:
            raise BackendError(failure.message, hint="take a smaller model, or free memory on the server")

    @contextmanager
    def asking(self) -> Iterator[int]:
        """Hold the num_ctx for one request."""
        with self._turn:
            self._turn.wait_for(lambda: not self._is_loading)
            self._asking += 1
            num_ctx = self._num_ctx
        try:
            yield num_ctx
        finally:
            with self._turn:
                self._asking -= 1
                self._turn.notify_all()

    def grow(self, tried: int, found: TooLong) -> Failure | None:
        """Make room for a prompt that did not fit into `tried` tokens, or return why there cannot be more."""
        window = self._window
        larger = next_step(tried, window)
        if larger is None or (found.tokens or 0) >= window:
            return _too_long(found, window)
        wanted = max(larger, step_for(found.tokens or 0, window))
        with self._turn:
            self._turn.wait_for(lambda: not self._is_loading)
            if self._num_ctx >= wanted:
                return None  # another one made room
            if self._limit and wanted >= self._limit[0]:
                return self._limit[1]
            self._is_loading = True
            self._turn.wait_for(lambda: not self._asking)
        try:
            failure = self._load(wanted)
            if failure:
                self._limit = (wanted, failure)
            else:
                self._num_ctx = wanted
            return failure
        finally:
            with self._turn:
                self._is_loading = False
                self._turn.notify_all()

    def _load(self, num_ctx: int) -> Failure | None:
        """Load the model, and check what was loaded; a failure says that the server cannot hold so much."""
        model = self._opened.facts.model
        empty = {"model": model, "prompt": "", "stream": False, "keep_alive": KEEP_ALIVE}
        what = f"the server cannot load {model!r} with room for {num_ctx:,} tokens"
        try:
            self._transport.post("/api/generate", {**empty, "options": {"num_ctx": num_ctx}})
        except (Unanswered, Refused) as error:
            if NO_MEMORY.search(str(error)):
                return Failure("out_of_memory", f"{what}: {error}")
            raise
        loaded = self._catalogue.loaded(model)
        if loaded is None:
            raise BackendError(
                f"the server does not show {model!r} as loaded just after it was",
                hint="see its log; more than one server may answer at this address",
            )
        if loaded.digest != self._opened.digest:
            raise changed(model, self._opened.digest, loaded.digest)
        if loaded.num_ctx is not None and loaded.num_ctx < num_ctx:
            return Failure("too_long", f"{what}: it took {loaded.num_ctx:,}")
        return None


def _too_long(found: TooLong, window: int) -> Failure:
    room = f"the model's window of {window:,} tokens"
    if found.cut:
        return Failure("too_long", f"the server cut the prompt, or did not show that it read all of it, with {room}")
    what = f"{found.tokens:,} tokens do" if found.tokens else "the prompt does"
    return Failure("too_long", f"{what} not fit into {room}")


def changed(model: str, before: str, now: str) -> IntegrityError:
    """Return the error for a model that is another one than it was."""
    return IntegrityError(
        f"{model!r} on the server was {before[:12]} when it was opened and is {now[:12]} now",
        hint="start again, and pull no models during a run",
    )
