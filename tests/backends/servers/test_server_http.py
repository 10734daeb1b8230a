import itertools
import logging
import socket
import struct
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from minicheck_eval.backends.servers import http as server_http
from minicheck_eval.backends.servers.http import Refused, Transport, Unanswered, is_this_machine
from minicheck_eval.errors import BadInput

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def connect():
    """Make transports whose waits are noted and not waited."""
    made = []

    def make(url, **more):
        waits = []
        transport = Transport(url, **{"timeout_s": 5, "sleep": waits.append, **more})
        transport.waits = waits
        made.append(transport)
        return transport

    yield make
    for transport in made:
        transport.close()


def in_turn(*answers):
    """Give one answer after the other, the last for ever."""
    left = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda asked: answer(asked) if callable(answer := next(left)) else answer


def reset(asked):
    asked.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    asked.socket.shutdown(socket.SHUT_RDWR)


def half(asked):
    asked.socket.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"a": ')


TRANSIENT = {
    **{str(status): (status, {"error": "busy"}) for status in (408, 425, 429, 500, 502, 503, 504)},
    "reset": reset,
    "half a body": half,
    "half JSON": b'{"a": 1, "b',
    "no JSON": b"<html>Bad gateway</html>",
    "no object": [1, 2],
    "nothing": b"",
    "an error with a status of success": {"error": "the runner died"},
    "nested too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_what_may_pass_is_asked_again(serve, connect, fault):
    """After two failures the third answer counts, with waits that grow between them; all calls are counted."""
    server = serve(in_turn(fault, fault, {"a": 1}))
    transport = connect(server.url)
    answer = transport.post("/x", {"q": 1})
    assert ({"a": 1}, 3, 3) == (answer.value, answer.calls, transport.calls)
    assert [{"q": 1}] * 3 == [asked.body for asked in server.asked]
    assert 2 == len(transport.waits)
    first_s = 0.5 if fault == TRANSIENT["503"] or fault == TRANSIENT["429"] else 0.1
    assert first_s <= transport.waits[0] <= 1.5 * first_s
    assert 2 * first_s <= transport.waits[1] <= 2.5 * first_s
    assert 0 < answer.seconds == pytest.approx(transport.seconds)


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_what_does_not_pass_is_given_up(serve, connect, fault):
    """After five tries there is an error that says how often was asked, and what came last."""
    server = serve(lambda asked: fault(asked) if callable(fault) else fault)
    with pytest.raises(Unanswered, match=r"after 5 tries; the last time: ") as caught:
        connect(server.url).post("/x", {})
    assert 5 == len(server.asked)
    assert not caught.value.silent


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": "unknown option"}, "unknown option"),
        ({"error": {"message": "unknown option", "code": 400}}, "unknown option"),
        ({"message": "unknown option"}, "unknown option"),
        ({"detail": "unknown option"}, "unknown option"),
        ({"detail": [{"loc": ["body"]}]}, '{"detail": [{"loc": ["body"]}]}'),
        (b"unknown\n option", "unknown option"),
    ],
)
@pytest.mark.parametrize("status", [400, 401, 404, 413, 422])
def test_what_is_refused_is_not_asked_again(serve, connect, status, body, said):
    """A request that is wrong stays wrong; the server's words are found in the forms of all servers."""
    server = serve(lambda asked: (status, body))
    with pytest.raises(Refused, match="refused") as caught:
        connect(server.url).post("/x", {})
    assert (status, repr(said)) == (caught.value.status, caught.value.message)
    assert 1 == len(server.asked)


LLAMA_CPP = "request (402 tokens) exceeds the available context size (256 tokens), try increasing it"
VLLM = "This model's maximum context length is 4096 tokens. However, you requested 5001 tokens"
TGI = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"
SGLANG = "The input (5000 tokens) is longer than the model's context length (4096 tokens)."
LM_STUDIO = "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context"
TOO_LONG = {
    "llama.cpp": (400, {"error": {"code": 400, "message": LLAMA_CPP, "type": "exceed_context_size_error"}}),
    "vLLM": (400, {"error": {"message": VLLM, "type": "BadRequestError"}}),
    "OpenAI": (400, {"error": {"message": "Please shorten it", "code": "context_length_exceeded"}}),
    "TGI": (422, {"error": TGI}),
    "SGLang": (400, {"message": SGLANG}),
    "LM Studio": (200, {"error": LM_STUDIO}),
    "an accident": (500, {"error": "Context size has been exceeded."}),
}


