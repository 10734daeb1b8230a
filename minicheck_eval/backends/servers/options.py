"""How a server is named, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import urlsplit

import httpx

from minicheck_eval.errors import BadInput

__all__ = ["Address", "ServerOptions"]

FORMS = "ollama:MODEL, ollama:http://HOST:PORT#MODEL or openai:http://HOST:PORT/v1#MODEL"


@dataclass(frozen=True, slots=True)
class Address:
    """A model on a server."""

    kind: Literal["ollama", "openai"]
    url: str | None
    """None: where the server usually is."""
    model: str

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Read `ollama:MODEL`, `ollama:URL#MODEL` or `openai:URL#MODEL`; None for the name of anything else."""
        scheme, colon, rest = name.partition(":")
        if not colon or scheme not in ("ollama", "openai"):
            return None
        url, hash_, model = rest.rpartition("#")
        if not model.strip() or (scheme == "openai" and not hash_):
            raise BadInput(f"{name!r} names no model on a server", hint=f"write {FORMS}")
        kind: Literal["ollama", "openai"] = "ollama" if scheme == "ollama" else "openai"
        return cls(kind, checked_url(url) if hash_ else None, model)


def checked_url(url: str) -> str:
    """Return an address of a server without its last slash, or raise `BadInput`."""
    try:
        parts, _ = urlsplit(url), httpx.URL(url)
        _ = parts.port
    except (ValueError, httpx.InvalidURL) as error:
        raise BadInput(f"{url!r} is no address of a server: {error}", hint="write http://HOST:PORT, or https") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{url!r} is no address of a server", hint="write http://HOST:PORT, or https")
    if parts.username or parts.password or parts.query:
        # The address is recorded with every run.
        raise BadInput(
            f"the address of {parts.hostname} holds a user name, a password or a query",
            hint="give secrets through the environment: --api-key-env NAME",
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a server is asked: none of it is part of the judge's identity but the window."""

    url: str | None = None
    """Of an Ollama server whose address the judge's name does not tell; None: $OLLAMA_HOST, or this machine."""
    concurrency: int | None = None
    """The most requests at once; None: as many as are found to help."""
    requests_per_s: float | None = None
    """The most requests in a second; None: no limit."""
    timeout_s: float = 300.0
    """For one call, from its start to its last byte; one that ran out of it is repeated once."""
    window_tokens: int | None = None
    """The most tokens of one prompt; None: what the model was trained for, as far as the server tells."""
    api_key_env: str | None = None
    """The environment variable that holds the key; None: OPENAI_API_KEY or OLLAMA_API_KEY, over https or to this
    machine only."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "requests_per_s", "timeout_s", "window_tokens"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):  # also refuses NaN
                raise BadInput(f"{name} is {value}", hint="give a number above 0")
        if self.url is not None:
            checked_url(self.url)
