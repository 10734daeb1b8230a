"""What all servers have in common: chats out of prompts, requests side by side, and failures that stay alone."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from threading import Lock
from typing import Any, TypeVar

from pydantic import ValidationError

from minicheck_eval.backends.servers.estimate import estimate_tokens
from minicheck_eval.backends.servers.facts import ServerFacts
from minicheck_eval.backends.servers.http import Refused, Transport, Unanswered
from minicheck_eval.backends.servers.lanes import Lanes
from minicheck_eval.backends.servers.neutral import neutralised
from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.border import explain
from minicheck_eval.errors import GivenUp
from minicheck_eval.scoring import Failure, Prompt, Reply, Score, Usage

__all__ = ["Messages", "ServerBackend", "messages_of"]

Messages = list[dict[str, str]]

Said = TypeVar("Said", Score, Reply)

NEVER_WORKS = frozenset({401, 403, 404})
"""What a server says when no other prompt would fare better."""

MOST_SILENT = 5
"""So many prompts on end without a word from the server, and it is given up."""

MOST_UNANSWERED = 20
"""So many prompts on end with errors only, and the server is given up."""


class ServerBackend(ABC):
    """A model on a server; what the kinds of servers do differently is in the abstract methods.

    These may raise what the transport raises, and `pydantic.ValidationError` for an answer of a form that is not known:
    the prompt then fails alone.
    """

    counts_exactly = False
    """Tokens are estimated, on the high side."""
    dtype = ""
    """Not known: `facts.quantization` says what the server tells."""

    def __init__(self, transport: Transport, facts: ServerFacts, options: ServerOptions) -> None:
        self.transport = transport
        self.facts = facts
        self._lock = Lock()
        self._usage = Usage()
        self._heard_s = 0.0
        self._silent = 0
        self._unanswered = 0
        self._lanes: Lanes[Callable[[], Any], Any] = Lanes(
            lambda ask: ask(),
            concurrency=options.concurrency,
            stall_s=transport.longest_s,
            overloads=lambda: transport.overloads,
        )

    @abstractmethod
    def _score_one(self, messages: Messages) -> Score | Failure:
        """Ask for the first token of the reply to one chat."""

    @abstractmethod
    def _reply_one(self, messages: Messages, schema: Mapping[str, Any] | None, most_tokens: int) -> Reply | Failure:
        """Ask for the whole reply to one chat, at temperature 0."""

    @abstractmethod
    def confirm(self) -> None:
        """Raise `IntegrityError` if the model on the server is not the one that was opened."""

    @property
    def name(self) -> str:
        """Name the server's program and its version."""
        return self.facts.server

    @property
    def window_tokens(self) -> int:
        """Return the most tokens that one prompt may have."""
        return self.facts.window_tokens

    @property
    def usage(self) -> Usage:
        """Tell what has been asked so far."""
        with self._lock:
            return self._usage.plus(calls=self.transport.calls, seconds=self.transport.seconds)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens of each text."""
        return [estimate_tokens(text) for text in texts]

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        with closing(self.stream([prompts])) as answered:
            return next(answered)

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch, in order; requests of later batches start before the earlier ones are done."""
        with closing(self._ask_all(batches, self._score_one)) as answered:
            yield from answered

    def reply(
        self, prompts: Sequence[Prompt], *, schema: Mapping[str, Any] | None = None, most_tokens: int = 512
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, in input order."""
        ask = partial(self._reply_one, schema=schema, most_tokens=most_tokens)
        with closing(self._ask_all([prompts], ask)) as answered:
            return next(answered)

    def close(self) -> None:
        """Close all connections."""
        self.transport.close()

    def note(self, **more: float) -> None:
        """Add to the usage, by the names of its numbers; calls and their seconds are counted by the transport."""
        with self._lock:
            self._usage = self._usage.plus(**more)

    def _ask_all(
        self, batches: Iterable[Sequence[Prompt]], ask: Callable[[Messages], Said | Failure]
    ) -> Generator[list[Said | Failure], None, None]:
        def questions() -> Iterator[list[tuple[Any, Callable[[], Any]]]]:
            for batch in batches:
                # Whatever shares its beginning is asked one after the other, so that the server computes it once.
                yield [((prompt.system, prompt.prefix), partial(self._ask_one, prompt, ask)) for prompt in batch]

        with closing(self._lanes.stream(questions())) as answered:
            for answers in answered:
                self.confirm()
                yield answers

    def _ask_one(self, prompt: Prompt, ask: Callable[[Messages], Said | Failure]) -> Said | Failure:
        messages, changed = messages_of(prompt)
        self.note(prompts=1)
        start_s = time.monotonic()
        try:
            said = ask(messages)
        except Unanswered as error:
            self._give_up_on_a_dead_server(error, start_s)
            return Failure("backend", str(error))
        except Refused as error:
            if error.status in NEVER_WORKS:
                raise
            said = Failure("backend", str(error))
        except ValidationError as error:
            said = Failure("backend", f"the server's answer has an unknown form: {explain(error)}")
        with self._lock:
            self._silent = self._unanswered = 0
            self._heard_s = time.monotonic()
        return said if isinstance(said, Failure) or not changed else replace(said, neutralised=True)

    def _give_up_on_a_dead_server(self, error: Unanswered, start_s: float) -> None:
        with self._lock:
            if start_s < self._heard_s:
                # It was there for others in the meantime.
                return
            self._unanswered += 1
            self._silent = self._silent + 1 if error.silent else 0
            if self._silent < MOST_SILENT and self._unanswered < MOST_UNANSWERED:
                return
            count = self._unanswered
        raise GivenUp(f"{count} prompts on end got no answer; {error}", hint=error.hint) from error


def messages_of(prompt: Prompt) -> tuple[Messages, bool]:
    """Return the chat that a prompt stands for, and whether control tokens in its texts were made plain."""
    parts: list[str] = []
    changed = False
    # Neighbours are read together, so that no control token hides in their seam.
    for trusted, segments in groupby(prompt.prefix + prompt.suffix, key=lambda segment: segment.trusted):
        text = "".join(segment.text for segment in segments)
        plain, broken = (text, False) if trusted else neutralised(text)
        parts.append(plain)
        changed |= broken
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, {"role": "user", "content": "".join(parts)}], changed
