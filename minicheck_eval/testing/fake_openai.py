"""A server without a model that speaks the OpenAI protocol, as vLLM and llama.cpp do."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Literal

from minicheck_eval.testing.faults import Faults
from minicheck_eval.testing.server import Answered, Asked, FakeServer
from minicheck_eval.testing.slots import BYTES_A_TOKEN, Slots, count_tokens
from minicheck_eval.testing.speech import PROSE, Answer, Answering, Spoken, speak

__all__ = ["FakeOpenAI"]


class FakeOpenAI(FakeServer):
    """Answers /v1/models and /v1/chat/completions, in a `with` block.

    `answer`, tokens, slots and seconds are those of `FakeOllama`.  `kind` chooses how errors are written and how the
    window is told.  `most_logprobs` is the largest `top_logprobs` that is not refused, and with None log-probabilities
    are never given; `formats` are the kinds of `response_format` that are not refused; with `newer_limit` a request
    must say `max_completion_tokens`.  With an `api_key` requests without it get status 401.
    """

    def __init__(
        self,
        answer: Answering,
        *,
        kind: Literal["vllm", "llama.cpp"] = "vllm",
        model: str = "judge",
        context: int = 32768,
        most_logprobs: int | None = 20,
        formats: Collection[str] = ("json_schema", "json_object"),
        newer_limit: bool = False,
        api_key: str | None = None,
        slots: int = 1,
        seconds_per_request: float = 0.0,
        seconds_per_token: float = 0.0,
        faults: Faults | None = None,
    ) -> None:
        super().__init__(faults)
        self.answer = answer
        self.kind = kind
        self.model = model
        self.context = context
        self.most_logprobs = most_logprobs
        self.formats = formats
        self.newer_limit = newer_limit
        self.api_key = api_key
        self.fingerprint = "fp_fake"
        self.slots = Slots(
            slots, self.closing, seconds_per_request=seconds_per_request, seconds_per_token=seconds_per_token
        )

    @property
    def url(self) -> str:
        """Return the address of the routes."""
        return f"{self.root}/v1"

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens of prompts were computed so far, those that a slot remembered not among them."""
        return self.slots.computed_tokens

    def written(self, messages: list[dict[str, str]]) -> str:
        """Write out a chat as the model is given it."""
        return "".join(f"<|{message['role']}|>{message['content']}" for message in messages)

    def close_slots(self) -> None:
        """Wake whatever waits for its turn."""
        self.slots.wake()

    def error(self, status: int, message: str, kind: str = "BadRequestError", **more: Any) -> Answered:
        """Return an error in the shape of this kind of server."""
        return Answered.of({"error": {"message": message, "type": kind, "code": status, **more}}, status)

    def respond(self, asked: Asked) -> Answered:
        """Answer one request."""
        if self.api_key is not None and asked.headers.get("authorization") != f"Bearer {self.api_key}":
            return self.error(401, "Incorrect API key provided.", "invalid_request_error")
        match asked.method, asked.path:
            case "GET", "/v1/models":
                own = {"max_model_len": self.context} if self.kind == "vllm" else {"meta": {"n_ctx": self.context}}
                one = {"id": self.model, "object": "model", "owned_by": self.kind.replace(".", ""), **own}
                return Answered.of({"object": "list", "data": [one]})
            case "POST", "/v1/chat/completions":
                return self._refused(asked.body) or self._complete(asked)
        return self.error(404, "Not Found", "NotFoundError")

    def _refused(self, body: dict[str, Any]) -> Answered | None:
        """Return why a request is refused whatever its prompt; None: it is not."""
        if body.get("model") != self.model:
            return self.error(404, f"The model `{body.get('model')}` does not exist.", "NotFoundError")
        if body.get("stream"):
            return self.error(400, "This fake does not stream.")
        if self.newer_limit and "max_tokens" in body:
            message = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            )
            return self.error(400, message + "instead.", "invalid_request_error", param="max_tokens")
        top = body.get("top_logprobs", 0)
        if body.get("logprobs") and self.most_logprobs is not None and top > self.most_logprobs:
            message = f"Requested sample logprobs of {top}, which is greater than max allowed: {self.most_logprobs}"
            return self.error(400, message)
        form = body.get("response_format", {}).get("type", "text")
        if form not in ("text", *self.formats):
            return self.error(400, f"response_format of the type {form} is not supported", param="response_format")
        return None

    def _complete(self, asked: Asked) -> Answered:
        prompt = self.written(asked.body["messages"])
        return self.with_fault(prompt, lambda fault: self._infer(asked, prompt, fault))

    def _infer(self, asked: Asked, prompt: str, fault: str | None) -> Answered:
        body = asked.body
        most = body.get("max_completion_tokens", body.get("max_tokens"))
        seen, tokens = body["messages"][-1]["content"], count_tokens(prompt)
        if tokens + (most or 1) > self.context:
            if fault != "silent_cut":
                return self._too_long(tokens, most or 1)
            tokens = self.context // 2
            seen = prompt.encode()[-tokens * BYTES_A_TOKEN :].decode(errors="ignore")
        with self.slots.take(prompt, asked.arrived_s):
            answer: Answer | None = {"empty_reply": "", "prose": PROSE}.get(fault or "")
            spoken = speak(self.answer(seen) if answer is None else answer, most)
            tells = body.get("logprobs") and self.most_logprobs is not None and fault != "no_logprobs"
            logprobs = {"content": spoken.logprobs(body.get("top_logprobs", 0))} if tells else None
            return self._written(spoken, tokens, logprobs)

    def _written(self, spoken: Spoken, prompt_tokens: int, logprobs: dict[str, Any] | None) -> Answered:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": spoken.text},
            "finish_reason": "stop" if spoken.complete else "length",
            "logprobs": logprobs,
        }
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(spoken.tokens)}
        return Answered.of(
            {
                "id": "chatcmpl-fake",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": self.model,
                "system_fingerprint": self.fingerprint,
                "choices": [choice],
                "usage": usage | {"total_tokens": sum(usage.values())},
            }
        )

    def _too_long(self, tokens: int, most: int) -> Answered:
        if self.kind == "vllm":
            return self.error(
                400,
                f"This model's maximum context length is {self.context} tokens. However, you requested {tokens + most} "
                f"tokens ({tokens} in the messages, {most} in the completion). Please reduce the length of the "
                "messages or completion.",
                param=None,
            )
        message = (
            f"request ({tokens} tokens) exceeds the available context size ({self.context} tokens), try increasing it"
        )
        counts = {"n_prompt_tokens": tokens, "n_ctx": self.context}
        return self.error(400, message, "exceed_context_size_error", **counts)
