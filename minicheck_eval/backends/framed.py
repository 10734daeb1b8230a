"""Turns the prompts of a chat into those of one model: its control tokens go around what is said."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from minicheck_eval.identity import digest
from minicheck_eval.scoring import Failure, Prompt, Reply, ReplyingBackend, Score, Segment, StreamingBackend, Usage

__all__ = ["ChatFrame", "FramedBackend"]


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """The text that a model's chat template puts around what is said, control tokens and all."""

    with_system: tuple[str, str, str] | None
    """Before the system text, between it and the user's, and after; None where the model knows no system role."""
    without_system: tuple[str, str]
    """Before the user's text, and after."""
    turn_end: str
    """What the template puts behind a reply."""

    def frame(self, prompt: Prompt) -> Prompt:
        """Write a chat prompt out for the model; only the frame itself may hold control tokens."""
        start: tuple[Segment, ...]
        if prompt.system and self.with_system:
            before, between, after = self.with_system
            start = (Segment(before, True), Segment(prompt.system, False), Segment(between, True))
        else:
            before, after = self.without_system
            said = f"{prompt.system}\n\n" if prompt.system else ""
            start = (Segment(before, True), Segment(said, False))
        # What is said is text from users, all of it.
        prefix = (*start, *(Segment(segment.text, False) for segment in prompt.prefix))
        suffix = (*(Segment(segment.text, False) for segment in prompt.suffix), Segment(after, True))
        return Prompt(_with_text(prefix), _with_text(suffix))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the frame, in hexadecimal."""
        return digest([list(self.with_system or ()), list(self.without_system)])


def _with_text(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(segment for segment in segments if segment.text)


class ChattingBackend(StreamingBackend, ReplyingBackend, Protocol):
    """What a frame needs below it."""


class FramedBackend:
    """A backend of chat prompts on one of prompts that are written out; a prompt without a system text has none.

    `window_tokens` is the most tokens of what is said, which leaves room for the frame.
    """

    def __init__(self, inner: ChattingBackend, frame: ChatFrame, *, window_tokens: int) -> None:
        self._inner = inner
        self.frame = frame
        self.name = inner.name
        self.dtype = inner.dtype
        self.window_tokens = window_tokens

    @property
    def usage(self) -> Usage:
        """Tell what has been asked and computed so far."""
        return self._inner.usage

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        return self._inner.count_tokens(texts)

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        return self._inner.score(self._framed(prompts))

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch, in order."""
        return self._inner.stream(map(self._framed, batches))

    def reply(
        self, prompts: Sequence[Prompt], *, schema: Mapping[str, Any] | None = None, most_tokens: int = 512
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, in input order."""
        return self._inner.reply(self._framed(prompts), schema=schema, most_tokens=most_tokens)

    def _framed(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        return [self.frame.frame(prompt) for prompt in prompts]
