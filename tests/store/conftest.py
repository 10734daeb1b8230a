"""A Hugging Face hub on loopback, as its client sees it, with the faults that a test asks for."""

from __future__ import annotations

import hashlib
import http.server
import threading

import pytest

COMMIT = "c0ffee" + "0" * 34
LARGE = 50_000
"""From this size on a file is kept apart, as with Git LFS: its etag is its SHA-256, and its content is elsewhere."""

PIECE = 1000


class Hub:
    """Serves `files` of one repository at one commit; `fault` changes what it does."""

    def __init__(self) -> None:
        self.repository = "maker/tiny"
        self.files: dict[str, bytes] = {}
        self.fault = ""
        self.asked: list[str] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.hub = self
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def large(self) -> str:
        """Another host, as far as a client can tell."""
        return f"http://localhost:{self.server.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 - the parent's name
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        hub = self.server.hub
        hub.asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        name = self.path.rpartition("/")[2]
        refused = {"gone": (404, "RepoNotFound"), "gated": (401, "GatedRepo"), "revision": (404, "RevisionNotFound")}
        if hub.fault in refused:
            return self._send(refused[hub.fault][0], {"X-Error-Code": refused[hub.fault][1]})
        if self.path == f"/large/{name}":
            return self._content(hub.files[name])
        if self.path != f"/{hub.repository}/resolve/{COMMIT}/{name}" or name not in hub.files:
            return self._send(404, {"X-Error-Code": "EntryNotFound"})
        content = hub.files[name]
        commit = {"X-Repo-Commit": "b" * 40 if hub.fault == "other commit" else COMMIT}
        if len(content) < LARGE:
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            return self._content(content, {**commit, "ETag": f'"{blob}"'})
        etag = "" if hub.fault == "no digest" else hashlib.sha256(content).hexdigest()
        linked = {"X-Linked-Etag": f'"{etag or "abc"}"', "X-Linked-Size": str(len(content))}
        return self._send(302, {**commit, **linked, "Location": f"{hub.large}/large/{name}"})

    def _content(self, content, headers=None):
        hub = self.server.hub
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        if hub.fault == "damaged" and self.command == "GET":
            content = content[:-1] + bytes([content[-1] ^ 1])
        cut = hub.fault in ("cut once", "cut") and len(content) >= LARGE
        self.send_response(206 if start else 200)
        for key, value in {**(headers or {}), "Content-Length": str(len(content) - start)}.items():
            self.send_header(key, value)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        if not cut:
            self.wfile.write(content[start:])
            return
        # Half comes, then the line is dead; after "cut" nothing more comes at all.
        if not start:
            self.wfile.write(content[: len(content) // 2])
        if hub.fault == "cut once":
            hub.fault = ""
        self.close_connection = True
        self.connection.close()

    def _send(self, status, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(key, value)
        self.end_headers()


@pytest.fixture
def hub(monkeypatch):
    """A hub that the client is pointed at."""
    from huggingface_hub.utils import disable_progress_bars, enable_progress_bars

    served = Hub()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", served.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    # The client keeps whole pieces of what comes; these files are smaller than one.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", PIECE)
    disable_progress_bars()
    yield served
    enable_progress_bars()
    served.server.shutdown()
    served.server.server_close()
