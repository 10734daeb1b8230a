import json
import math
import threading
import time

import httpx
import pytest

from minicheck_eval.errors import BadInput
from minicheck_eval.testing import FakeModel, FakeOllama

ASK = {"model": "bespoke-minicheck", "stream": False}
TOLD = {"logprobs": True, "top_logprobs": 20, "options": {"num_ctx": 2048, "num_predict": 1}}


@pytest.fixture
def ask():
    """Post to a route of a server; return the status and the body."""
    with httpx.Client(trust_env=False, timeout=5) as client:

        def post(server, text, route="chat", **more):
            said = {"messages": [{"role": "user", "content": text}]} if route == "chat" else {"prompt": text}
            answer = client.post(f"{server.url}/api/{route}", json=ASK | said | more)
            return answer.status_code, answer.json()

        post.get = lambda server, route: client.get(server.url + route).json()
        post.client = client
        yield post


def support(entry):
    return sum(math.exp(one["logprob"]) for one in entry["top_logprobs"] if one["token"].lower() == "yes")


def test_a_number_is_the_probability_of_yes(ask):
    """The candidates of the first token add up to P(yes), over spellings; there are as many as were asked for."""
    with FakeOllama(lambda text: 0.9 if "Paris" in text else 0.0) as server:
        status, body = ask(server, "Ada lives in Paris.", **TOLD)
        assert (200, "Yes", True, "stop") == (status, body["message"]["content"], body["done"], body["done_reason"])
        [first] = body["logprobs"]
        assert pytest.approx(0.9) == support(first)
        assert (20, "Yes", list(b"Yes")) == (len(first["top_logprobs"]), first["token"], first["bytes"])
        _, body = ask(server, "Ada lives in Rome.", **TOLD)
        assert "No" == body["message"]["content"]
        assert -3.4e38 > min(one["logprob"] for one in body["logprobs"][0]["top_logprobs"])


def test_words_are_said_token_by_token_and_cut_at_the_limit(ask):
    """A reply in words ends where num_predict says; zero is no limit; `done_reason` tells which it was."""
    with FakeOllama(lambda _: "Yes, it does.") as server:
        _, body = ask(server, "?", options={"num_predict": 2})
        assert ("Yes,", "length", 2) == (body["message"]["content"], body["done_reason"], body["eval_count"])
        for most in (0, -1, 100):
            _, body = ask(server, "?", options={"num_predict": most})
            assert ("Yes, it does.", "stop") == (body["message"]["content"], body["done_reason"])
    with FakeOllama(lambda _: "") as server:
        _, body = ask(server, "?", **TOLD)
        assert ("", False) == (body["message"]["content"], "logprobs" in body)


def test_the_default_is_a_stream_of_lines(ask):
    """Without `stream` each token has its line, and the last line has the numbers."""
    with FakeOllama(lambda _: "Yes indeed") as server:
        said = {"model": "bespoke-minicheck", "prompt": "?", "logprobs": True}
        lines = ask.client.post(f"{server.url}/api/generate", json=said).text.splitlines()
        *tokens, end = map(json.loads, lines)
        assert ["Yes", " indeed"] == [line["response"] for line in tokens]
        assert [False, False, True] == [line["done"] for line in (*tokens, end)]
        assert "prompt_eval_count" in end


@pytest.mark.parametrize(
    ("era", "logprobs", "window"), [("0.5.0", False, 2048), ("0.12.10", False, 4096), ("0.12.11", True, 4096)]
)
def test_eras_differ_in_logprobs_and_the_default_window(ask, era, logprobs, window):
    """Log-probabilities come with 0.12.11; a model is loaded with the default window of its era."""
    with FakeOllama(lambda _: 1.0, era=era) as server:
        assert {"version": era} == ask.get(server, "/api/version")
        _, body = ask(server, "?", logprobs=True)
        assert logprobs == ("logprobs" in body)
        [loaded] = ask.get(server, "/api/ps")["models"]
        assert window == loaded["context_length"]


@pytest.mark.parametrize(
    ("era", "more", "status", "count"),
    [
        ("0.12.5", {"truncate": False}, 200, 256),
        ("0.24.0", {}, 200, 256),
        ("0.24.0", {"truncate": False}, 400, "exceeds the context length"),
        ("0.33.0", {}, 200, 131),
        ("0.33.0", {"shift": False}, 400, "longer than the context length currently available"),
        ("0.33.0", {"truncate": False}, 400, "exceed_context_size_error"),
    ],
)
def test_eras_differ_in_prompts_that_are_too_long(ask, era, more, status, count):
    """A prompt is cut in silence to the window, or to half of it, or is refused; a cut keeps the end."""
    seen = []
    with FakeOllama(lambda text: seen.append(text) or 0.2, era=era) as server:
        text = "FACT " + "and so on " * 200 + "CLAIM"
        got, body = ask(server, text, options={"num_ctx": 256}, **more)
        assert status == got
        if status == 200:
            assert count == body["prompt_eval_count"]
            assert "CLAIM<|im_end|>" in seen[0]
            assert "FACT" not in seen[0]
        else:
            assert count in body["error"]
            assert [] == seen


def test_llama_servers_refusal_holds_exact_counts(ask):
    """From 0.30 on the refusal is the engine's JSON inside a string."""
    with FakeOllama(lambda _: 1.0) as server:
        _, body = ask(server, "x" * 4000, truncate=False, options={"num_ctx": 256})
        error = json.loads(body["error"])["error"]
        assert (1014, 256) == (error["n_prompt_tokens"], error["n_ctx"])
        _, body = ask(server, "x" * 4000, options={"num_ctx": 4096})
        assert 1014 == body["prompt_eval_count"]


