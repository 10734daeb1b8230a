"""Models on an Ollama server are found by name, through Ollama's client, in whatever environment."""

import os
import subprocess
import sys

import pytest

from minicheck_eval.backends.servers.ollama_catalogue import Catalogue, Loaded, full_name
from minicheck_eval.errors import BackendError, ModelUnavailable
from minicheck_eval.testing import FakeModel, FakeOllama
from minicheck_eval.testing.server import Answered

HEX = "ab" * 32


class Moody(FakeOllama):
    """A server whose lists fail a few times first."""

    def __init__(self, *failures, **more):
        super().__init__(lambda _: 1.0, **more)
        self.failures = list(failures)

    def respond(self, asked):
        return self.failures.pop(0) if self.failures else super().respond(asked)


@pytest.fixture
def catalogue():
    opened = []

    def make(server, **more):
        url = server if isinstance(server, str) else server.url
        opened.append(Catalogue(url, timeout_s=5, sleep=lambda _: None, **more))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bespoke-minicheck", "bespoke-minicheck:latest"),
        ("bespoke-minicheck:7b", "bespoke-minicheck:7b"),
        ("host:5000/me/model", "host:5000/me/model:latest"),
        ("hf.co/org/repo:Q4_K_M", "hf.co/org/repo:Q4_K_M"),
    ],
)
def test_a_name_without_a_tag_means_latest(name, expected):
    """The tag is what stands behind the colon of the last part."""
    assert expected == full_name(name)


def test_a_model_has_the_digest_of_its_manifest(catalogue):
    """The digest is found with and without the tag, in any case, and without a prefix."""
    models = {"Bespoke-MiniCheck": FakeModel(digest=f"sha256:{HEX}")}
    with FakeOllama(lambda _: 1.0, models=models) as server:
        for name in ("bespoke-minicheck", "Bespoke-MiniCheck:latest"):
            assert catalogue(server).digest(name) == HEX


def test_a_model_that_is_not_there_is_named_with_those_that_are(catalogue):
    """The hint says how to get the model, and which there are, at most ten."""
    with FakeOllama(lambda _: 1.0, models={f"m{i:02}": FakeModel() for i in range(12)}) as server:
        with pytest.raises(ModelUnavailable, match="no model 'minicheck:7b'") as caught:
            catalogue(server).digest("minicheck:7b")
        assert "ollama pull minicheck:7b" in caught.value.hint
        assert "m00:latest, m01:latest" in caught.value.hint
        assert "m11" not in caught.value.hint
    with FakeOllama(lambda _: 1.0, models={}) as server, pytest.raises(ModelUnavailable) as caught:
        catalogue(server).digest("minicheck")
    assert "it has none" in caught.value.hint


def test_what_is_loaded_is_told_with_its_room(catalogue):
    """Nothing is loaded at first; then the digest and num_ctx of what is."""
    import httpx

    with FakeOllama(lambda _: 1.0, models={"m": FakeModel(digest=HEX)}) as server:
        assert catalogue(server).loaded("m") is None
        ask = {"model": "m", "prompt": "", "options": {"num_ctx": 8192}}
        httpx.post(f"{server.url}/api/generate", json=ask, trust_env=False)
        assert Loaded(HEX, 8192) == catalogue(server).loaded("m")


def test_failures_that_pass_are_repeated(catalogue):
    """A busy server, a half-written list and a reset connection are asked again, and a refusal is not."""
    failures = (
        Answered.of({"error": "busy"}, 503),
        Answered.of({"models": []}, wire="half_json"),
        Answered(wire="reset"),
    )
    with Moody(*failures, models={"m": FakeModel(digest=HEX)}) as server:
        assert catalogue(server).digest("m") == HEX
        assert 4 == len(server.requests)
    with Moody(Answered.of({"error": "no"}, 401), Answered.of({"error": "no"}, 401)) as server:
        with pytest.raises(BackendError, match="said 401") as caught:
            catalogue(server).digest("m")
        assert "--api-key-env" in caught.value.hint
        assert 1 == len(server.requests)


def test_failures_that_stay_end_in_words(catalogue):
    """A server that stays busy, one that is none of Ollama's, and no server at all are told apart."""
    with Moody(*[Answered.of({"error": "busy"}, 503)] * 9) as server, pytest.raises(BackendError, match=r"503: .*busy"):
        catalogue(server).digest("m")
    with Moody(*[Answered.of(["a list"])] * 9) as server, pytest.raises(BackendError, match="does not speak as Ollama"):
        catalogue(server).digest("m")
    with Moody(*[Answered(wire="reset")] * 9) as server, pytest.raises(BackendError, match="no answer from"):
        catalogue(server).digest("m")
    with FakeOllama(lambda _: 1.0) as server:
        gone = server.url
    with pytest.raises(BackendError, match="no Ollama server answers") as caught:
        catalogue(gone).digest("m")
    assert "ollama serve" in caught.value.hint


def test_only_the_key_that_was_meant_is_sent(catalogue, monkeypatch):
    """OLLAMA_API_KEY is not sent by the client on its own account."""
    monkeypatch.setenv("OLLAMA_API_KEY", "of-the-environment")
    with FakeOllama(lambda _: 1.0) as server:
        catalogue(server).digest("bespoke-minicheck")
        catalogue(server, api_key="ours").digest("bespoke-minicheck")
        assert [None, "Bearer ours"] == [asked.headers.get("authorization") for asked in server.requests]


def test_redirects_are_not_followed(catalogue):
    """A server that sends one elsewhere is an error: keys and texts are for one server."""
    with Moody(Answered.of({}, 302)) as server:
        with pytest.raises(BackendError, match="said 302"):
            catalogue(server, api_key="ours").digest("bespoke-minicheck")
        assert 1 == len(server.requests)


def test_proxies_of_the_environment_do_not_come_between(catalogue, monkeypatch):
    """A server on this machine is asked directly, whatever proxies there are."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with FakeOllama(lambda _: 1.0) as server:
        assert catalogue(server).digest("bespoke-minicheck")


def test_a_proxy_that_the_client_cannot_use_is_told(tmp_path):
    """Ollama's client cannot even be imported with a proxy of another kind: the hint names the variables."""
    program = (
        "from minicheck_eval.backends.servers.ollama_catalogue import Catalogue\n"
        "from minicheck_eval.errors import BadInput\n"
        "try: Catalogue('http://127.0.0.1:1', timeout_s=1)\n"
        "except BadInput as error: print(error, error.hint)\n"
    )
    env = {**os.environ, "ALL_PROXY": "gopher://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert "cannot start with this environment" in done.stdout, done.stderr
    assert "ALL_PROXY" in done.stdout
