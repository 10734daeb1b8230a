import math

import pytest

from minicheck_eval.backends.servers.openai_backend import open_openai
from minicheck_eval.backends.servers.openai_forms import is_cut
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.errors import BackendError, BadInput, IntegrityError, ModelUnavailable
from minicheck_eval.scoring import PromptTemplate, Reply, Score

TEMPLATE = PromptTemplate("{document}", "\nClaim: {claim}", system="Answer yes or no.")
PROMPTS = [TEMPLATE.fill("The sky is blue.", claim) for claim in ("0.9", "0.2")]
ENTRY = {"id": "judge", "object": "model", "owned_by": "vllm", "root": "org/judge", "max_model_len": 4096}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


class Server:
    """Answers as vLLM does, with the number after "Claim:" as P(yes); what is given stands in for a route."""

    def __init__(self, **routes):
        self.entry = dict(ENTRY)
        self.model = "judge"
        self.refuse = lambda body: None
        self.change = lambda body, value: value
        self.routes = {"/version": {"version": "0.11.0"}, **{f"/{name}": value for name, value in routes.items()}}

    def __call__(self, asked):
        if asked.path in self.routes:
            return self.routes[asked.path]
        if asked.path == "/v1/models":
            return {
                "object": "list",
                "data": [{"id": "other", "owned_by": "vllm"}, {**self.entry, "created": id(asked)}],
            }
        if asked.path != "/v1/chat/completions":
            return (404, {"detail": "Not Found"})
        return self.refuse(asked.body) or self.change(asked.body, self.completion(asked.body))

    def completion(self, body):
        text = body["messages"][-1]["content"]
        yes = float(text.rpartition("Claim: ")[2].split()[0]) if "Claim: " in text else 0.5
        top = [{"token": token, "logprob": math.log(p)} for token, p in ((" yes", yes), ("No", 0.99 - yes))]
        tokens = sum(len(message["content"].split()) for message in body["messages"]) + 20
        limit = body.get("max_tokens", body.get("max_completion_tokens"))
        logprobs = (
            {"content": [{**top[0], "top_logprobs": top[: body["top_logprobs"]]}]} if body.get("logprobs") else None
        )
        return {
            "model": self.model,
            "system_fingerprint": "fp_1",
            "choices": [{"message": {"content": "yes " * limit}, "finish_reason": "length", "logprobs": logprobs}],
            "usage": {
                "prompt_tokens": tokens,
                "completion_tokens": limit,
                "prompt_tokens_details": {"cached_tokens": 5},
            },
        }


@pytest.fixture
def opened(serve):
    """Open a backend on a server, and give both with the requests that came."""
    made = []

    def make(server=None, model="judge", **options):
        server = server or Server()
        running = serve(server)
        backend = open_openai(Address("openai", f"{running.url}/v1", model), ServerOptions(**options))
        made.append(backend)
        backend.transport._sleep = lambda _: None
        running.chats = lambda: [asked.body for asked in running.asked if asked.path == "/v1/chat/completions"]
        return backend, running

    yield make
    for backend in made:
        backend.close()


def test_scores_are_probabilities_of_the_first_token(opened):
    """One token is asked for, with its twenty likeliest alternatives; their probabilities are the score."""
    backend, running = opened()
    found = backend.score(PROMPTS)
    assert [(0.9, 0.09), (0.2, 0.79)] == [(round(score.support, 6), round(score.refute, 6)) for score in found]
    *_, asked = running.chats()
    assert {
        "model": "judge", "max_tokens": 1, "temperature": 0, "stream": False, "logprobs": True, "top_logprobs": 20,
        "messages": [
            {"role": "system", "content": "Answer yes or no."},
            {"role": "user", "content": "The sky is blue.\nClaim: 0.2"},
        ],
    } == asked  # fmt: skip
    usage = backend.usage
    assert (2, 60, 50, 0) == (usage.prompts, usage.asked_tokens, usage.computed_tokens, usage.reply_tokens)


def test_facts_of_vllm(opened):
    """The server's version, the window and whatever names the model are kept."""
    backend, _ = opened()
    facts = backend.facts
    assert ("judge", "judge", "vllm 0.11.0", 4096, True, ()) == (
        facts.model, facts.revision, facts.server, facts.window_tokens, facts.logprobs, facts.notes,
    )  # fmt: skip
    assert {"card"} == set(facts.digests)
    assert ("vllm 0.11.0", 4096) == (backend.name, backend.window_tokens)


