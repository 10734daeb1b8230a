"""The forms of what OpenAI-compatible servers take and give, with the errors and omissions of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from minicheck_eval.backends.servers.too_long import MOST_BYTES_A_TOKEN, size_of

__all__ = ["FORMATS", "Completion", "Dialect", "is_cut", "response_format"]

FORMATS = ("json_schema", "json_object", None)
"""How a reply is held to a schema, the best way first."""


class _Candidate(BaseModel):
    token: str
    logprob: float | None = None

    @property
    def pair(self) -> tuple[str, float]:
        return self.token, float("-inf") if self.logprob is None else self.logprob


class _Position(_Candidate):
    top_logprobs: list[_Candidate] | None = None


class _Logprobs(BaseModel):
    content: list[_Position] | None = None


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Cached(BaseModel):
    cached_tokens: int | None = None


class _Counts(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None


class Completion(BaseModel):
    """A server's answer to a chat; what it may lack is None."""

    choices: list[_Choice] = Field(min_length=1)
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Counts | None = None

    @property
    def text(self) -> str:
        """Return the words of the reply."""
        return self.choices[0].message.content or ""

    @property
    def is_complete(self) -> bool:
        """Say whether the model came to its end."""
        return self.choices[0].finish_reason != "length"

    @property
    def first_tokens(self) -> list[tuple[str, float]]:
        """Return the likeliest first tokens with the logarithms of their probabilities; empty where none came."""
        logprobs = self.choices[0].logprobs
        if logprobs is None or not logprobs.content:
            return []
        first = logprobs.content[0]
        return [candidate.pair for candidate in first.top_logprobs or [first]]

    @property
    def prompt_tokens(self) -> int | None:
        """Return how many tokens the server says that it read."""
        return None if self.usage is None else self.usage.prompt_tokens

    @property
    def cost(self) -> dict[str, int]:
        """Return the tokens, by the names of the usage."""
        counts = self.usage or _Counts()
        asked = counts.prompt_tokens or 0
        cached = (counts.prompt_tokens_details or _Cached()).cached_tokens or 0
        # Whatever the reply is for, its first token is as good as read with the prompt.
        written = max(0, (counts.completion_tokens or 0) - 1)
        return {"asked_tokens": asked, "computed_tokens": max(0, asked - cached), "reply_tokens": written}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What one server understands."""

    limit: str = "max_tokens"
    top_logprobs: int = 20

    def body(self, model: str, messages: list[dict[str, str]], *, most_tokens: int, scores: bool) -> dict[str, Any]:
        """Return a request for the reply to a chat, with the candidates for its tokens if it is to be a score."""
        body = {"model": model, "messages": messages, "temperature": 0, "stream": False, self.limit: most_tokens}
        if scores and self.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        return body


def response_format(kind: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a request that holds the reply to a schema."""
    match kind:
        case "json_schema":
            described = {"name": "reply", "schema": schema, "strict": True}
            return {"response_format": {"type": kind, "json_schema": described}}
        case "json_object":
            return {"response_format": {"type": kind}}
        case _:
            return {}


def is_cut(counted_tokens: int, messages: list[dict[str, str]], window_tokens: int) -> bool:
    """Say whether a server that counted so many tokens cannot have read all of the messages, or had no room for more.

    Tokenizers do not join words, and do not make tokens of more than so many bytes.
    """
    words = [word for message in messages for word in message["content"].split()]
    size = size_of(words)
    fewest = max(len(words), size // MOST_BYTES_A_TOKEN)
    return counted_tokens < fewest or counted_tokens >= window_tokens
