"""What an OpenAI-compatible server tells of itself and its model, before it is asked anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicheck_eval.backends.servers.http import Refused, Transport, Unanswered
from minicheck_eval.errors import BackendError, BadInput, ModelUnavailable
from minicheck_eval.identity import digest

__all__ = ["ModelCard", "read_card", "refuse_ollama", "root_of", "told_version", "told_window"]

NO_ROUTE = frozenset({404, 405, 501})

WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "n_ctx", "n_ctx_train")
"""How vLLM and SGLang, LM Studio, routers and llama.cpp call the number of tokens that a prompt may have."""

LASTING = ("id", "owned_by", "root", "parent", "max_model_len", "context_length")
"""What does not change from one look at a model to the next, as times and random names do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A model as a server lists it."""

    model: str
    entry: Mapping[str, Any]
    """Empty where the server has no list."""

    @property
    def digest(self) -> str:
        """Return a SHA-256 of what stays the same while the model does; empty without a list."""
        lasting = {name: self.entry[name] for name in LASTING if self.entry.get(name) is not None}
        return digest({**lasting, "meta": self.entry.get("meta")}) if self.entry else ""

    @property
    def owner(self) -> str:
        """Return the kind of the server, as far as it tells."""
        return str(self.entry.get("owned_by") or "")

    @property
    def window_tokens(self) -> int | None:
        """Return the most tokens of a prompt, if they are in the list."""
        meta = self.entry.get("meta")
        return window_in(self.entry) or (window_in(meta) if isinstance(meta, dict) else None)


def read_card(transport: Transport, model: str) -> ModelCard:
    """Find the model in the server's list, or raise `ModelUnavailable`; a server may have no list."""
    try:
        listed = transport.get("/models")
    except Refused as error:
        if error.status in (401, 403):
            raise BackendError(
                f"{transport.base_url} wants another key: {error.message}",
                hint="name the environment variable that holds it: --api-key-env NAME",
            ) from error
        if error.status in NO_ROUTE:
            return ModelCard(model=model, entry={})
        raise
    entries = {str(entry["id"]): entry for entry in _entries(listed)}
    if model not in entries:
        there = ", ".join(sorted(entries)[:20]) or "none"
        raise ModelUnavailable(
            f"{transport.base_url} has no model {model!r}", hint=f"the models that it lists: {there}"
        )
    return ModelCard(model=model, entry=entries[model])


def told_window(root: Transport, model: str) -> int | None:
    """Ask where llama.cpp and LM Studio tell the window that a loaded model really has."""
    props = try_get(root, "/props")
    if isinstance(props, dict) and isinstance(settings := props.get("default_generation_settings"), dict):
        return window_in(settings)
    for entry in _entries(try_get(root, "/api/v0/models")):
        if entry["id"] == model:
            return window_in(entry)
    return None


def told_version(root: Transport) -> str:
    """Ask where vLLM tells its version."""
    told = try_get(root, "/version")
    return str(told.get("version", "")) if isinstance(told, dict) else ""


def refuse_ollama(root: Transport) -> None:
    """Raise `BadInput` for an Ollama server: on this route it cuts long prompts, and cannot be told not to."""
    told = try_get(root, "/api/version")
    if isinstance(told, dict) and isinstance(told.get("version"), str):
        raise BadInput(
            f"{root.base_url} is an Ollama server ({told['version']}), whose OpenAI route silently cuts long prompts",
            hint=f"use its own route: ollama:{root.base_url}#MODEL",
        )


def root_of(url: str) -> str:
    """Return the address of a server without the version of its interface."""
    return url.removesuffix("/v1")


def try_get(transport: Transport, path: str) -> Any:
    """Return the JSON at a path, or None where there is none."""
    try:
        return transport.get(path)
    except (Refused, Unanswered):
        return None


def window_in(told: Mapping[str, Any]) -> int | None:
    """Find the number of tokens under the first known name."""
    found = (told.get(name) for name in WINDOWS)
    return next((value for value in found if isinstance(value, int) and value > 0), None)


def _entries(listed: Any) -> Iterator[dict[str, Any]]:
    found = listed.get("data") if isinstance(listed, dict) else None
    return (entry for entry in (found if isinstance(found, list) else []) if isinstance(entry, dict) and "id" in entry)
