"""The seam between judging and models: prompts go in, scores come out, in input order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from minicheck_eval.errors import ManifestError
from minicheck_eval.identity import digest

__all__ = [
    "Backend",
    "Failure",
    "Prompt",
    "PromptTemplate",
    "Reply",
    "ReplyingBackend",
    "Score",
    "Segment",
    "StreamingBackend",
    "Usage",
    "beside",
    "close_backend",
    "fill_slots",
    "score_stream",
    "slots_of",
]

Kept = TypeVar("Kept")
Given = TypeVar("Given")
Got = TypeVar("Got")


class Segment(NamedTuple):
    """A piece of a prompt. Only the judge's own text may hold control tokens; text from users never does."""

    text: str
    trusted: bool


@dataclass(frozen=True)
class Prompt:
    """One question to a judge: what it may share with others (`prefix`) and what is its own (`suffix`)."""

    prefix: tuple[Segment, ...]
    suffix: tuple[Segment, ...]
    system: str | None = None
    """The instruction of a chat whose one user message is `text`; None where the prompt is written out for one model,
    control tokens and all."""

    @property
    def text(self) -> str:
        """Return the whole prompt, or the whole user message, as one string."""
        return "".join(segment.text for segment in self.prefix + self.suffix)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the prompt, in hexadecimal."""
        system = [] if self.system is None else [self.system]
        return digest([list(map(list, self.prefix)), list(map(list, self.suffix)), *system])


_SLOT = re.compile(r"\{([a-z_]+)\}")
_EMPTY = {"document": "", "claim": ""}


def slots_of(template: str) -> list[str]:
    """Return the names of the slots `{name}` of a template, in order."""
    return _SLOT.findall(template)


def fill_slots(template: str, values: Mapping[str, str]) -> tuple[Segment, ...]:
    """Fill the slots in one pass: braces and slot names inside the values mean nothing."""
    # re.split with one group alternates: own text, slot name, own text, …
    parts = _SLOT.split(template)
    segments = [Segment(values[part], False) if i % 2 else Segment(part, True) for i, part in enumerate(parts)]
    return tuple(segment for segment in segments if segment.text)


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """The text around the slots `{document}` and `{claim}`; the prefix ends where sharing ends."""

    prefix: str
    suffix: str
    paste_claim: bool = False
    """Put the claim in place of "[CLAIM]" in a document too, as the MiniCheck package does; it is no part of the
    digest."""
    system: str | None = None
    """The instruction of a chat; None where prefix and suffix are written out for one model, control tokens and all."""

    def __post_init__(self) -> None:
        slots = sorted(slots_of(self.prefix + self.suffix))
        if slots != ["claim", "document"] or "{document}" not in self.prefix:
            raise ManifestError(
                f"the prompt template has the slots {slots}, with the prefix {self.prefix!r}",
                hint="put {document} into the prefix and {claim} into the suffix, once each",
            )

    def fill(self, document: str, claim: str) -> Prompt:
        """Fill the slots in one pass: braces and slot names inside the texts mean nothing."""
        if self.paste_claim:
            document = document.replace("[CLAIM]", claim)
        values = {"document": document, "claim": claim}
        return Prompt(fill_slots(self.prefix, values), fill_slots(self.suffix, values), self.system)

    @property
    def own_text(self) -> tuple[str, ...]:
        """Return the pieces around the slots, the instruction first."""
        around = (*fill_slots(self.prefix, _EMPTY), *fill_slots(self.suffix, _EMPTY))
        return (*([self.system] if self.system else []), *(segment.text for segment in around))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the template, in hexadecimal."""
        return digest([self.prefix, self.suffix, *([] if self.system is None else [self.system])])


@dataclass(frozen=True, slots=True)
class Score:
    """The judge's answer to one prompt, as probabilities of the first reply token over the whole vocabulary."""

    support: float
    """P(yes), in [0, 1]."""
    refute: float
    """P(no), in [0, 1]."""
    top: str = ""
    """The most probable token, to see what a judge that says neither says."""
    reply: str = ""
    """What the judge said, where its answer was read from words: then the probabilities are 0 and 1."""
    neutralised: bool = False
    """Control tokens that were written out in the texts were made plain text before a server saw them."""

    @property
    def mass(self) -> float:
        """Return P(yes) + P(no): how much of the answer was an answer."""
        return self.support + self.refute


@dataclass(frozen=True, slots=True)
class Reply:
    """What the judge said to one prompt, in words."""

    text: str
    complete: bool = True
    """False where the reply was cut off at its limit of tokens."""
    neutralised: bool = False
    """As of a score."""


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no score for one prompt, and why."""

    reason: str
    """One of `too_long`, `out_of_memory`, `not_a_number`, `backend`."""
    message: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a backend was asked, and what it cost."""

    prompts: int = 0
    asked_tokens: int = 0
    """Tokens of all prompts, each counted as often as it was asked."""
    computed_tokens: int = 0
    """Tokens that went through the model: less than asked where prompts share them."""
    reply_tokens: int = 0
    """Tokens that the model wrote, about: some servers count the end of a reply, and others its first token."""
    calls: int = 0
    """Requests to a server, those that were repeated too; passes of a local model."""
    seconds: float = 0.0
    """Of all calls together: calls side by side count each."""

    def plus(self, **more: float) -> Usage:
        """Return the sum with some numbers, by name."""
        return replace(self, **{name: getattr(self, name) + value for name, value in more.items()})

    def __add__(self, other: Usage) -> Usage:
        return self.plus(**asdict(other))

    def minus(self, before: Usage) -> Usage:
        """Return what came after `before`."""
        return self.plus(**{name: -value for name, value in asdict(before).items()})


class Backend(Protocol):
    """What runs a model."""

    @property
    def name(self) -> str:
        """Name the kind of backend and its version."""
        ...

    @property
    def dtype(self) -> str:
        """Name the number format of the computation."""
        ...

    @property
    def window_tokens(self) -> int:
        """Return the most tokens that one prompt may have."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        ...

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order; a failing prompt fails alone."""
        ...


@runtime_checkable
class StreamingBackend(Backend, Protocol):
    """A backend that prepares the next prompts while it scores some."""

    @property
    def usage(self) -> Usage:
        """Tell what has been asked and computed so far."""
        ...

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch, in order; the iterable may be read ahead, in another thread."""
        ...


@runtime_checkable
class ReplyingBackend(Backend, Protocol):
    """A backend whose model can answer in words."""

    def reply(
        self, prompts: Sequence[Prompt], *, schema: Mapping[str, Any] | None = None, most_tokens: int = 512
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, in input order, at temperature 0.

        With `schema`, a JSON Schema, the reply is held to it where the backend can.
        """
        ...


def score_stream(backend: Backend, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
    """Score batch after batch, ahead of need where the backend can."""
    if isinstance(backend, StreamingBackend):
        return backend.stream(batches)
    return (backend.score(batch) for batch in batches)


def beside(
    stream: Callable[[Iterable[Given]], Generator[Got, None, None]], pairs: Iterable[tuple[Kept, Given]]
) -> Generator[tuple[Kept, Got], None, None]:
    """Stream the second of each pair, and return what comes of it beside the first; pairs may be read ahead."""
    waiting: deque[Kept] = deque()

    def given() -> Iterator[Given]:
        for kept, one in pairs:
            waiting.append(kept)
            yield one

    with closing(stream(given())) as results:
        for result in results:
            yield waiting.popleft(), result


def close_backend(backend: object) -> None:
    """Close what holds connections or weights; not every backend does."""
    close = getattr(backend, "close", None)
    if close is not None:
        close()
