"""A real HTTP server on the loopback that starts and stops at once: what the fakes of judges' servers share."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from minicheck_eval.testing.faults import Faults
from minicheck_eval.testing.slots import Closed

__all__ = ["Answered", "Asked", "FakeServer"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that reached the server."""

    method: str
    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(repr=False)
    """By their names in lower case."""
    arrived_s: float = field(repr=False, compare=False)
    """On the clock of `time.perf_counter`."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What the server sends back."""

    body: bytes = b""
    status: int = 200
    kind: str = "application/json"
    wire: str = "whole"
    """How it arrives: `whole`, or as one of the faults `reset`, `hang`, `half_json` and `torn_body`."""

    @classmethod
    def of(cls, value: Any, status: int = 200, *, wire: str = "whole") -> Self:
        """Answer with a JSON value."""
        return cls(json.dumps(value).encode(), status, wire=wire)

    @property
    def value(self) -> Any:
        """Return the JSON value of the body."""
        return json.loads(self.body)

    @classmethod
    def lines(cls, values: Iterable[Any]) -> Self:
        """Answer with JSON values, one to a line."""
        return cls(b"".join(json.dumps(value).encode() + b"\n" for value in values), kind="application/x-ndjson")


class FakeServer(ABC):
    """Serves from entering to leaving a `with` block; leaving it ends all connections, hanging ones too.

    An exception of the function that answers reaches the client as status 500, and is raised again on leaving.
    """

    def __init__(self, faults: Faults | None) -> None:
        self.faults = faults or Faults()
        self.requests: list[Asked] = []
        """All requests so far, as they arrived."""
        self.root = ""
        """The address without a path, while the server runs."""
        self.closing = threading.Event()
        self._failure: Exception | None = None
        self._running = ExitStack()

    @abstractmethod
    def respond(self, asked: Asked) -> Answered:
        """Answer one request; called in the thread of its connection."""

    @abstractmethod
    def error(self, status: int, message: str) -> Answered:
        """Return an error in the shape that this kind of server gives it."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Return the address to give to a client."""

    @abstractmethod
    def written(self, messages: list[dict[str, str]]) -> str:
        """Write out a chat as the model is given it."""

    @property
    @abstractmethod
    def computed_tokens(self) -> int:
        """Return how many tokens of prompts were computed so far, those that a slot remembered not among them."""

    @abstractmethod
    def close_slots(self) -> None:
        """Wake whatever waits for its turn."""

    def asked_for(self, path: str) -> list[dict[str, Any]]:
        """Return the bodies of all requests to a path so far."""
        return [asked.body for asked in self.requests if asked.path == path]

    def __enter__(self) -> Self:
        http = _Http(self)
        self.root = f"http://127.0.0.1:{http.server_port}"
        self._running.callback(http.close)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.closing.set()
        self.close_slots()
        self._running.close()
        if self._failure is not None and kind is None:
            raise self._failure

    def handle(self, asked: Asked) -> Answered:
        """Log one request and answer it."""
        self.requests.append(asked)
        try:
            return self.respond(asked)
        except Closed:
            return Answered(wire="reset")
        except Exception as error:  # noqa: BLE001 - the function that answers is the user's
            self._failure = error
            return self.error(500, repr(error))

    def pause(self, seconds: float) -> None:
        """Let time pass, unless the server closes."""
        if self.closing.wait(seconds):
            raise Closed

    def with_fault(self, prompt: str, respond: Callable[[str | None], Answered]) -> Answered:
        """Answer a prompt, or fail as its fault says; faults of the model are left to `respond`."""
        fault = self.faults.meet(prompt)
        match fault:
            case "burst_503":
                return self.error(503, "server busy, please try again.  maximum pending requests exceeded")
            case "midstream_error":
                return self.error(200, "an error was encountered while running the model: unexpected EOF")
            case "reset" | "hang":
                return Answered(wire=fault)
            case "slow":
                self.pause(self.faults.slow_s)
        answered = respond(fault)
        return replace(answered, wire=fault) if fault in ("half_json", "torn_body") else answered


class _Http(ThreadingHTTPServer):
    """One thread a connection, and no waiting at the end."""

    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, fake: FakeServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.fake = fake
        self._open: dict[threading.Thread, socket.socket] = {}
        self._accepting = threading.Thread(target=self._accept_until_closed, daemon=True)
        self._accepting.start()

    def _accept_until_closed(self) -> None:
        while not self.fake.closing.is_set():
            self.handle_request()

    def close(self) -> None:
        socket.create_connection(("127.0.0.1", self.server_port)).close()  # wakes the thread that accepts
        self._accepting.join()
        for thread, connection in list(self._open.items()):
            with suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._open[thread] = request  # before it starts: whoever ends all connections must see it
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            del self._open[threading.current_thread()]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client may go at any time."""


class _Connection(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def parse_request(self) -> bool:
        self._arrived_s = time.perf_counter()
        return super().parse_request()

    def do_GET(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            value = json.loads(body or b"{}")
        except ValueError as error:
            self._send(self.server.fake.error(400, str(error)))
            return
        self._handle(value)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is that of the base
        """Keep quiet."""

    def _handle(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(self.server.fake.handle(Asked(self.command, self.path, body, headers, self._arrived_s)))

    def _send(self, answered: Answered) -> None:
        if answered.wire == "hang":
            self.server.fake.closing.wait()
        if answered.wire in ("hang", "reset"):
            self._reset()
            return
        body = answered.body
        half = body[: len(body) // 2]
        length = len(half) if answered.wire == "half_json" else len(body)
        head = f"HTTP/1.1 {answered.status} {responses[answered.status]}\r\nContent-Type: {answered.kind}\r\n"
        self.wfile.write(
            f"{head}Content-Length: {length}\r\n\r\n".encode() + (body if answered.wire == "whole" else half)
        )
        self.close_connection = self.close_connection or answered.wire == "torn_body"

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())  # the files around it would keep it open
        self.close_connection = True
