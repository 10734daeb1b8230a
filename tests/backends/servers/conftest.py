"""A server of a test's own, on this machine."""

import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict
    body: object
    socket: object = field(repr=False)


@pytest.fixture
def serve():
    """Start a server: `answer(asked)` gives a value for JSON, `(status, value)` or `(status, value, headers)`.

    A value of bytes is sent as it is; an answer of None means that all was sent by hand, or nothing.
    """
    with contextlib.ExitStack() as servers:
        yield lambda answer: servers.enter_context(_running(answer))


@contextlib.contextmanager
def _running(answer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one write: else each answer waits for a delayed acknowledgement

        def log_message(self, *_):
            pass

        def _do(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(
                self.command, self.path, dict(self.headers), json.loads(raw) if raw else None, self.connection
            )
            self.server.asked.append(asked)
            given = answer(asked)
            if given is None:
                self.close_connection = True
                return
            status, value, headers = (*given, {})[:3] if isinstance(given, tuple) else (200, given, {})
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _do  # noqa: N815 - the names are http.server's

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    server.handle_error = lambda *_: None  # clients that go away are part of the tests
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
