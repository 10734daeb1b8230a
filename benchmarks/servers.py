"""Measure how well a judge's server is kept busy: the backends beside a loop that asks one thing after another.

The server is one of the package's fakes, in a process of its own.  It takes `--request-ms` for each request and
`--token-ms` for each token of a prompt that the slot does not remember from the prompt before; tokens are four bytes.
The rows are `--documents` with `--claims` each, in the order of `--order`: `scattered`, as rows of a file may lie, or
`grouped`, all claims of a document together.
The ideal computes each token that prompts share once and keeps all slots busy from beginning to end; nothing reaches
it, since requests also take time on their way.  Shares are of that ideal.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from minicheck_eval.backends.servers.backend import ServerBackend
from minicheck_eval.backends.servers.ollama_backend import open_ollama
from minicheck_eval.backends.servers.openai_backend import open_openai
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.scoring import Prompt, PromptTemplate, Score
from minicheck_eval.testing import FakeOllama, FakeOpenAI
from minicheck_eval.testing.server import FakeServer
from minicheck_eval.testing.slots import BYTES_A_TOKEN, shared_length

TEMPLATE = PromptTemplate(
    "Document: {document}\nClaim:", " {claim}", system='Is the claim supported by the document? Say "Yes" or "No".'
)
WAYS = ("loop", "given", "found")


class Server(NamedTuple):
    """A fake server in another process."""

    url: str
    computed_tokens: Callable[[], int]
    """Tell how many tokens of prompts it computed so far."""


def fake_server(kind: str, **settings: Any) -> FakeServer:
    """Make a fake server that says yes."""
    return (FakeOllama if kind == "ollama" else FakeOpenAI)(lambda _: 0.9, **settings)


def serve(kind: str, settings: dict[str, Any], pipe: Any) -> None:
    """Run a fake server until the other end of the pipe says so."""
    with fake_server(kind, **settings) as fake:
        pipe.send(fake.url)
        while pipe.recv():
            pipe.send(fake.computed_tokens)


@contextmanager
def server(kind: str, options: argparse.Namespace) -> Iterator[Server]:
    """Start a fake server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    settings = {
        "slots": options.slots,
        "seconds_per_request": options.request_ms / 1000,
        "seconds_per_token": options.token_ms / 1000,
    }
    process = context.Process(target=serve, args=(kind, settings, there))
    process.start()

    def computed_tokens() -> int:
        here.send(True)
        return int(here.recv())

    try:
        yield Server(here.recv(), computed_tokens)
    finally:
        here.send(False)
        process.join()


def build_prompts(options: argparse.Namespace) -> list[Prompt]:
    """Make the prompts, in the order of the file."""
    chance = random.Random(options.seed)  # noqa: S311 - texts, not secrets
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u") for c in ("ra", "ton", "vel")]

    def text(count: int) -> str:
        return " ".join(chance.choices(words, k=count))

    rows = [
        (document, text(10))
        for document in [text(options.words) for _ in range(options.documents)]
        for _ in range(options.claims)
    ]
    if options.order == "scattered":
        chance.shuffle(rows)
    return [TEMPLATE.fill(*row) for row in rows]


def ideal_seconds(kind: str, prompts: Sequence[Prompt], options: argparse.Namespace) -> float:
    """Return the time in which slots that are never idle compute every shared token once."""
    fake = fake_server(kind)
    texts = sorted(fake.written(chat_of(prompt)) for prompt in prompts)
    shared = sum(shared_length(*pair) for pair in pairwise(texts))
    tokens = (sum(map(len, texts)) - shared) / BYTES_A_TOKEN
    return float((len(prompts) * options.request_ms + tokens * options.token_ms) / 1000 / options.slots)


def loop(kind: str, url: str, prompts: Sequence[Prompt]) -> float:
    """Ask one prompt after another; return the seconds."""
    path = "/api/chat" if kind == "ollama" else "/chat/completions"
    told = {"logprobs": True, "top_logprobs": 20, "stream": False}
    few = {"options": {"num_predict": 1, "num_ctx": 2048}} if kind == "ollama" else {"max_tokens": 1}
    with httpx.Client(trust_env=False, timeout=60) as client:
        began = time.perf_counter()
        for prompt in prompts:
            body = {"model": model_of(kind), "messages": chat_of(prompt), **told, **few}
            client.post(url + path, json=body).raise_for_status()
        return time.perf_counter() - began


def chat_of(prompt: Prompt) -> list[dict[str, str]]:
    """Return the messages of a prompt."""
    return [{"role": "system", "content": prompt.system or ""}, {"role": "user", "content": prompt.text}]


