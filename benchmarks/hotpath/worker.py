"""A process that holds one engine: settings come in as a line of JSON, then each further line asks for a run."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TextIO

from hotpath.settings import Engine, Settings

__all__ = ["main"]


def main() -> None:
    """Answer on stdout, one line of JSON for each request; all else that libraries print goes to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        engine = _open(Settings(**json.loads(sys.stdin.readline())))
        engine.warm()
        _reply(replies, note=engine.note)
        for _ in sys.stdin:
            before = time.process_time()
            run = engine.run()
            spent = time.process_time() - before
            _reply(replies, run=asdict(run), peak_bytes=engine.peak_bytes(), processor_seconds=spent)
    except Exception as error:  # noqa: BLE001 - whatever ends an engine is told to whoever waits
        traceback.print_exc()
        _reply(replies, failed=f"{type(error).__name__}: {error}")


def _reply(stream: TextIO, **values: Any) -> None:
    print(json.dumps(values), file=stream, flush=True)


def _open(settings: Settings) -> Engine:
    # Each import brings libraries that the interpreters of the other engines may lack.
    match settings.engine:
        case "vllm":
            from hotpath.vllm_engine import Vllm

            return Vllm(settings)
        case "llama.cpp":
            from hotpath.llama_engine import LlamaServer

            return LlamaServer(settings)
        case "peak":
            from hotpath.peak import Peak

            return Peak(settings)
    from hotpath import engines

    torch_engines: dict[str, Callable[[Settings], Engine]] = {
        "ours": engines.Ours,
        "stream": engines.Stream,
        "generate": engines.Padded,
        "single": engines.OneByOne,
    }
    return torch_engines[settings.engine](settings)


if __name__ == "__main__":
    main()