def test_a_model_with_its_own_chat_template_refuses_in_chats_alone(ask):
    """From 0.30 on such a model gives 400 in /api/chat by default, and cuts in /api/generate."""
    with FakeOllama(lambda _: 1.0, models={"bespoke-minicheck": FakeModel(template="")}) as server:
        long = {"text": "x" * 4000, "options": {"num_ctx": 256}}
        assert 400 == ask(server, **long)[0]
        assert 200 == ask(server, **long, route="generate")[0]


@pytest.mark.parametrize(
    ("era", "counts"),
    [
        ("0.4.7", [(114, None), (None, None)]),
        ("0.24.0", [(114, None), (114, None)]),
        ("0.30.0", [(114, None), (2, None)]),
        ("0.30.1", [(114, None), (114, None)]),
        ("0.35.0", [(114, 0), (114, 112)]),
    ],
)
def test_eras_differ_in_how_they_count_what_the_cache_gave(ask, era, counts):
    """The length of a prompt is told with it, without it, or not at all."""
    with FakeOllama(lambda _: 1.0, era=era) as server:
        bodies = [ask(server, "x" * 400)[1] for _ in range(2)]
        assert counts == [(b.get("prompt_eval_count"), b.get("prompt_eval_cached_count")) for b in bodies]


def test_the_store_is_described(ask):
    """Tags have digests, show has the rest, names may leave out `latest`, and a swap changes the digest."""
    model = FakeModel(digest="a" * 64, weights="b" * 64, system="Judge.", quantization="Q8_0", context=1000)
    with FakeOllama(lambda _: 1.0, models={"judge": model}) as server:
        [tag] = ask.get(server, "/api/tags")["models"]
        assert ("judge:latest", "a" * 64, "Q8_0") == (tag["name"], tag["digest"], tag["details"]["quantization_level"])
        shown = ask.client.post(f"{server.url}/api/show", json={"model": "judge"}).json()
        assert f"sha256-{'b' * 64}" in shown["modelfile"]
        assert ("Judge.", 1000) == (shown["system"], shown["model_info"]["internlm2.context_length"])
        server.swap("judge", "c" * 64)
        assert "c" * 64 == ask.get(server, "/api/tags")["models"][0]["digest"]
        status, body = ask(server, "?")
        assert (404, {"error": "model 'bespoke-minicheck' not found"}) == (status, body)


def test_models_are_loaded_and_loaded_again(ask):
    """An empty request loads; another window loads again, never beyond what the model knows; an empty one unloads."""
    with FakeOllama(lambda _: 1.0, models={"bespoke-minicheck": FakeModel(context=5000)}) as server:
        _, body = ask(server, "", route="generate", options={"num_ctx": 2048})
        assert ("load", "") == (body["done_reason"], body["response"])
        for window in (2048, 2048, 8192, 2048):
            ask(server, "?", options={"num_ctx": window})
        assert [2048, 5000, 2048] == [window for _, window in server.loads]
        assert "unload" == ask(server, "", route="generate", options={"num_ctx": 2048}, keep_alive=0)[1]["done_reason"]
        assert [] == ask.get(server, "/api/ps")["models"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"top_logprobs": 21}, "top_logprobs must be between 0 and 20"),
        ({"think": True}, "does not support thinking"),
        ({"raw": True, "system": "x"}, "raw mode does not support"),
    ],
)
def test_wrong_requests_are_refused(ask, more, message):
    """Status 400 says why, in Ollama's words."""
    with FakeOllama(lambda _: 1.0) as server:
        status, body = ask(server, "?", route="generate", **more)
        assert 400 == status
        assert message in body["error"]
    with pytest.raises(BadInput, match="no version"):
        FakeOllama(lambda _: 1.0, era="new")


def test_slots_remember_the_prompt_before(ask):
    """Claims of one document in a row compute it once; another document in between makes the slot forget it."""
    orders = {"grouped": "aaabbb", "mixed": "ababab"}
    computed = {}
    for name, order in orders.items():
        with FakeOllama(lambda _: 1.0) as server:
            for i, document in enumerate(order):
                ask(server, document * 1000 + f"Claim {i}")
            computed[name] = server.computed_tokens
    assert 2 * 250 < computed["grouped"] < 2 * 300
    assert 6 * 250 < computed["mixed"]


def test_no_more_requests_than_slots_compute_at_once(ask):
    """The others wait, and all are answered."""
    with FakeOllama(lambda _: 1.0, slots=2, seconds_per_request=0.05) as server:
        answers = []
        threads = [threading.Thread(target=lambda i=i: answers.append(ask(server, f"{i}")[0])) for i in range(8)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 4 * 0.05 <= time.perf_counter() - began
        assert [200] * 8 == answers


def test_a_cold_start_has_a_short_queue(ask):
    """More requests than the queue holds, while the model is being loaded, get status 503; later ones wait."""
    with FakeOllama(lambda _: 1.0, seconds_per_load=0.3, max_queue=3) as server:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(ask(server, "?"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [200] * 3 + [503] * 5 == sorted(status for status, _ in answers)
        assert 1 == len(server.loads)
        assert 200 == ask(server, "?")[0]
