"""How Ollama's versions differ in what a client sees: log-probabilities, and prompts that are too long."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Self

from minicheck_eval.errors import BadInput
from minicheck_eval.testing.slots import BYTES_A_TOKEN, count_tokens

__all__ = ["Era", "Seen", "TooLong"]

_KEPT = 5  # num_keep's default of 4, and the token that begins a text


@dataclass(frozen=True, slots=True)
class Seen:
    """What a model sees of a prompt."""

    text: str
    tokens: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class TooLong:
    """Why a prompt is refused: the status is 400."""

    message: str


@dataclass(frozen=True, slots=True)
class Era:
    """What a version does."""

    version: tuple[int, ...]

    @classmethod
    def of(cls, version: str) -> Self:
        """Read a version such as 0.33.0-rc2."""
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
        if not found:
            raise BadInput(f"{version!r} is no version of Ollama", hint="write one such as 0.33.0")
        return cls(tuple(map(int, found.groups())))

    @property
    def has_logprobs(self) -> bool:
        """Tell whether log-probabilities are given; before, the request for them is ignored."""
        return self.version >= (0, 12, 11)

    @property
    def default_num_ctx(self) -> int:
        """Return the window of a machine without much graphics memory."""
        return 4096 if self.version >= (0, 6, 7) else 2048

    @property
    def runs_llama_server(self) -> bool:
        """Tell whether llama.cpp's own server computes."""
        return self.version >= (0, 30, 0)

    def counts(self, tokens: int, cached: int) -> dict[str, int]:
        """Return what is reported of a prompt's length."""
        if self.version == (0, 30, 0):
            return {"prompt_eval_count": tokens - cached}
        if self.version < (0, 5, 0) and cached:
            return {}
        more = {"prompt_eval_cached_count": cached} if self.version >= (0, 35, 0) else {}
        return {"prompt_eval_count": tokens, **more}

    def fit(self, prompt: str, num_ctx: int, *, truncate: bool, shift: bool, native: bool) -> Seen | TooLong:
        """Return what the model sees of a prompt, or why it is refused."""
        tokens = 1 + count_tokens(prompt)
        if tokens <= (num_ctx - 1 if self.runs_llama_server else num_ctx):
            return Seen(prompt, tokens)
        if not self.runs_llama_server:
            if truncate or self.version < (0, 12, 6):
                return _cut(prompt, num_ctx)
            return TooLong("the input length exceeds the context length")
        if native or not truncate:
            message = (
                f"request ({tokens} tokens) exceeds the available context size ({num_ctx} tokens), try increasing it"
            )
            counts = {"type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": num_ctx}
            return TooLong(json.dumps({"error": {"code": 400, "message": message, **counts}}))
        if not shift:
            return TooLong(
                "the prompt is longer than the context length currently available to the model; shorten the prompt or "
                "increase the context length"
            )
        return _cut(prompt, num_ctx - (num_ctx - _KEPT) // 2)


def _cut(prompt: str, tokens: int) -> Seen:
    """Keep the very beginning and the end."""
    data = prompt.encode()
    head, tail = (_KEPT - 1) * BYTES_A_TOKEN, (tokens - _KEPT) * BYTES_A_TOKEN
    text = data[:head].decode(errors="ignore") + data[-tail:].decode(errors="ignore")
    return Seen(text, tokens, cut=True)
