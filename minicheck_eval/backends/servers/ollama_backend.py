"""Asks a model on an Ollama server, through the native API: only there can the room for a prompt be set.

A prompt that the server cut is never taken for an answer: the server is told to refuse it, and every reply is checked
for the signs of a cut, since not all versions listen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel

from minicheck_eval.backends.servers.backend import Messages, ServerBackend
from minicheck_eval.backends.servers.first_token import score_from
from minicheck_eval.backends.servers.http import Refused, Transport
from minicheck_eval.backends.servers.key import key_for
from minicheck_eval.backends.servers.ollama_catalogue import Catalogue
from minicheck_eval.backends.servers.ollama_facts import OpenedModel, read_model, read_version
from minicheck_eval.backends.servers.ollama_loading import KEEP_ALIVE, Loading, changed
from minicheck_eval.backends.servers.ollama_window import TooLong, looks_cut, read_too_long
from minicheck_eval.backends.servers.options import Address, ServerOptions, checked_url
from minicheck_eval.backends.servers.too_long import grew, lengthened, size_of
from minicheck_eval.errors import BadInput, IntegrityError
from minicheck_eval.scoring import Failure, Reply, Score
from minicheck_eval.text.replies import ReplyRule

__all__ = ["OllamaBackend", "open_ollama"]

MOST_CANDIDATES = 20
"""First tokens with their probabilities: as many as the server gives."""

A_TOKEN = " control"
"""At least one, for every tokenizer."""


class _Candidate(BaseModel):
    token: str
    logprob: float


class _First(_Candidate):
    top_logprobs: list[_Candidate] = []


class _Message(BaseModel):
    content: str = ""


class _Chat(BaseModel):
    """A reply as /api/chat gives it; each version gives more."""

    message: _Message = _Message()
    done: bool = False
    done_reason: str = ""
    prompt_eval_count: int | None = None
    prompt_eval_cached_count: int = 0
    eval_count: int = 0
    logprobs: list[_First] | None = None


class OllamaBackend(ServerBackend):
    """A model on an Ollama server."""

    def __init__(
        self,
        transport: Transport,
        catalogue: Catalogue,
        opened: OpenedModel,
        options: ServerOptions,
        *,
        rule: ReplyRule | None = None,
    ) -> None:
        super().__init__(transport, opened.facts, options)
        self._words = (rule or ReplyRule()).first_tokens
        self._catalogue = catalogue
        self._opened = opened
        self._loading = Loading(transport, catalogue, opened)
        self._is_refusing: bool | None = None

    def start(self) -> Self:
        """Load the model."""
        self._loading.start()
        return self

    def confirm(self) -> None:
        """Raise `IntegrityError` if the model or the server is not the one that was opened."""
        model = self.facts.model
        now = self._catalogue.digest(model)
        if now != self._opened.digest:
            raise changed(model, self._opened.digest, now)
        version = read_version(self.transport)
        if version != self._opened.era.version:
            raise IntegrityError(
                f"the server was Ollama {self._opened.era.version} when it was opened and is {version} now",
                hint="start again: another version may count and cut in other ways",
            )

    def close(self) -> None:
        """Close all connections."""
        self._catalogue.close()
        super().close()

    def _score_one(self, messages: Messages) -> Score | Failure:
        chat = self._ask(messages, 1, {"logprobs": True, "top_logprobs": MOST_CANDIDATES})
        if isinstance(chat, Failure):
            return chat
        if not chat.logprobs:
            if not chat.message.content:
                return Score(0.0, 0.0)  # it said nothing, or a part of a character
            return Failure("backend", f"the server gave no probabilities with {chat.message.content[:40]!r}")
        first = chat.logprobs[0]
        candidates = first.top_logprobs or [first]
        return score_from([(one.token, one.logprob) for one in candidates], *self._words)

    def _reply_one(self, messages: Messages, schema: Mapping[str, Any] | None, most_tokens: int) -> Reply | Failure:
        chat = self._ask(messages, most_tokens, {"format": dict(schema)} if schema is not None else {})
        if isinstance(chat, Failure):
            return chat
        self.note(reply_tokens=chat.eval_count)
        return Reply(chat.message.content, complete=chat.done_reason == "stop")

    def _ask(self, messages: Messages, most_tokens: int, more: Mapping[str, Any]) -> _Chat | Failure:
        """Ask until there is room for the whole prompt and its reply, or there cannot be."""
        while True:
            with self._loading.asking() as num_ctx:
                chat = self._ask_once(messages, num_ctx, most_tokens, more)
            if isinstance(chat, TooLong):
                failure = self._loading.grow(num_ctx, chat)
                if failure:
                    return failure
                continue
            if not chat.done:
                return Failure("backend", "the server ended its reply in the middle")
            counted = chat.prompt_eval_count or 0
            self.note(asked_tokens=counted, computed_tokens=max(0, counted - chat.prompt_eval_cached_count))
            return chat

    def _ask_once(self, messages: Messages, num_ctx: int, most_tokens: int, more: Mapping[str, Any]) -> _Chat | TooLong:
        chat = self._post(messages, num_ctx, most_tokens, more)
        if isinstance(chat, TooLong):
            return chat
        counted = chat.prompt_eval_count if self._opened.era.counts_cached_tokens else None
        size = self._opened.own_bytes + size_of([message["content"] for message in messages])
        if looks_cut(counted, num_ctx, size, self._opened.era) and not self._is_whole(messages, num_ctx, counted):
            return TooLong(cut=True)
        if chat.eval_count > 1 and (size if counted is None else counted) + chat.eval_count > num_ctx:
            # The server made room for the reply by leaving out the beginning of the prompt.
            return TooLong(cut=True)
        return chat

    def _is_whole(self, messages: Messages, num_ctx: int, counted: int | None) -> bool:
        """Ask with a slightly longer prompt: one that is cut has as many tokens as before, a whole one a few more."""
        if counted is None:
            return not self._opened.era.counts_cached_tokens and self._refuses(num_ctx)
        chat = self._post(lengthened(messages), num_ctx, 1, {})
        return not isinstance(chat, TooLong) and grew(counted, chat.prompt_eval_count)

    def _refuses(self, num_ctx: int) -> bool:
        """Try out, once, whether the server refuses a prompt that is surely too long."""
        if self._is_refusing is None:
            chat = self._post([{"role": "user", "content": A_TOKEN * num_ctx}], num_ctx, 1, {})
            self._is_refusing = isinstance(chat, TooLong)
        return self._is_refusing

    def _post(self, messages: Messages, num_ctx: int, most_tokens: int, more: Mapping[str, Any]) -> _Chat | TooLong:
        body = {
            "model": self.facts.model,
            "messages": messages,
            "stream": False,
            "truncate": False,
            "keep_alive": KEEP_ALIVE,
            "options": {"num_ctx": num_ctx, "num_predict": most_tokens, "temperature": 0},
            **more,
        }
        try:
            answer = self.transport.post("/api/chat", body)
        except Refused as error:
            found = read_too_long(json.dumps(error.body)) if error.is_too_long else None
            if found is None:
                raise
            return found
        return _Chat.model_validate(answer.value)


def open_ollama(address: Address, options: ServerOptions, rule: ReplyRule | None = None) -> OllamaBackend:
    """Find a model on an Ollama server and load it; `rule` has the words for yes and no."""
    url = address.url or options.url or usual_url(os.environ.get("OLLAMA_HOST", ""))
    key = key_for(url, options.api_key_env, "OLLAMA_API_KEY")
    with ExitStack() as opened:
        transport = Transport(url, timeout_s=options.timeout_s, requests_per_s=options.requests_per_s, api_key=key)
        opened.callback(transport.close)
        catalogue = Catalogue(url, timeout_s=options.timeout_s, api_key=key)
        opened.callback(catalogue.close)
        model = read_model(catalogue, transport, address.model, options.window_tokens)
        backend = OllamaBackend(transport, catalogue, model, options, rule=rule).start()
        opened.pop_all()
    return backend


def usual_url(host: str) -> str:
    """Return the address that $OLLAMA_HOST means to a client: it may be one that a server listens at."""
    host = host.strip().strip("\"'").rstrip("/")
    scheme, mark, rest = host.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port or {"http": 80, "https": 443}.get(scheme if mark else "", 11434)
    except ValueError:
        raise BadInput(f"OLLAMA_HOST is {host!r}, which has no port", hint="set it to HOST:PORT") from None
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - all addresses are none to ask
    shown = f"[{name}]" if ":" in name else name
    return checked_url(f"{scheme if mark else 'http'}://{shown}:{port}{parts.path}")
