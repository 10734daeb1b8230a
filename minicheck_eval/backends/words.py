"""A backend that reads yes or no from what its model says, where there are no probabilities to read."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from minicheck_eval.scoring import Failure, Prompt, Reply, ReplyingBackend, Score, StreamingBackend, Usage
from minicheck_eval.text.replies import ReplyRule

__all__ = ["WordsBackend"]


class WordsBackend:
    """Scores 1 or 0 by what `inner` says; a reply that is neither yes nor no has no mass, and is kept as it is.

    Whatever else `inner` has (facts, confirm, close) is found here too.
    """

    def __init__(self, inner: ReplyingBackend, rule: ReplyRule | None = None, *, most_tokens: int = 1024) -> None:
        self._inner = inner
        self.rule = rule or ReplyRule()
        self._most_tokens = most_tokens
        self.dtype = inner.dtype

    def __getattr__(self, name: str) -> Any:
        # A private name is never looked up: a half-made object must not ask itself for ever.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    @property
    def name(self) -> str:
        """Name the backend, and how its answers are read."""
        return f"{self._inner.name}, read from words{' as Spring AI does' if self.rule.strict else ''}"

    @property
    def window_tokens(self) -> int:
        """Return the most tokens that one prompt may have."""
        return self._inner.window_tokens

    @property
    def usage(self) -> Usage:
        """Tell what the backend has been asked and has computed so far."""
        return self._inner.usage if isinstance(self._inner, StreamingBackend) else Usage()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        return self._inner.count_tokens(texts)

    def reply(
        self, prompts: Sequence[Prompt], *, schema: Mapping[str, Any] | None = None, most_tokens: int = 512
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, as the backend does."""
        return self._inner.reply(prompts, schema=schema, most_tokens=most_tokens)

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        return [self._read(reply) for reply in self._inner.reply(prompts, most_tokens=self._most_tokens)]

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch, in order."""
        for batch in batches:
            yield self.score(batch)

    def _read(self, reply: Reply | Failure) -> Score | Failure:
        if isinstance(reply, Failure):
            return reply
        # What was cut off may have taken back what it began with.
        reading = self.rule.read(reply.text) if reply.complete or self.rule.strict else None
        support, refute = float(reading == "yes"), float(reading == "no")
        return Score(support, refute, reply=reply.text, neutralised=reply.neutralised)
