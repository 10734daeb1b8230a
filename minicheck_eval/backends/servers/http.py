"""Asks a server over HTTP: repeats what may pass, gives every request an end, and keeps keys to itself."""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential, wait_random

from minicheck_eval.backends.servers.answers import MOST_WAIT_S, AskAgain, Refused, read_value
from minicheck_eval.counts import counted
from minicheck_eval.errors import BackendError, BadInput

__all__ = ["BACK_OFF", "Answer", "Refused", "Transport", "Unanswered", "is_this_machine"]

MOST_TIMEOUTS = 2
"""A request that ran out of time so often will do so again."""

MOST_BYTES = 16 * 1024**2
"""Of one answer: far more than a reply of thousands of tokens with their probabilities."""

BACK_OFF = wait_exponential(multiplier=0.5, max=MOST_WAIT_S) + wait_random(0, 0.25)
"""Between two tries, where a server is busy or not there; at random, so that many lanes do not come back together."""

AFTER_AN_ACCIDENT = 0.2
"""Of that, where it is neither and only an answer went wrong."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, and what it took."""

    value: dict[str, Any]
    seconds: float
    """Of all calls, without the waits between them."""
    calls: int
    """How often the server was asked."""


class Unanswered(BackendError):
    """The server gave no usable answer, however often it was asked."""

    def __init__(self, message: str, *, silent: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.silent = silent
        """Nothing was heard of the server, not even an error."""


class _Late(AskAgain):
    timeout = overload = silent = True
    hint = "see whether the server still works; ask fewer at once, or allow a request more time"


class _Unreachable(AskAgain):
    silent = True
    hint = "see whether the server runs, and whether the address is right"


class Transport:
    """One server, asked from any number of threads; `timeout_s` bounds each call, from its start to its last byte."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float,
        requests_per_s: float | None = None,
        api_key: str | None = None,
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.timeout_s = timeout_s
        self.calls = 0
        """How many requests there were, with all repetitions."""
        self.seconds = 0.0
        """Of all of them, added up."""
        self.overloads = 0
        """How often the server said that it was asked too much, or took too long."""
        self._attempts = attempts
        self._sleep = sleep
        self._pace = _Pace(requests_per_s, sleep)
        self._key = checked_key(api_key)
        self._lock = Lock()
        self._client = httpx.Client(
            # Proxies of the environment do not know this machine.
            trust_env=not is_this_machine(base_url),
            timeout=httpx.Timeout(timeout_s, connect=min(10.0, timeout_s), pool=None),
            limits=httpx.Limits(max_connections=None),
            headers={
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            },
        )

    @property
    def longest_s(self) -> float:
        """Return about the longest time that one answer can take, with all repetitions and waits."""
        return MOST_TIMEOUTS * self.timeout_s + self._attempts * (MOST_WAIT_S + self._pace.gap_s)

    def get(self, path: str) -> Any:
        """Return the JSON value at a path."""
        return self._ask("GET", path, None)[0]

    def post(self, path: str, body: Any) -> Answer:
        """Send a JSON value and return the JSON object that comes back."""
        # Half of a surrogate pair, as JSON files may hold, is no text in UTF-8.
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return Answer(*self._ask("POST", path, content))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _ask(self, method: str, path: str, content: bytes | None) -> tuple[Any, float, int]:
        failed: list[AskAgain] = []
        seconds = 0.0

        def once() -> Any:
            nonlocal seconds
            self._pace.wait()
            start = time.monotonic()
            try:
                return self._once(method, path, content)
            except AskAgain as again:
                failed.append(again)
                self._count(overloads=again.overload)
                raise
            finally:
                took = time.monotonic() - start
                seconds += took
                self._count(calls=1, seconds=took)

        def is_enough(_: RetryCallState) -> bool:
            return len(failed) >= self._attempts or sum(again.timeout for again in failed) >= MOST_TIMEOUTS

        def wait(state: RetryCallState) -> float:
            share = 1.0 if failed[-1].overload or failed[-1].silent else AFTER_AN_ACCIDENT
            return max(share * BACK_OFF(state), failed[-1].wait_s)

        retrying = Retrying(
            retry=retry_if_exception_type(AskAgain), stop=is_enough, wait=wait, sleep=self._sleep, reraise=True
        )
        try:
            return retrying(once), seconds, len(failed) + 1
        except AskAgain as last:
            tries = counted(len(failed), "try", "tries")
            raise Unanswered(
                f"no answer from {self.base_url}{path} after {tries}; the last time: {last}",
                silent=last.silent,
                hint=last.hint,
            ) from None

    def _count(self, *, calls: int = 0, seconds: float = 0.0, overloads: int = 0) -> None:
        with self._lock:
            self.calls += calls
            self.seconds += seconds
            self.overloads += overloads

    def _once(self, method: str, path: str, content: bytes | None) -> Any:
        deadline = time.monotonic() + self.timeout_s
        try:
            with self._client.stream(method, self.base_url + path, content=content) as response:
                raw = self._read(response, deadline)
        except httpx.ConnectTimeout:
            raise _Unreachable("nobody took the connection") from None
        except httpx.TimeoutException:
            raise self._late() from None
        except httpx.ConnectError as error:
            raise _Unreachable(f"no connection ({self._without_key(str(error))})") from None
        except httpx.RequestError as error:
            raise AskAgain(f"the connection broke ({self._without_key(str(error))})") from None
        text = raw.decode("utf-8", "replace")
        return read_value(response, text, any_json=content is None, shown=self._without_key)

    def _read(self, response: httpx.Response, deadline: float) -> bytes:
        """Read the body to its end; a server that sends it drop by drop is cut off."""
        raw = bytearray()
        for chunk in response.iter_bytes():
            raw += chunk
            if len(raw) > MOST_BYTES:
                raise Refused(response.status_code, f"the answer has more than {MOST_BYTES:,} bytes", None)
            if time.monotonic() > deadline:
                raise self._late()
        return bytes(raw)

    def _late(self) -> AskAgain:
        return _Late(f"it was not done within {self.timeout_s:g} s")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


class _Pace:
    """Lets calls start at a rate, from whatever threads they come."""

    def __init__(self, per_s: float | None, sleep: Callable[[float], None]) -> None:
        self.gap_s = 1 / per_s if per_s else 0.0
        self._sleep = sleep
        self._lock = Lock()
        self._next = 0.0

    def wait(self) -> None:
        if not self.gap_s:
            return
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.gap_s
        if start > now:
            self._sleep(start - now)


def is_this_machine(url: str) -> bool:
    """Say whether an address is of the machine itself, so that nothing of it crosses a network."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def checked_key(key: str | None) -> str:
    """Return a key without white space around it, or raise `BadInput`, which does not show it."""
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise BadInput("the key for the server holds characters that no key has", hint="set it again, in ASCII")
    return key