@pytest.mark.parametrize(
    ("entry", "routes", "expected"),
    [
        ({"owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}, {}, 32768),
        (
            {"owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}},
            {"props": {"default_generation_settings": {"n_ctx": 2048}}},
            2048,
        ),
        (
            {"owned_by": "organization_owner"},
            {"api/v0/models": {"data": [{"id": "judge", "max_context_length": 32768, "loaded_context_length": 4096}]}},
            4096,
        ),
        ({"context_length": 16384}, {}, 16384),
        ({}, {}, 8192),
    ],
)
def test_the_window_is_found_where_each_server_tells_it(opened, entry, routes, expected):
    """The window of the loaded model comes before that of its training; where none is told it is said so."""
    server = Server(**routes)
    server.entry = {"id": "judge", **entry}
    backend, _ = opened(server)
    assert expected == backend.window_tokens
    assert ("does not tell its window" in str(backend.facts.notes)) is (expected == 8192)


def test_a_smaller_window_can_be_asked_for(opened):
    """What is asked for counts, but no more than the server has."""
    assert 512 == opened(window_tokens=512)[0].window_tokens
    with pytest.raises(BadInput, match="a window of 5000 tokens was asked for, the server has 4096"):
        opened(window_tokens=5000)


def test_a_model_that_is_not_there(opened):
    """The hint names the models that are."""
    with pytest.raises(ModelUnavailable, match="has no model 'jduge'") as caught:
        opened(model="jduge")
    assert caught.value.hint.endswith("judge, other")


def test_a_server_without_a_list(opened):
    """A server may have no list of models: then the question at opening tells whether it answers."""
    server = Server(**{"v1/models": (404, {"detail": "Not Found"})})
    backend, _ = opened(server)
    assert 0.9 == round(backend.score(PROMPTS)[0].support, 6)
    assert "lists no models" in str(backend.facts.notes)


def test_ollama_is_sent_to_its_own_route(opened):
    """Through this route it would cut long prompts without a word."""
    with pytest.raises(BadInput, match=r"Ollama server \(0.33.0\)") as caught:
        opened(Server(**{"api/version": {"version": "0.33.0"}}))
    assert "ollama:http://127.0.0.1" in caught.value.hint


def refusing(words, **limits):
    """Refuse, as servers do, what is above its limit, or there at all."""
    return lambda body: (
        (400, {"error": {"message": words}}) if any(body.get(n, 0) > m for n, m in limits.items()) else None
    )


@pytest.mark.parametrize(
    ("refuse", "expected"),
    [
        (refusing("top_logprobs must be at most 5", top_logprobs=5), {"top_logprobs": 5, "max_tokens": 1}),
        (refusing("logprobs are not supported", logprobs=False), {"max_tokens": 1}),
        (
            refusing("Use 'max_completion_tokens' instead of 'max_tokens'", max_tokens=0),
            {"top_logprobs": 20, "max_completion_tokens": 1},
        ),
    ],
)
def test_what_a_server_understands_is_found_at_opening(opened, refuse, expected):
    """Fewer candidates, or none, and the other name of the limit; nothing is tried again for each prompt."""
    server = Server()
    server.refuse = refuse
    backend, running = opened(server)
    before = len(running.chats())
    backend.score(PROMPTS)
    asked = running.chats()[before:]
    names = ("top_logprobs", "max_tokens", "max_completion_tokens")
    assert [expected] * 2 == [{name: body[name] for name in names if name in body} for body in asked]
    assert backend.facts.logprobs is ("top_logprobs" in expected)


def test_a_server_that_refuses_everything(opened):
    """Its own words come out."""
    server = Server()
    server.refuse = lambda body: (400, {"error": "the model is an embedding model"})
    with pytest.raises(BackendError, match="the model is an embedding model"):
        opened(server)


def without_logprobs(text):
    def change(body, value):
        value["choices"][0] |= {"logprobs": None, "message": {"content": text}}
        return value

    return change


def test_a_server_that_sends_no_probabilities(opened):
    """Where they are passed over in silence the facts say so, and no score is made up."""
    server = Server()
    server.change = without_logprobs("yes")
    backend, _ = opened(server)
    assert not backend.facts.logprobs
    assert all("no probabilities" in failure.message for failure in backend.score(PROMPTS))


def test_nothing_said_is_no_score_and_no_failure(opened):
    """A model that ends at once has said neither yes nor no."""
    server = Server()
    backend, _ = opened(server)
    server.change = without_logprobs(None)
    assert [Score(0.0, 0.0, "")] * 2 == backend.score(PROMPTS)


@pytest.mark.parametrize(
    "answer",
    [
        (
            400,
            {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested 5001"}},
        ),
        (400, {"error": {"message": "exceeds", "type": "exceed_context_size_error", "n_prompt_tokens": 402}}),
        (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
        (200, {"error": "Trying to keep the first 5000 tokens when context the overflows."}),
    ],
)
def test_a_prompt_that_is_too_long_fails_alone(opened, answer):
    """Whatever the server's words, the reason is known; the other prompt has its score."""
    server = Server()
    backend, running = opened(server)
    server.refuse = lambda body: answer if "0.2" in body["messages"][-1]["content"] else None
    score, failure = backend.score(PROMPTS)
    assert 0.9 == round(score.support, 6)
    assert "too_long" == failure.reason
    assert 3 == len(running.chats())


@pytest.mark.parametrize("counted", [3, 4096, 5000])
def test_a_prompt_that_was_cut_has_no_score(opened, counted):
    """A server that counts fewer tokens than there are words, or as many as it has room for, did not read it all."""
    server = Server()
    backend, _ = opened(server)

    def cut(body, value):
        value["usage"]["prompt_tokens"] = counted
        return value

    server.change = cut
    assert ["too_long"] * 2 == [failure.reason for failure in backend.score(PROMPTS)]


def test_what_is_cut_is_told_by_words():
    """Words of any script count once, since no tokenizer joins them."""
    hindi = [{"content": "हिन्दी भाषा है"}]
    assert not is_cut(3, hindi, 100)
    assert is_cut(2, hindi, 100)
    assert is_cut(100, hindi, 100)


def test_replies_hold_to_a_schema(opened):
    """The schema goes with the request; the reply says whether it came to its end."""
    backend, running = opened()
    assert [Reply("yes yes yes ", complete=False)] * 2 == backend.reply(
        PROMPTS, schema={"type": "object"}, most_tokens=3
    )
    *_, asked = running.chats()
    form = {"name": "reply", "schema": {"type": "object"}, "strict": True}
    assert {"type": "json_schema", "json_schema": form} == asked["response_format"]
    assert "logprobs" not in asked
    assert 4 == backend.usage.reply_tokens


@pytest.mark.parametrize("understood", ["json_object", None])
def test_a_server_that_knows_no_schema(opened, understood):
    """The next best way is taken, and once it is known no other is tried."""
    server = Server()
    backend, running = opened(server, concurrency=1)
    server.refuse = lambda body: (
        None
        if body.get("response_format", {}).get("type") == understood
        else (400, {"error": "unknown response_format"})
    )
    assert [Reply("yes ", complete=False)] * 2 == backend.reply(PROMPTS, schema={}, most_tokens=1)
    before = len(running.chats())
    backend.reply(PROMPTS, schema={}, most_tokens=1)
    assert [understood] * 2 == [body.get("response_format", {}).get("type") for body in running.chats()[before:]]


def test_one_prompt_that_is_refused_changes_nothing_for_the_others(opened):
    """If all forms of a request are refused it was the prompt, and the next one has its schema."""
    server = Server()
    backend, running = opened(server, concurrency=1)
    server.refuse = lambda body: (400, {"error": "flagged"}) if "0.9" in body["messages"][-1]["content"] else None
    failure, reply = backend.reply(PROMPTS, schema={})
    assert ("backend", True) == (failure.reason, "flagged" in failure.message)
    assert isinstance(reply, Reply)
    assert "json_schema" == running.chats()[-1]["response_format"]["type"]


def test_another_model_under_the_name_is_noticed(opened):
    """Scores stop when the server lists another model than at opening; times and random names do not matter."""
    server = Server()
    backend, _ = opened(server)
    assert 2 == len(backend.score(PROMPTS))
    server.entry["root"] = "org/judge-v2"
    with pytest.raises(IntegrityError, match="'judge' is no longer the model that was opened"):
        backend.score(PROMPTS)


def test_a_reply_in_another_name_is_noticed(opened):
    """The name in each reply is the one that the first reply had."""
    server = Server()
    backend, _ = opened(server)
    server.model = "judge-2026-11-30"
    with pytest.raises(IntegrityError, match="its replies name 'judge-2026-11-30' and not 'judge'"):
        backend.score(PROMPTS)


def test_a_named_key_is_sent(opened, monkeypatch):
    """It must be there; the usual one is not looked at."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    monkeypatch.setenv("JUDGE_KEY", "sk-named")
    _, running = opened(api_key_env="JUDGE_KEY")
    assert {"Bearer sk-named"} == {asked.headers.get("Authorization") for asked in running.asked}
    with pytest.raises(BadInput, match="NO_SUCH_KEY holds no key"):
        opened(api_key_env="NO_SUCH_KEY")


def test_the_usual_key_is_sent_to_this_machine(opened, monkeypatch):
    """Nobody else hears it there."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    _, running = opened()
    assert {"Bearer sk-usual"} == {asked.headers.get("Authorization") for asked in running.asked}


def test_a_wrong_key(opened):
    """The hint says how to give another."""
    with pytest.raises(BackendError, match="wants another key: 'no such key'") as caught:
        opened(Server(**{"v1/models": (401, {"error": "no such key"})}))
    assert "--api-key-env" in caught.value.hint


def test_an_address_is_needed():
    """There is no usual place for such a server."""
    with pytest.raises(BadInput, match="has no server"):
        open_openai(Address("openai", None, "judge"), ServerOptions())