@pytest.mark.parametrize("answer", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_a_prompt_that_is_too_long_is_not_sent_again(serve, connect, answer):
    """Whatever the status, the words of all servers for it are known."""
    server = serve(lambda asked: answer)
    with pytest.raises(Refused) as caught:
        connect(server.url).post("/x", {})
    assert caught.value.is_too_long
    assert 1 == len(server.asked)


def test_other_refusals_are_not_about_length(serve, connect):
    """An unknown option is no prompt that is too long, nor is a limit of tokens in a minute."""
    server = serve(in_turn((400, {"error": "top_logprobs must be between 0 and 20"})))
    with pytest.raises(Refused) as caught:
        connect(server.url).post("/x", {})
    assert not caught.value.is_too_long


@pytest.mark.parametrize(
    ("given", "low_s", "high_s"),
    [
        ("7", 7, 7),
        ("3600", 30, 30),
        ("-5", 0.5, 0.75),
        ("nan", 0.5, 0.75),
        ("soon", 0.5, 0.75),
        # With a name, since workers that collect the tests a second apart must find the same ones.
        pytest.param(format_datetime(datetime.now(UTC) + timedelta(hours=1)), 30, 30, id="in an hour"),
    ],
)
def test_the_server_says_when_to_ask_again(serve, connect, given, low_s, high_s):
    """Retry-After is kept to, up to half a minute; what is no time is passed over."""
    transport = connect(serve(in_turn((503, {}, {"Retry-After": given}), {})).url)
    transport.post("/x", {})
    assert low_s <= transport.waits[0] <= high_s
    assert 1 == transport.overloads


def test_a_server_that_hangs_is_asked_twice(serve, connect):
    """A request ends when its time is over, and is not tried for ever."""
    release = threading.Event()
    server = serve(lambda asked: release.wait(timeout=20) and None)
    start = time.monotonic()
    with pytest.raises(Unanswered, match=r"after 2 tries.*not done within 0\.1 s") as caught:
        connect(server.url, timeout_s=0.1).post("/x", {})
    assert 2 > time.monotonic() - start
    release.set()
    assert caught.value.silent


def test_a_server_that_dribbles_is_cut_off(serve, connect):
    """Bytes that keep coming do not prolong the time of a request."""
    stop = threading.Event()

    def dribble(asked):
        asked.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not stop.wait(timeout=0.02):
            asked.socket.sendall(b" ")

    start = time.monotonic()
    with pytest.raises(Unanswered, match="not done within"):
        connect(serve(dribble).url, timeout_s=0.2).post("/x", {})
    stop.set()
    assert 2 > time.monotonic() - start


def test_an_endless_answer_is_refused(serve, connect, monkeypatch):
    """What has more bytes than any reply fills no memory."""
    monkeypatch.setattr(server_http, "MOST_BYTES", 1000)
    with pytest.raises(Refused, match="more than 1,000 bytes"):
        connect(serve(lambda asked: {"a": "x" * 2000}).url).post("/x", {})


def test_nobody_there(connect):
    """A port where nothing listens is a silent server, named with its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(Unanswered, match=f"{url}/x after 5 tries.*no connection") as caught:
            connect(url).post("/x", {})
    assert caught.value.silent
    assert "see whether the server runs, and whether the address is right" == caught.value.hint


def test_a_key_is_sent_and_never_shown(serve, connect, caplog):
    """The key is in the header alone: not in errors, even if the server repeats it, nor in any log."""
    caplog.set_level(logging.DEBUG)
    server = serve(in_turn((401, {"error": f"the key {KEY} is wrong"}), (500, KEY.encode())))
    transport = connect(server.url, api_key=f" {KEY}\n")
    with pytest.raises(Refused) as refused:
        transport.post("/x", {})
    with pytest.raises(Unanswered) as unanswered:
        transport.post("/x", {})
    assert f"Bearer {KEY}" == server.asked[0].headers["Authorization"]
    shown = [
        str(refused.value),
        refused.value.body,
        refused.value.args,
        str(unanswered.value),
        transport,
        vars(transport)["_client"].headers,
    ]
    assert KEY not in repr(shown) + caplog.text
    assert "the key *** is wrong" in refused.value.message


@pytest.mark.parametrize("key", ["sk-\nabc", "sk-ключ"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key):
    """Line ends and letters beyond ASCII are an error that does not show the key."""
    with pytest.raises(BadInput, match="holds characters") as caught:
        Transport("http://127.0.0.1:1", timeout_s=1, api_key=key)
    assert "sk-" not in str(caught.value)


def test_redirections_are_not_followed(serve, connect):
    """A key is for one server, whatever that server says."""
    other = serve(lambda asked: {})
    server = serve(lambda asked: (307, b"", {"Location": f"{other.url}/x"}))
    with pytest.raises(Refused, match=f"307: look at {other.url}/x"):
        connect(server.url, api_key=KEY).post("/x", {})
    assert [] == other.asked


def test_proxies_are_not_for_this_machine(serve, connect, monkeypatch):
    """A proxy in the environment does not come between a program and its neighbour."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert {"a": 1} == connect(serve(lambda asked: {"a": 1}).url).get("/x")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.9", True),
        ("http://[::1]:1", True),
        ("http://0.0.0.0:1", True),
        ("http://a.localhost", True),
        ("http://10.0.0.1", False),
        ("https://localhost.example.org", False),
        ("http://127.0.0.1.nip.io", False),
    ],
)
def test_this_machine_is_known(url, expected):
    """Only addresses that never leave the machine count as it."""
    assert expected is is_this_machine(url)


def test_requests_start_at_a_rate(serve, connect):
    """Over all threads no more start in a second than is allowed; those that are repeated count too."""
    transport = connect(serve(in_turn((503, {}), {})).url, requests_per_s=1)
    threads = [threading.Thread(target=transport.post, args=("/x", {})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    # Five calls: the first at once, the others one second after the other; and one wait before the repetition.
    assert [1, 1, 2, 3, 4] == [round(wait + 0.3) for wait in sorted(transport.waits)]


def test_any_text_can_be_sent(serve, connect):
    """Half a surrogate pair, which JSON files may hold, becomes a question mark; all else arrives as it is."""
    server = serve(lambda asked: {})
    connect(server.url).post("/x", {"text": "a\ud800b\x00日本 😀"})
    assert {"text": "a?b\x00日本 😀"} == server.asked[0].body


def test_lists_can_be_got(serve, connect):
    """What is got may be any JSON, and an object with an error in it too."""
    server = serve(in_turn([1], {"error": "not one"}))
    transport = connect(server.url)
    assert [[1], {"error": "not one"}] == [transport.get("/a"), transport.get("/b")]
    assert ["GET", "GET"] == [asked.method for asked in server.asked]
