"""A model behind an OpenAI-compatible server: vLLM, llama.cpp, LM Studio, SGLang and their like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from minicheck_eval.backends.servers.backend import Messages, ServerBackend
from minicheck_eval.backends.servers.facts import ServerFacts
from minicheck_eval.backends.servers.first_token import score_from
from minicheck_eval.backends.servers.http import Refused, Transport
from minicheck_eval.backends.servers.key import key_for
from minicheck_eval.backends.servers.openai_facts import (
    ModelCard,
    read_card,
    refuse_ollama,
    root_of,
    told_version,
    told_window,
)
from minicheck_eval.backends.servers.openai_forms import FORMATS, Completion, Dialect, is_cut, response_format
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.backends.servers.too_long import grew, lengthened, size_of
from minicheck_eval.border import explain
from minicheck_eval.errors import BackendError, BadInput, IntegrityError
from minicheck_eval.scoring import Failure, Reply, Score
from minicheck_eval.text.replies import ReplyRule

__all__ = ["OpenAIBackend", "open_openai"]

UNKNOWN_WINDOW = 8192
"""Tokens of a prompt where the server does not tell: most models have more."""

PROBE: Messages = [{"role": "user", "content": "Is water wet? Answer yes or no."}]

FEWER_LOGPROBS = {20: 5, 5: 0}
"""What is tried where a server refuses as many candidates for a token."""

ESTIMATE_SAFETY = 1.5
"""Estimates of tokens are rarely below two thirds of the truth."""

NOT_FOUND = 404

UNDERSTOOD = frozenset({400, 404, 415, 422, 501})
"""With these a server refuses what it does not know."""


class OpenAIBackend(ServerBackend):
    """Asks for one token with its likeliest alternatives, through /chat/completions."""

    def __init__(
        self,
        transport: Transport,
        facts: ServerFacts,
        options: ServerOptions,
        *,
        dialect: Dialect,
        rule: ReplyRule | None = None,
    ) -> None:
        super().__init__(transport, facts, options)
        self._dialect = dialect
        self._words = (rule or ReplyRule()).first_tokens
        self._format = 0
        self._other_model = ""
        self._proven_tokens = 0

    def _score_one(self, messages: Messages) -> Score | Failure:
        said = self._ask(messages, most_tokens=1, scores=True)
        if isinstance(said, Failure):
            return said
        if said.text and not said.first_tokens:
            return Failure("backend", f"the server sent no probabilities with its reply {said.text[:80]!r}")
        return score_from(said.first_tokens, *self._words)

    def _reply_one(self, messages: Messages, schema: Mapping[str, Any] | None, most_tokens: int) -> Reply | Failure:
        if schema is None:
            return self._reply(messages, most_tokens, {})
        for place in range(self._format, len(FORMATS)):
            try:
                said = self._reply(messages, most_tokens, response_format(FORMATS[place], schema))
            except Refused as error:
                if FORMATS[place] is None or error.status not in UNDERSTOOD:
                    raise
            else:
                # Only now it is known that the format was refused, and not this prompt.
                self._format = max(self._format, place)
                return said
        raise AssertionError("the last format is none")

    def _reply(self, messages: Messages, most_tokens: int, more: Mapping[str, Any]) -> Reply | Failure:
        said = self._ask(messages, most_tokens=most_tokens, scores=False, more=more)
        return said if isinstance(said, Failure) else Reply(said.text, said.is_complete)

    def _ask(
        self, messages: Messages, *, most_tokens: int, scores: bool, more: Mapping[str, Any] | None = None
    ) -> Completion | Failure:
        body = self._dialect.body(self.facts.model, messages, most_tokens=most_tokens, scores=scores)
        try:
            answer = self.transport.post("/chat/completions", {**body, **(more or {})})
        except Refused as error:
            if error.is_too_long:
                return Failure("too_long", error.message)
            raise
        said = Completion.model_validate(answer.value)
        self.note(**said.cost)
        if said.model and self.facts.revision and said.model != self.facts.revision:
            self._other_model = said.model
        counted = said.prompt_tokens
        if self._is_cut(messages, counted):
            told = f"the server counted {counted} tokens, about {self._estimate(messages)} were sent"
            return Failure(
                "too_long", f"{told}, its window has {self.window_tokens}: it is full, or the prompt was cut"
            )
        return said

    def _is_cut(self, messages: Messages, counted: int | None) -> bool:
        """Tell whether the server read only a part of a prompt; where it may have, ask with a slightly longer one."""
        if counted is None:
            return self._estimate(messages) > self.window_tokens
        if is_cut(counted, messages, self.window_tokens):
            return True
        if self.facts.window_told:
            size = size_of([message["content"] for message in messages])
            fits = size <= self.window_tokens or self._estimate(messages) * ESTIMATE_SAFETY <= self.window_tokens
        else:
            # What was not cut at a larger size is not cut at this one.
            fits = counted <= self._proven_tokens
        return False if fits else self._lost_a_part(messages, counted)

    def _lost_a_part(self, messages: Messages, counted: int) -> bool:
        body = self._dialect.body(self.facts.model, lengthened(messages), most_tokens=1, scores=False)
        try:
            answer = self.transport.post("/chat/completions", body)
        except Refused as error:
            # Who refuses a prompt does not cut it.
            if error.is_too_long:
                return False
            raise
        again = Completion.model_validate(answer.value).prompt_tokens
        if again is None or not grew(counted, again):
            return True
        self._proven_tokens = max(self._proven_tokens, again)
        return False

    def _estimate(self, messages: Messages) -> int:
        return sum(self.count_tokens([message["content"] for message in messages]))

    def confirm(self) -> None:
        """Raise `IntegrityError` if the model that the server lists, or says that it answers with, is another one."""
        listed = self.facts.digests.get("card", "")
        if self._other_model:
            raise _changed(self.facts.model, f"its replies name {self._other_model!r} and not {self.facts.revision!r}")
        if listed and read_card(self.transport, self.facts.model).digest != listed:
            raise _changed(self.facts.model, "the server lists another model under its name")


def open_openai(address: Address, options: ServerOptions, rule: ReplyRule | None = None) -> OpenAIBackend:
    """Look what the server has and understands, ask it one question, and return the backend; `rule` has the words."""
    if address.url is None:
        raise BadInput(f"the model {address.model!r} has no server", hint="write openai:http://HOST:PORT/v1#MODEL")
    key = key_for(address.url, options.api_key_env, "OPENAI_API_KEY")
    root = Transport(root_of(address.url), timeout_s=min(10.0, options.timeout_s), api_key=key, attempts=1)
    transport = Transport(address.url, timeout_s=options.timeout_s, requests_per_s=options.requests_per_s, api_key=key)
    try:
        refuse_ollama(root)
        card = read_card(transport, address.model)
        window = told_window(root, address.model) or card.window_tokens
        version = told_version(root) if card.owner == "vllm" else ""
        dialect, said = find_dialect(transport, address.model)
        facts = facts_of(card, said, version=version, window=window, options=options)
    except BaseException:
        transport.close()
        raise
    finally:
        root.close()
    return OpenAIBackend(transport, facts, options, dialect=dialect, rule=rule)


def find_dialect(transport: Transport, model: str) -> tuple[Dialect, Completion]:
    """Ask one question with all that is wanted, and with less where the server refuses that."""
    dialect = Dialect()
    while True:
        try:
            answer = transport.post("/chat/completions", dialect.body(model, PROBE, most_tokens=1, scores=True))
            return dialect, Completion.model_validate(answer.value)
        except ValidationError as error:
            raise BackendError(
                f"{transport.base_url} does not answer as OpenAI's interface does: {explain(error)}",
                hint="see whether the address is that of a chat interface, such as http://HOST:PORT/v1",
            ) from error
        except Refused as error:
            if error.status == NOT_FOUND and not error.is_too_long:
                raise BackendError(
                    f"{transport.base_url}/chat/completions: {error}",
                    hint="see whether the address is right: it usually ends in /v1",
                ) from error
            if error.status not in UNDERSTOOD:
                raise
            if "max_completion_tokens" in error.message and dialect.limit == "max_tokens":
                dialect = replace(dialect, limit="max_completion_tokens")
            elif dialect.top_logprobs:
                dialect = replace(dialect, top_logprobs=FEWER_LOGPROBS[dialect.top_logprobs])
            else:
                raise


def facts_of(
    card: ModelCard, said: Completion, *, version: str, window: int | None, options: ServerOptions
) -> ServerFacts:
    """Gather what the server told."""
    wanted = options.window_tokens
    if wanted and window and wanted > window:
        raise BadInput(f"a window of {wanted} tokens was asked for, the server has {window}", hint="ask for less")
    notes = []
    if not (wanted or window):
        notes.append(f"the server does not tell its window; {UNKNOWN_WINDOW} tokens are assumed")
    if not said.first_tokens:
        notes.append("the server sends no probabilities")
    if said.prompt_tokens is None:
        notes.append("the server does not count tokens: a prompt that it cuts would not be noticed")
    if not card.entry:
        notes.append("the server lists no models: another model under the same name would not be noticed")
    # llama.cpp names its build so; of hosted models the fingerprint changes from one reply to the next.
    build = version or (said.system_fingerprint or "" if card.owner == "llamacpp" else "")
    return ServerFacts(
        model=card.model,
        revision=said.model or "",
        digests={"card": card.digest} if card.digest else {},
        server=" ".join(part for part in (card.owner or "openai", build) if part),
        window_tokens=int(wanted or window or UNKNOWN_WINDOW),
        window_told=bool(window),
        logprobs=bool(said.first_tokens),
        notes=tuple(notes),
    )


def _changed(model: str, how: str) -> IntegrityError:
    return IntegrityError(
        f"{model!r} is no longer the model that was opened: {how}",
        hint="start again, so that all scores are of one model",
    )
