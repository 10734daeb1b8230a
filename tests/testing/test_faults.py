import json
import threading
import time
from dataclasses import fields

import httpx
import pytest

from minicheck_eval.errors import BadInput
from minicheck_eval.testing import FakeOllama, FakeOpenAI, Faults

KINDS = [one.name for one in fields(Faults) if one.type == "float" and one.name != "slow_s"]


def ask(server, text, timeout=5.0):
    body = {"model": "bespoke-minicheck", "prompt": text, "stream": False, "logprobs": True}
    return httpx.post(f"{server.url}/api/generate", json=body, trust_env=False, timeout=timeout)


BROKEN = {
    httpx.ReadTimeout: "hang",
    httpx.ReadError: "reset",
    httpx.RemoteProtocolError: "torn_body",
    json.JSONDecodeError: "half_json",
}


def failing(server, text):
    """What a client meets, in a word."""
    try:
        answer = ask(server, text, timeout=0.5)
        body = answer.json()
    except tuple(BROKEN) as error:
        return BROKEN[type(error)]
    if answer.status_code == 503:
        return "burst_503"
    if "error" in body:
        return "midstream_error"
    if "logprobs" not in body:
        return "empty_reply" if body["response"] == "" else "no_logprobs"
    return "prose" if body["response"] not in ("Yes", "No") else None


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"slow", "silent_cut"}))
def test_each_fault_is_what_its_name_says(kind):
    """Faults of the wire pass after as many times as were asked for; those of the model last."""
    with FakeOllama(lambda _: 1.0, faults=Faults(**{kind: 1.0}, times=2)) as server:
        lasts = kind in ("no_logprobs", "empty_reply", "prose")
        assert [kind, kind, kind if lasts else None] == [failing(server, "?") for _ in range(3)]


def test_a_slow_answer_is_overtaken():
    """It is right, and it comes after one that was asked for later."""
    with FakeOllama(lambda _: 1.0, faults=Faults(slow=0.5, slow_s=0.8, seed=1)) as server:
        order = []
        slow = next(t for t in map(str, range(99)) if server.faults.of(chatml(t)) == "slow")
        quick = next(t for t in map(str, range(99)) if server.faults.of(chatml(t)) is None)
        first = threading.Thread(target=lambda: order.append((slow, ask(server, slow).json()["response"])))
        first.start()
        while not server.requests:
            time.sleep(0.001)
        order.append((quick, ask(server, quick).json()["response"]))
        first.join()
        assert [(quick, "Yes"), (slow, "Yes")] == order


def chatml(text):
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def test_a_silent_cut_comes_whatever_the_request_says():
    """`truncate: false` is not heeded; a prompt that fits is left alone."""
    with FakeOllama(lambda _: 0.0, faults=Faults(silent_cut=1.0)) as server:
        body = {"model": "bespoke-minicheck", "stream": False, "truncate": False, "options": {"num_ctx": 256}}
        found = {
            size: httpx.post(f"{server.url}/api/generate", json=body | {"prompt": "x" * size}, trust_env=False).json()
            for size in (400, 4000)
        }
        assert (114, 131) == tuple(found[size]["prompt_eval_count"] for size in (400, 4000))


def test_prompts_are_hit_by_their_text():
    """As many as the rates say, each by one fault, the same ones in every run; another seed hits others."""
    prompts = [f"prompt {i}" for i in range(4000)]
    faults = Faults(reset=0.1, prose=0.2)
    found = [faults.of(prompt) for prompt in prompts]
    assert found == [Faults(reset=0.1, prose=0.2).of(prompt) for prompt in prompts]
    assert found != [Faults(seed=1, reset=0.1, prose=0.2).of(prompt) for prompt in prompts]
    assert 300 < found.count("reset") < 500
    assert 650 < found.count("prose") < 950
    assert {"reset", "prose", None} == set(found)


@pytest.mark.parametrize("rates", [{"reset": 1.5}, {"hang": -0.1}, {"reset": 0.6, "prose": 0.6}])
def test_wrong_rates_are_refused(rates):
    """A share lies between 0 and 1, and so does their sum."""
    with pytest.raises(BadInput, match="rates of faults"):
        Faults(**rates)


def test_faults_meet_openai_servers_too():
    """They are written in the shape of that protocol."""
    with FakeOpenAI(lambda _: 1.0, faults=Faults(burst_503=1.0)) as server:
        body = {"model": "judge", "messages": [{"role": "user", "content": "?"}]}
        first, second = (httpx.post(f"{server.url}/chat/completions", json=body, trust_env=False) for _ in range(2))
        assert (503, "server busy") == (first.status_code, first.json()["error"]["message"][:11])
        assert 200 == second.status_code
