"""An Ollama server without a model: the native routes, as each era of Ollama answers them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from minicheck_eval.testing.faults import Faults
from minicheck_eval.testing.ollama_era import Era, TooLong
from minicheck_eval.testing.ollama_texts import FakeModel, Question, chatml, describe, entry, question_of, with_tag
from minicheck_eval.testing.server import Answered, Asked, FakeServer
from minicheck_eval.testing.slots import Slots
from minicheck_eval.testing.speech import MOST_CANDIDATES, PROSE, Answer, Answering, Spoken, speak

__all__ = ["FakeModel", "FakeOllama"]


@dataclass(frozen=True, slots=True)
class _Loaded:
    model: FakeModel
    num_ctx: int
    shift: bool
    slots: Slots


class FakeOllama(FakeServer):
    """Answers as an Ollama server of the version `era`, in a `with` block.

    `answer` is given the text of the last message (or what a silent cut has left of the whole prompt) and returns
    P(yes), words, or the probability of each candidate of a first token.  Four bytes are a token.  Each of `slots`
    requests at a time takes `seconds_per_request`, and `seconds_per_token` for each token of its prompt that the slot
    does not remember from the prompt before; the others wait.  A model is loaded by the first request, and again by one
    with another `num_ctx`: `loads` tells how often, and more than `max_queue` requests that wait for it get status 503.
    """

    def __init__(
        self,
        answer: Answering,
        *,
        era: str = "0.33.0",
        models: Mapping[str, FakeModel] | None = None,
        slots: int = 1,
        seconds_per_request: float = 0.0,
        seconds_per_token: float = 0.0,
        seconds_per_load: float = 0.0,
        max_queue: int = 512,
        faults: Faults | None = None,
    ) -> None:
        super().__init__(faults)
        self.answer = answer
        self.version = era
        self.era = Era.of(era)
        given = {"bespoke-minicheck": FakeModel()} if models is None else models
        self.models = {with_tag(name): model for name, model in given.items()}
        self.loads: list[tuple[str, int]] = []
        """The model and the window of each load so far."""
        self.slots = slots
        self._seconds = {"seconds_per_request": seconds_per_request, "seconds_per_token": seconds_per_token}
        self.seconds_per_load = seconds_per_load
        self.max_queue = max_queue
        self._loaded: dict[str, _Loaded] = {}
        self._slots: list[Slots] = []
        self._loading = threading.Lock()
        self._pending = threading.BoundedSemaphore(max_queue)

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return self.root

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens of prompts were computed so far, those that a slot remembered not among them."""
        return sum(slots.computed_tokens for slots in self._slots)

    def swap(self, model: str, digest: str) -> None:
        """Put another model under the same name, as a pull of a tag that was pushed again does."""
        name = with_tag(model)
        self.models[name] = replace(self.models[name], digest=digest)
        self._loaded.pop(name, None)

    def written(self, messages: list[dict[str, str]]) -> str:
        """Write out a chat as the model is given it."""
        return chatml(messages)

    def close_slots(self) -> None:
        """Wake whatever waits for its turn."""
        with self._loading:
            for slots in self._slots:
                slots.wake()

    def error(self, status: int, message: str) -> Answered:
        """Return an error in Ollama's shape."""
        return Answered.of({"error": message}, status)

    def respond(self, asked: Asked) -> Answered:
        """Answer one request."""
        match asked.method, asked.path:
            case "GET", "/api/version":
                return Answered.of({"version": self.version})
            case "GET", "/api/tags":
                return Answered.of({"models": [entry(name, model) for name, model in self.models.items()]})
            case "GET", "/api/ps":
                loaded = list(self._loaded.items())
                return Answered.of({"models": [_in_memory(entry(n, x.model), x.num_ctx) for n, x in loaded]})
            case "POST", "/api/show" | "/api/chat" | "/api/generate":
                return self._about_model(asked)
        return self.error(404, "404 page not found")

    def _about_model(self, asked: Asked) -> Answered:
        name = asked.body.get("model", "")
        model = self.models.get(with_tag(name))
        if model is None:
            return self.error(404, f"model '{name}' not found")
        if asked.path == "/api/show":
            return Answered.of(describe(model))
        return self._generate(asked, with_tag(name), model)

    def _generate(self, asked: Asked, name: str, model: FakeModel) -> Answered:
        body = asked.body
        refused = _refusal(body)
        if refused:
            return self.error(400, refused)
        question = question_of(asked.path, body, model)
        loaded = self._load(name, model, body)
        if loaded is None:
            return self.error(503, "server busy, please try again.  maximum pending requests exceeded")
        if not question.text:
            unload = body.get("keep_alive") in (0, "0")
            if unload:
                self._loaded.pop(name, None)
            done = {"done": True, "done_reason": "unload" if unload else "load"}
            return Answered.of({"model": body["model"], "created_at": _now(), **question.reply(""), **done})
        native = not model.template and asked.path == "/api/chat"
        return self.with_fault(
            question.prompt, lambda fault: self._infer(asked, question, loaded, fault, native=native)
        )

    def _load(self, name: str, model: FakeModel, body: dict[str, Any]) -> _Loaded | None:
        """Return the loaded model, loading it where need be; None where too many wait for that."""
        num_ctx = min(body.get("options", {}).get("num_ctx", self.era.default_num_ctx), model.context)
        shift = bool(body.get("shift", True)) if self.era.runs_llama_server else True

        def fitting() -> _Loaded | None:
            loaded = self._loaded.get(name)
            return loaded if loaded and (loaded.num_ctx, loaded.shift) == (num_ctx, shift) else None

        found = fitting()
        if found:
            return found
        if not self._pending.acquire(blocking=False):
            return None
        try:
            with self._loading:
                found = fitting()
                if not found:
                    self.pause(self.seconds_per_load)
                    self.loads.append((name, num_ctx))
                    self._slots.append(Slots(self.slots, self.closing, **self._seconds))
                    found = self._loaded[name] = _Loaded(model, num_ctx, shift, self._slots[-1])
                return found
        finally:
            self._pending.release()

    def _infer(self, asked: Asked, question: Question, loaded: _Loaded, fault: str | None, *, native: bool) -> Answered:
        body = asked.body
        cuts = fault == "silent_cut"
        truncate = cuts or body.get("truncate", True)
        seen = self.era.fit(
            question.prompt, loaded.num_ctx, truncate=truncate, shift=loaded.shift, native=native and not cuts
        )
        if isinstance(seen, TooLong):
            return self.error(400, seen.message)
        most = body.get("options", {}).get("num_predict") or -1  # a zero is lost on the way
        with loaded.slots.take(seen.text, asked.arrived_s) as held:
            answer: Answer | None = {"empty_reply": "", "prose": PROSE}.get(fault or "")
            if answer is None:
                answer = self.answer(seen.text if seen.cut else question.text)
            spoken = speak(answer, most if most > 0 else None)
            end: dict[str, Any] = {
                "done": True,
                "done_reason": "stop" if spoken.complete else "length",
                **_durations(held.seconds),
                **self.era.counts(seen.tokens, held.cached_tokens),
                "eval_count": max(len(spoken.tokens), 1),
            }
            tells = body.get("logprobs") and self.era.has_logprobs and fault != "no_logprobs"
            return _written(body, question, spoken, end, logprobs=bool(tells))


