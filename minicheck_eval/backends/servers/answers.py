"""Reads what a server answered: a value, a refusal, or a reason to ask again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from minicheck_eval.backends.servers.too_long import tells_of_length
from minicheck_eval.border import cut
from minicheck_eval.errors import BackendError

__all__ = ["MOST_WAIT_S", "AskAgain", "Refused", "read_value"]

REPEATED = frozenset({408, 425, 429, 500, 502, 503, 504})
OVERLOADED = frozenset({429, 503})
ABOUT_THE_PROMPT = frozenset({200, 400, 413, 422, 500})

SHOWN = 300
MOST_WAIT_S = 30.0
"""Whatever a server asks for with Retry-After."""


class Refused(BackendError):
    """The server understood the request and does not do it: asking again would not help."""

    retryable = False

    def __init__(self, status: int, message: str, body: Any, *, hint: str | None = None) -> None:
        super().__init__(f"the server refused with status {status}: {message}", hint=hint)
        self.status = status
        self.message = message
        self.body = body

    @property
    def is_too_long(self) -> bool:
        """Say whether the prompt was too long, which some servers tell with a status of success or of an accident."""
        return self.status in ABOUT_THE_PROMPT and tells_of_length(f"{self.message} {self.body}")


class AskAgain(Exception):
    """Why a call has to be repeated."""

    timeout = False
    overload = False
    silent = False
    hint = "see the log of the server"

    def __init__(self, reason: str, *, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class _Busy(AskAgain):
    overload = True
    hint = "ask fewer at once"


def read_value(response: httpx.Response, text: str, *, any_json: bool, shown: Callable[[str], str]) -> Any:
    """Return the JSON of an answer, or raise `Refused` or `AskAgain`; without `any_json` only an object is one.

    Whatever an error says of the answer goes through `shown`, which takes the key out.
    """
    status = response.status_code
    value = _parsed(text)
    if isinstance(value, str):
        value = None
    if response.has_redirect_location:
        # Not followed: a key is for one server.
        raise Refused(status, shown(f"look at {response.headers['Location']}"), None, hint="give that address instead")
    is_value = value is not None and (any_json or isinstance(value, dict))
    is_success = 200 <= status < 300  # noqa: PLR2004 - the borders of success
    # Some servers send an error with a status of success.
    if is_success and not (is_value and not any_json and value.get("error")):
        if not is_value:
            raise AskAgain(f"the answer was no JSON, or cut off: {shown(_short(text))}")
        return value
    refused = Refused(status, shown(_said(value, text)), _parsed(shown(text)))
    if (is_success or status in REPEATED) and not refused.is_too_long:
        reason = f"status {status}, {refused.message}"
        raise (_Busy if status in OVERLOADED else AskAgain)(reason, wait_s=_retry_after_s(response))
    raise refused


def _parsed(text: str) -> Any:
    """Return the JSON value that a text is, or the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _said(value: Any, text: str) -> str:
    """Find the words in the body of an error, whichever server wrote it."""
    while isinstance(value, dict):
        value = next((value[name] for name in ("error", "message", "detail") if value.get(name)), None)
    return _short(value if isinstance(value, str) else text)


def _short(text: str) -> str:
    return repr(cut(" ".join(text.split()), SHOWN))


def _retry_after_s(response: httpx.Response) -> float:
    """Read Retry-After, in seconds or as a date, and keep it within bounds."""
    given = response.headers.get("Retry-After", "")
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return min(max(0.0, seconds), MOST_WAIT_S)  # NaN ends as 0
