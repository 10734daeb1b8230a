"""What the tests of known pitfalls share: servers that behave as real ones do, and backends that ask them."""

from contextlib import ExitStack

import pytest

from minicheck_eval.backends.servers.ollama_backend import open_ollama
from minicheck_eval.backends.servers.openai_backend import open_openai
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.contract import Document, EvaluationRequest
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.evaluators.prompts import MINICHECK


@pytest.fixture
def opened():
    """Open the model on a fake server; a wait before a request is repeated takes no time."""
    with ExitStack() as stack:

        def open_backend(server, **options):
            settings = ServerOptions(**{"timeout_s": 10.0, **options})
            if hasattr(server, "era"):
                backend = open_ollama(Address("ollama", server.url, "bespoke-minicheck"), settings)
            else:
                backend = open_openai(Address("openai", server.url, server.model), settings)
            backend.transport._sleep = lambda _: None
            stack.callback(backend.close)
            return backend

        yield open_backend


@pytest.fixture
def ask():
    """Write a question about a document, as MiniCheck is asked on servers."""
    return MINICHECK.fill


@pytest.fixture
def filler():
    """Return a text of so many tokens of the fakes, which has nothing to do with anything."""
    return lambda tokens: " and so on" * (tokens * 4 // 10)


@pytest.fixture
def checker():
    """Check facts over a backend, as MiniCheck does."""

    def make(backend, chunk_tokens=500):
        decision = DecisionConfig(threshold=0.5)
        return FactCheckingEvaluator(backend, template=MINICHECK, chunk_tokens=chunk_tokens, decision=decision)

    return make


@pytest.fixture
def about():
    """Write a request: one document and an answer that was given about it."""
    return lambda document, answer: EvaluationRequest("", [Document(document)], answer)
