import math

import httpx
import pytest

from minicheck_eval.testing import FakeOpenAI, Faults


def ask(server, text="?", key=None, **more):
    body = {"model": "judge", "messages": [{"role": "user", "content": text}], **more}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = httpx.post(f"{server.url}/chat/completions", json=body, headers=headers, trust_env=False)
    return answer.status_code, answer.json()


def test_a_completion_has_candidates_and_usage():
    """The first token has its candidates, and the tokens of prompt and reply are counted."""
    with FakeOpenAI(lambda _: 0.25) as server:
        status, body = ask(server, "x" * 400, max_tokens=1, logprobs=True, top_logprobs=5)
        [choice] = body["choices"]
        assert (200, "No", "stop") == (status, choice["message"]["content"], choice["finish_reason"])
        likely = {one["token"]: math.exp(one["logprob"]) for one in choice["logprobs"]["content"][0]["top_logprobs"]}
        assert 5 == len(likely)
        assert pytest.approx(0.25) == likely["Yes"] + likely["yes"]
        assert (102, 1) == (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"])


def test_words_are_cut_at_the_limit():
    """A reply that is longer than max_tokens says so."""
    with FakeOpenAI(lambda _: '{"score": 4}') as server:
        assert "stop" == ask(server)[1]["choices"][0]["finish_reason"]
        assert "length" == ask(server, max_tokens=2)[1]["choices"][0]["finish_reason"]


@pytest.mark.parametrize(
    ("kind", "window", "error"),
    [
        ("vllm", ("max_model_len", 100), {"type": "BadRequestError", "code": 400, "param": None}),
        ("llama.cpp", ("meta", {"n_ctx": 100}), {"type": "exceed_context_size_error", "n_prompt_tokens": 1002}),
    ],
)
def test_kinds_of_servers_tell_their_window(kind, window, error):
    """The list of models holds it, and a prompt beyond it is refused in the words of that server."""
    with FakeOpenAI(lambda _: 1.0, kind=kind, context=100) as server:
        [model] = httpx.get(f"{server.url}/models", trust_env=False).json()["data"]
        assert ("judge", window[1]) == (model["id"], model[window[0]])
        status, body = ask(server, "x" * 4000)
        assert 400 == status
        assert error.items() <= body["error"].items()
        assert "100" in body["error"]["message"]


def test_what_a_server_does_not_do_is_refused():
    """Refusals are status 400 and name what is not done; log-probabilities may also be left out in silence."""
    with FakeOpenAI(lambda _: 1.0, most_logprobs=5, formats=(), newer_limit=True) as server:
        assert "max allowed: 5" in ask(server, logprobs=True, top_logprobs=20)[1]["error"]["message"]
        assert "max_completion_tokens" in ask(server, max_tokens=1)[1]["error"]["message"]
        assert "response_format" == ask(server, response_format={"type": "json_schema"})[1]["error"]["param"]
        assert 200 == ask(server, max_completion_tokens=1, logprobs=True, top_logprobs=5)[0]
        assert 404 == ask(server, model="another")[0]
    with FakeOpenAI(lambda _: 1.0, most_logprobs=None) as server:
        assert ask(server, logprobs=True, top_logprobs=20)[1]["choices"][0]["logprobs"] is None


def test_a_key_is_asked_for():
    """Without it, or with another one, the status is 401."""
    with FakeOpenAI(lambda _: 1.0, api_key="secret") as server:
        assert [401, 401, 200] == [ask(server, key=key)[0] for key in (None, "other", "secret")]


def test_a_silent_cut_shows_in_the_usage():
    """The model sees the end of the prompt, and fewer tokens are counted than were sent."""
    seen = []
    with FakeOpenAI(lambda text: seen.append(text) or 0.0, context=100, faults=Faults(silent_cut=1.0)) as server:
        status, body = ask(server, "FACT" + "x" * 4000 + "CLAIM")
        assert (200, 50) == (status, body["usage"]["prompt_tokens"])
        assert seen[0].endswith("CLAIM")
        assert "FACT" not in seen[0]
