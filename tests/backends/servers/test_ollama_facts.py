"""What a server tells of a model is read once, and what does not fit is said before anything is asked."""

import hashlib

import pytest

from minicheck_eval.backends.servers.http import Transport
from minicheck_eval.backends.servers.ollama_catalogue import Catalogue
from minicheck_eval.backends.servers.ollama_facts import read_model
from minicheck_eval.errors import BackendError, BadInput, ModelUnavailable
from minicheck_eval.testing import FakeModel, FakeOllama
from minicheck_eval.testing.server import Answered


class Telling(FakeOllama):
    """A server whose description of a model is changed by a function."""

    def __init__(self, change, path="/api/show", **more):
        super().__init__(lambda _: 1.0, **more)
        self.change = change
        self.path = path

    def respond(self, asked):
        answered = super().respond(asked)
        return Answered.of(self.change(answered.value)) if asked.path == self.path else answered


def read(server, model="bespoke-minicheck", window_tokens=None):
    transport = Transport(server.url, timeout_s=5, sleep=lambda _: None)
    catalogue = Catalogue(server.url, timeout_s=5, sleep=lambda _: None)
    try:
        return read_model(catalogue, transport, model, window_tokens)
    finally:
        catalogue.close()
        transport.close()


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_everything_that_makes_the_scores_is_recorded():
    """Version, quantization, window, and the digests of manifest, weights, template, instruction and parameters."""
    model = FakeModel(
        digest="ab" * 32, weights="cd" * 32, template="{{ .Prompt }}", system="Judge.", parameters="stop x"
    )
    with FakeOllama(lambda _: 1.0, models={"judge": model}) as server:
        found = read(server, "judge")
    facts = found.facts
    assert ("judge:latest", "ab" * 32, "ollama 0.33.0") == (facts.model, facts.revision, facts.server)
    assert ("Q4_K_M", 32768, True, ()) == (facts.quantization, facts.window_tokens, facts.logprobs, facts.notes)
    texts = {"template": "{{ .Prompt }}", "system": "Judge.", "parameters": "stop x"}
    expected = {"manifest": "ab" * 32, "weights": "cd" * 32} | {part: sha256(text) for part, text in texts.items()}
    assert expected == facts.digests
    assert found.digest == "ab" * 32


@pytest.mark.parametrize(
    ("version", "logprobs", "notes"),
    [("0.12.5", False, 2), ("0.12.10", False, 1), ("0.12.11", True, 0), ("0.30.0", True, 1), ("0.33.0-rc2", True, 0)],
)
def test_what_the_version_lacks_is_noted(version, logprobs, notes):
    """Versions without probabilities, and those that cut whatever is asked, say so in the facts."""
    with FakeOllama(lambda _: 1.0, era=version) as server:
        facts = read(server).facts
    assert (logprobs, notes) == (facts.logprobs, len(facts.notes))


def test_the_window_can_be_lowered_but_not_raised():
    """A smaller window is taken as given; a larger one than the model was trained for is refused."""
    with FakeOllama(lambda _: 1.0, models={"m": FakeModel(context=8192)}) as server:
        assert 8192 == read(server, "m").facts.window_tokens
        assert 5000 == read(server, "m", 5000).facts.window_tokens
        with pytest.raises(BadInput, match=r"9,000 tokens, and 'm:latest' was trained for 8,192"):
            read(server, "m", 9000)


def test_a_window_that_is_not_told_is_small():
    """Without the trained context a careful number is used and noted, or the one that was given."""
    with Telling(lambda show: {**show, "model_info": {}}) as server:
        facts = read(server).facts
        assert 4096 == facts.window_tokens
        assert "does not tell the window" in facts.notes[0]
        facts = read(server, window_tokens=10_000).facts
        assert (10_000, ()) == (facts.window_tokens, facts.notes)


def test_models_that_cannot_judge_are_refused():
    """A model of another server and one that only embeds are refused with the reason."""
    with (
        Telling(lambda show: {**show, "remote_host": "https://ollama.com"}) as server,
        pytest.raises(BadInput, match="runs at"),
    ):
        read(server)
    with (
        Telling(lambda show: {**show, "capabilities": ["embedding"]}) as server,
        pytest.raises(BadInput, match="for embedding"),
    ):
        read(server)


def test_a_model_that_thinks_is_noted():
    """The first token of a thinking model may be a thought."""
    with Telling(lambda show: {**show, "capabilities": ["completion", "thinking"]}) as server:
        assert "thinks" in read(server).facts.notes[0]


def test_old_descriptions_are_enough():
    """A server that tells little of its models is usable: what is missing is left out."""
    with Telling(lambda show: {"model_info": show["model_info"]}) as server:
        found = read(server)
    assert "weights" not in found.facts.digests
    assert "" == found.facts.quantization
    assert 2048 < found.own_bytes  # the template is not shown, and may be long


def test_what_is_no_ollama_server_is_told():
    """A version or a description of an unknown form ends with words and a hint."""
    with Telling(lambda _: {"hello": "world"}, "/api/version") as server:
        with pytest.raises(BackendError, match="does not tell a version") as caught:
            read(server)
        assert "openai:" in caught.value.hint
    with Telling(lambda _: {"template": 7}) as server, pytest.raises(BackendError, match="unknown form: template"):
        read(server)


def test_a_missing_model_is_unavailable():
    """A model that is not there ends before its description is asked for."""
    with FakeOllama(lambda _: 1.0) as server:
        with pytest.raises(ModelUnavailable):
            read(server, "other")
        assert [] == server.asked_for("/api/show")
