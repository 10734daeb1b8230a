"""The seam between judging and models: prompts go in, scores come out, in input order."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from minicheck_eval.errors import ManifestError
from minicheck_eval.identity import digest

__all__ = [
    "Backend",
    "Failure",
    "Prompt",
    "PromptTemplate",
    "Score",
    "Segment",
    "StreamingBackend",
    "Usage",
    "score_stream",
]


class Segment(NamedTuple):
    """A piece of a prompt. Only the judge's own text may hold control tokens; text from users never does."""

    text: str
    trusted: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a judge: what it may share with others (`prefix`) and what is its own (`suffix`)."""

    prefix: tuple[Segment, ...]
    suffix: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """Return the whole prompt as one string."""
        return "".join(segment.text for segment in self.prefix + self.suffix)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the prompt, in hexadecimal."""
        return digest([list(map(list, self.prefix)), list(map(list, self.suffix))])


_SLOT = re.compile(r"\{([a-z_]+)\}")
_EMPTY = {"document": "", "claim": ""}


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """The text around the slots `{document}` and `{claim}`; the prefix ends where sharing ends."""

    prefix: str
    suffix: str
    paste_claim: bool = False
    """Put the claim in place of "[CLAIM]" in a document too, as the MiniCheck package does; it is no part of the
    digest."""

    def __post_init__(self) -> None:
        slots = sorted(_SLOT.findall(self.prefix + self.suffix))
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
        return Prompt(_fill(self.prefix, values), _fill(self.suffix, values))

    @property
    def own_text(self) -> tuple[str, ...]:
        """Return the pieces around the slots."""
        return tuple(segment.text for segment in (*_fill(self.prefix, _EMPTY), *_fill(self.suffix, _EMPTY)))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the template, in hexadecimal."""
        return digest([self.prefix, self.suffix])


def _fill(template: str, values: Mapping[str, str]) -> tuple[Segment, ...]:
    # re.split with one group alternates: own text, slot name, own text, …
    parts = _SLOT.split(template)
    segments = [Segment(values[part], False) if i % 2 else Segment(part, True) for i, part in enumerate(parts)]
    return tuple(segment for segment in segments if segment.text)


@dataclass(frozen=True, slots=True)
class Score:
    """The judge's answer to one prompt, as probabilities of the first reply token over the whole vocabulary."""

    support: float
    """P(yes), in [0, 1]."""
    refute: float
    """P(no), in [0, 1]."""
    top: str = ""
    """The most probable token, to see what a judge that says neither says."""

    @property
    def mass(self) -> float:
        """Return P(yes) + P(no): how much of the answer was an answer."""
        return self.support + self.refute


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no score for one prompt, and why."""

    reason: str
    """One of `too_long`, `out_of_memory`, `not_a_number`, `backend`."""
    message: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a backend was asked and what it computed."""

    prompts: int = 0
    asked_tokens: int = 0
    """Tokens of all prompts, each counted as often as it was asked."""
    computed_tokens: int = 0
    """Tokens that went through the model: less than asked where prompts share them."""

    def plus(self, *, prompts: int = 0, asked_tokens: int = 0, computed_tokens: int = 0) -> Usage:
        """Return the sum."""
        return Usage(self.prompts + prompts, self.asked_tokens + asked_tokens, self.computed_tokens + computed_tokens)

    def minus(self, before: Usage) -> Usage:
        """Return what came after `before`."""
        return self.plus(
            prompts=-before.prompts, asked_tokens=-before.asked_tokens, computed_tokens=-before.computed_tokens
        )


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


def score_stream(backend: Backend, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
    """Score batch after batch, ahead of need where the backend can."""
    if isinstance(backend, StreamingBackend):
        return backend.stream(batches)
    return (backend.score(batch) for batch in batches)