def _written(
    body: dict[str, Any], question: Question, spoken: Spoken, end: dict[str, Any], *, logprobs: bool
) -> Answered:
    """Write a reply as one value, or token by token where the request does not say otherwise."""
    begin = {"model": body["model"], "created_at": _now()}
    entries = spoken.logprobs(body.get("top_logprobs", 0)) if logprobs else []
    if not body.get("stream", True):
        return Answered.of(begin | question.reply(spoken.text) | end | ({"logprobs": entries} if entries else {}))
    lines = [begin | question.reply(token) | {"done": False} for token in spoken.tokens]
    lines = [line | {"logprobs": [one]} for line, one in zip(lines, entries, strict=True)] if entries else lines
    return Answered.lines([*lines, begin | question.reply("") | end])


def _in_memory(model: dict[str, Any], num_ctx: int) -> dict[str, Any]:
    """Return an entry of /api/ps."""
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 300))
    return model | {"expires_at": until, "size_vram": 0, "context_length": num_ctx}


def _durations(seconds: float) -> dict[str, int]:
    """Return how long a request took, in nanoseconds: all of it for the prompt."""
    took = round(seconds * 1e9)
    return {"total_duration": took, "load_duration": 0, "prompt_eval_duration": took, "eval_duration": 0}


def _refusal(body: dict[str, Any]) -> str | None:
    """Return why a request is refused whatever its prompt; None: it is not."""
    if not 0 <= body.get("top_logprobs", 0) <= MOST_CANDIDATES:
        return "top_logprobs must be between 0 and 20"
    if body.get("raw") and any(body.get(name) for name in ("template", "system", "context")):
        return "raw mode does not support template, system, or context"
    if body.get("think"):
        return f'"{body["model"]}" does not support thinking'
    return None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