def model_of(kind: str) -> str:
    """Name the model on a fake server."""
    return "bespoke-minicheck" if kind == "ollama" else "judge"


def open_backend(kind: str, url: str, options: ServerOptions) -> ServerBackend:
    """Open the model on a fake server."""
    if kind == "ollama":
        return open_ollama(Address("ollama", url, model_of(kind)), options)
    return open_openai(Address("openai", url, model_of(kind)), options)


def through_backend(backend: ServerBackend, prompts: Sequence[Prompt], batch: int) -> float:
    """Score all prompts in batches; return the seconds."""
    batches = (prompts[start : start + batch] for start in range(0, len(prompts), batch))
    began = time.perf_counter()
    failed = [score for scores in backend.stream(batches) for score in scores if not isinstance(score, Score)]
    seconds = time.perf_counter() - began
    if failed:
        sys.exit(f"{len(failed)} of {len(prompts)} prompts have no score, the first: {failed[0]}")
    return seconds


def once(kind: str, way: str, fake: Server, prompts: Sequence[Prompt], options: argparse.Namespace) -> dict[str, float]:
    """Measure one way."""
    before = fake.computed_tokens()
    if way == "loop":
        seconds = loop(kind, fake.url, prompts)
    else:
        settings = ServerOptions(concurrency=options.slots if way == "given" else None, timeout_s=60)
        with closing(open_backend(kind, fake.url, settings)) as backend:
            seconds = through_backend(backend, prompts, options.batch)
    return {"seconds": seconds, "computed_tokens": fake.computed_tokens() - before}


def measure(kind: str, prompts: Sequence[Prompt], options: argparse.Namespace) -> dict[str, Any]:
    """Measure all ways in turn, several times."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with server(kind, options) as fake:
        for _ in range(options.repeats):
            for way in WAYS:
                runs[way].append(once(kind, way, fake, prompts, options))
    ideal = ideal_seconds(kind, prompts, options)
    ways = {}
    for way, measured in runs.items():
        seconds = statistics.median(run["seconds"] for run in measured)
        ways[way] = {
            "seconds": [run["seconds"] for run in measured],
            "requests_per_second": len(prompts) / seconds,
            "share_of_ideal": ideal / seconds,
            "computed_tokens": [run["computed_tokens"] for run in measured],
        }
    return {"ideal_seconds": ideal, "ways": ways}


def main() -> None:
    """Measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=["ollama", "openai", "all"], default="all")
    parser.add_argument("--slots", type=int, default=4, help="requests that the server computes at once")
    parser.add_argument("--request-ms", type=float, default=20.0)
    parser.add_argument("--token-ms", type=float, default=0.5)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--claims", type=int, default=8, help="of each document")
    parser.add_argument("--words", type=int, default=200, help="of a document")
    parser.add_argument("--order", choices=["scattered", "grouped"], default="grouped")
    parser.add_argument("--batch", type=int, default=64, help="prompts that the backend is given at once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="JSON")
    options = parser.parse_args()

    prompts = build_prompts(options)
    kinds = ["ollama", "openai"] if options.server == "all" else [options.server]
    report = {
        "settings": {name: value for name, value in vars(options).items() if name not in ("server", "out")},
        "servers": {kind: measure(kind, prompts, options) for kind in kinds},
    }
    show(report, len(prompts))
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def show(report: dict[str, Any], requests: int) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    settings = report["settings"]
    print(
        f"fake servers with {settings['slots']} slots, {settings['request_ms']:g} ms a request, "
        f"{settings['token_ms']:g} ms a token"
    )
    print(
        f"{requests} requests about {settings['documents']} documents, {settings['order']}; medians of "
        f"{settings['repeats']}"
    )
    table = Table("server", "asked")
    for heading in ("seconds", "requests/s", "of the ideal", "tokens computed"):
        table.add_column(heading, justify="right")
    names = {
        "loop": "one after another",
        "given": f"this package, {settings['slots']} at once",
        "found": "this package, as many as help",
    }
    for kind, one in report["servers"].items():
        for way, measured in one["ways"].items():
            table.add_row(
                kind,
                names[way],
                f"{statistics.median(measured['seconds']):.2f}",
                f"{measured['requests_per_second']:.1f}",
                f"{measured['share_of_ideal']:.0%}",
                f"{statistics.median(measured['computed_tokens']):,.0f}",
            )
        table.add_row(kind, "ideal", f"{one['ideal_seconds']:.2f}", f"{requests / one['ideal_seconds']:.1f}", "", "")
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
