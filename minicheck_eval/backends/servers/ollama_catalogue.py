"""Which models an Ollama server has, and which one it has loaded, through Ollama's own client."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import httpx
from pydantic import ValidationError
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from minicheck_eval.backends.servers.http import BACK_OFF, is_this_machine
from minicheck_eval.errors import BackendError, BadInput, ModelUnavailable

if TYPE_CHECKING:
    import ollama

__all__ = ["Catalogue", "Loaded", "full_name"]

Told = TypeVar("Told")

MOST_NAMES = 10
"""Of other models in a hint."""

MOST_SECONDS = 30.0
"""For a list: the server makes it without the model, and while it loads one."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in the server's memory."""

    digest: str
    num_ctx: int | None
    """None: a server that old does not tell."""


class Catalogue:
    """The models of one server."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float,
        api_key: str | None = None,
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = url
        self._key = api_key or ""
        self._client = _client(url, timeout_s, api_key)
        self._again = Retrying(
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(attempts),
            wait=BACK_OFF,
            sleep=sleep,
            reraise=True,
        )

    def digest(self, model: str) -> str:
        """Return the digest of a model's manifest, or raise `ModelUnavailable`."""
        listed = self._ask(self._client.list).models
        digests = {_key(one.model): _hex(one.digest) for one in listed if one.model}
        try:
            return digests[_key(model)]
        except KeyError:
            names = sorted(one.model for one in listed if one.model)
            there = ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
            raise ModelUnavailable(
                f"the Ollama server at {self._url} has no model {model!r}",
                hint=f"run `ollama pull {model}` there, or take one that it has: {there or 'it has none'}",
            ) from None

    def loaded(self, model: str) -> Loaded | None:
        """Return what the server has in memory of a model, if anything."""
        for one in self._ask(self._client.ps).models:
            if _key(one.model or one.name or "") == _key(model):
                return Loaded(_hex(one.digest), one.context_length or None)
        return None

    def close(self) -> None:
        """Close all connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def _ask(self, question: Callable[[], Told]) -> Told:
        import ollama

        try:
            return self._again.copy()(question)
        except (ConnectionError, httpx.ConnectTimeout) as error:
            raise BackendError(
                f"no Ollama server answers at {self._url}",
                hint="start it with `ollama serve`, or say where it is: ollama:http://HOST:PORT#MODEL",
            ) from error
        except ollama.ResponseError as error:
            hint = "give its key: --api-key-env NAME" if error.status_code in (401, 403) else "see the server's log"
            said = error.error.replace(self._key, "***") if self._key else error.error
            # Without the cause: it would show what the server said in full.
            raise BackendError(f"{self._url} said {error.status_code}: {said[:300]}", hint=hint) from None
        except httpx.HTTPError as error:
            raise BackendError(f"no answer from {self._url}: {error!r}", hint="see the server's log") from error
        except (ValidationError, ValueError, TypeError) as error:
            raise BackendError(
                f"what answers at {self._url} does not speak as Ollama does", hint="see which program listens there"
            ) from error


def full_name(model: str) -> str:
    """Return the name of a model as the server lists it, with its tag."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def _key(model: str) -> str:
    return full_name(model).casefold()


def _hex(digest: str | None) -> str:
    return (digest or "").removeprefix("sha256:")


def _client(url: str, timeout_s: float, api_key: str | None) -> ollama.Client:
    try:
        import ollama
    except (ImportError, ValueError) as error:  # it makes a client of its own when it is imported
        raise BadInput(
            f"Ollama's client cannot start with this environment: {error}",
            hint="unset ALL_PROXY, HTTP_PROXY, HTTPS_PROXY or OLLAMA_HOST, whichever it is about",
        ) from error

    def with_our_key_only(request: httpx.Request) -> httpx.Request:
        # The client would send OLLAMA_API_KEY to any server, in the clear too.
        request.headers.pop("authorization", None)
        if api_key:
            request.headers["authorization"] = f"Bearer {api_key}"
        return request

    return ollama.Client(
        url,
        timeout=min(timeout_s, MOST_SECONDS),  # by itself it waits for ever
        trust_env=not is_this_machine(url),  # proxies of the environment do not know this machine
        follow_redirects=False,
        auth=with_our_key_only,
    )


def _may_pass(error: BaseException) -> bool:
    import ollama

    if isinstance(error, ollama.ResponseError):
        return error.status_code in (408, 425, 429) or error.status_code >= 500  # noqa: PLR2004
    return isinstance(error, ConnectionError | httpx.TransportError | ValueError)  # half of a JSON text is a ValueError
