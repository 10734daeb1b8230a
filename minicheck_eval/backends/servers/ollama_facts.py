"""What an Ollama server tells about a model before it is asked anything: version, digests, template, window."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from minicheck_eval.backends.servers.facts import ServerFacts
from minicheck_eval.backends.servers.http import Transport
from minicheck_eval.backends.servers.ollama_catalogue import Catalogue, full_name
from minicheck_eval.backends.servers.ollama_window import Era
from minicheck_eval.backends.servers.too_long import size_of
from minicheck_eval.border import explain
from minicheck_eval.errors import BackendError, BadInput

__all__ = ["OpenedModel", "read_model", "read_version"]

UNTOLD_WINDOW_TOKENS = 4096
"""Where the server does not tell what a model was trained for: what it would use by itself."""

UNTOLD_TEMPLATE_BYTES = 2048
"""Where the chat template is inside the weights, and not shown."""

WEIGHTS = re.compile(r"^FROM .*sha256[-:]([0-9a-f]{64})\s*$", re.MULTILINE)


class _Details(BaseModel):
    quantization_level: str = ""


class _Show(BaseModel):
    """A model as /api/show describes it; each version tells more."""

    modelfile: str = ""
    template: str = ""
    system: str = ""
    parameters: str = ""
    details: _Details = _Details()
    model_info: dict[str, Any] = {}
    capabilities: list[str] | None = None
    remote_host: str = ""


class _Version(BaseModel):
    version: str


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model on an Ollama server, as it was found."""

    facts: ServerFacts
    era: Era
    own_bytes: int
    """The most that the server puts around the messages of a chat."""

    @property
    def digest(self) -> str:
        """Return the digest of its manifest, which covers weights, template, instruction and parameters."""
        return self.facts.digests["manifest"]


def read_version(transport: Transport) -> str:
    """Return the version of the server."""
    try:
        return _Version.model_validate(transport.get("/api/version")).version
    except ValidationError as error:
        raise BackendError(
            f"{transport.base_url} does not tell a version of Ollama: {explain(error)}",
            hint="see which program listens there; servers that speak as OpenAI does are openai:URL#MODEL",
        ) from error


def read_model(catalogue: Catalogue, transport: Transport, model: str, window_tokens: int | None) -> OpenedModel:
    """Find a model; `window_tokens` lowers the window that it was trained for."""
    era = Era.of(read_version(transport))
    name = full_name(model)
    digest = catalogue.digest(name)
    # Not through the client: it leaves out the instruction.
    try:
        show = _Show.model_validate(transport.post("/api/show", {"model": name}).value)
    except ValidationError as error:
        raise BackendError(f"what the server tells of {name!r} has an unknown form: {explain(error)}") from error
    _check_use(name, show)
    trained = _trained_window(show)
    if window_tokens and trained and window_tokens > trained:
        raise BadInput(
            f"the window is to hold {window_tokens:,} tokens, and {name!r} was trained for {trained:,}",
            hint=f"ask for {trained:,} at most",
        )
    parts = {"template": show.template, "system": show.system, "parameters": show.parameters}
    weights = WEIGHTS.search(show.modelfile)
    facts = ServerFacts(
        model=name,
        revision=digest,
        digests={
            "manifest": digest,
            **({"weights": weights[1]} if weights else {}),
            **{part: _sha256(text) for part, text in parts.items()},
        },
        server=f"ollama {era.version}",
        quantization=show.details.quantization_level,
        window_tokens=window_tokens or trained or UNTOLD_WINDOW_TOKENS,
        logprobs=era.gives_logprobs,
        notes=tuple(_notes(era, show, trained or window_tokens)),
    )
    # A template may write its words around each of two messages, and once behind them.
    around = 3 * size_of([show.template]) if show.template else UNTOLD_TEMPLATE_BYTES
    return OpenedModel(facts, era, around + size_of([show.system]) + 64)


def _check_use(name: str, show: _Show) -> None:
    if show.remote_host:
        raise BadInput(
            f"{name!r} runs at {show.remote_host} and not on the server that was named",
            hint="take a model that was pulled with its weights",
        )
    if show.capabilities is not None and "completion" not in show.capabilities:
        raise BadInput(
            f"{name!r} cannot answer: it is a model for {', '.join(show.capabilities) or 'nothing that is known'}",
            hint="take a chat model",
        )


def _trained_window(show: _Show) -> int | None:
    found = [value for key, value in show.model_info.items() if key.endswith(".context_length")]
    return found[0] if found and isinstance(found[0], int) and found[0] > 0 else None


def _notes(era: Era, show: _Show, window: int | None) -> list[str]:
    notes = []
    if not era.gives_logprobs:
        notes.append(f"Ollama {era.version} gives no probabilities (0.12.11 does): answers are read from words")
    if not era.refuses_long_prompts:
        notes.append(f"Ollama {era.version} cuts prompts that are too long (0.12.6 need not): found by their counts")
    if not era.counts_cached_tokens:
        notes.append(f"Ollama {era.version} miscounts prompts (0.30.1 does not): it is relied on to refuse long ones")
    if not window:
        notes.append(f"the server does not tell the window of the model: {UNTOLD_WINDOW_TOKENS:,} tokens are used")
    if "thinking" in (show.capabilities or []):
        notes.append("the model thinks before it answers: its first token may be no answer")
    return notes


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
