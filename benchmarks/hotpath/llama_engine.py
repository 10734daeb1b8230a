"""llama.cpp's server: started from a program, or one that already runs at a URL."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from hotpath.memory import peak_resident_bytes
from hotpath.settings import Run, Settings

__all__ = ["LlamaServer"]

WARM_UP_PROMPTS = 2
START_SECONDS = 120
TOP = 50
"""The server tells only so many of the most probable tokens."""


class LlamaServer:
    """One slot, prompts in order of documents: each reuses what it shares with the one before, and nothing older."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ids: list[list[int]] = json.loads(Path(settings.workload).read_text(encoding="utf-8"))["ids"]
        place = str(settings.server)
        self.process: subprocess.Popen[bytes] | None = None
        if place.startswith(("http://", "https://")):
            self.url = place.rstrip("/")
        else:
            self.url = self._start(place)
        self._await()
        model = self._ask("/props").get("model_path", "a model it was started with")
        self.note = f"llama.cpp's server with {Path(model).name} (its own precision), one slot, token ids given"

    def _start(self, program: str) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        threads = str(self.settings.threads)
        window = str(max(map(len, self.ids)) + 8)
        command = [program, "--model", str(self.settings.model), "--host", "127.0.0.1", "--port", str(port)]
        command += ["--parallel", "1", "--ctx-size", window, "--threads", threads, "--threads-batch", threads]
        # Without its cache in memory a repeat begins with nothing but the head of the prompt.
        command += ["--cache-ram", "0", "--no-webui"]
        self.process = subprocess.Popen(command)  # noqa: S603 - no shell, the user named the program
        return f"http://127.0.0.1:{port}"

    def _await(self) -> None:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                self._ask("/health")
            except (URLError, HTTPError, ConnectionError) as error:
                if time.monotonic() > until or (self.process and self.process.poll() is not None):
                    raise RuntimeError(f"llama.cpp's server did not start: {error}") from error
                time.sleep(0.2)
            else:
                return

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, headers={"Content-Type": "application/json"})  # noqa: S310
        with urlopen(request, timeout=600) as answer:  # noqa: S310 - the user named the server
            found: dict[str, Any] = json.load(answer)
            return found

    def warm(self) -> None:
        """Score a few prompts, then one that shares nothing with the next run."""
        self._score(self.ids[:WARM_UP_PROMPTS])

    def run(self) -> Run:
        """Score all prompts, one after the other."""
        began = time.perf_counter()
        answers = self._score(self.ids)
        seconds = time.perf_counter() - began
        computed = sum(int(one["timings"]["prompt_n"]) for one in answers)
        return Run(seconds, [self._support(one) for one in answers], computed, prompts=len(answers))

    def _score(self, ids: Sequence[list[int]]) -> list[dict[str, Any]]:
        fixed = {"n_predict": 1, "temperature": 0, "n_probs": TOP, "cache_prompt": True}
        return [self._ask("/completion", {"prompt": one, **fixed}) for one in ids]

    def _support(self, answer: dict[str, Any]) -> float | None:
        candidates = answer["completion_probabilities"][0]["top_logprobs"]
        return next((math.exp(one["logprob"]) for one in candidates if one["id"] == self.settings.yes), None)

    def peak_bytes(self) -> int | None:
        """Return the peak memory of the server, where this process started it."""
        return peak_resident_bytes(str(self.process.pid)) if self.process else None
