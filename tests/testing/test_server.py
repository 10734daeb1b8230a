import threading
import time

import httpx
import pytest

from minicheck_eval.testing import FakeOllama, FakeOpenAI, Faults

ASK = {"model": "bespoke-minicheck", "prompt": "?", "stream": False}


def in_thread(server, outcomes, text):
    body = ASK | {"prompt": text}

    def post():
        try:
            outcomes.append(
                httpx.post(f"{server.root}/api/generate", json=body, trust_env=False, timeout=30).status_code
            )
        except httpx.TransportError as error:
            outcomes.append(type(error).__name__)

    thread = threading.Thread(target=post)
    thread.start()
    return thread


@pytest.mark.parametrize("settings", [{"faults": Faults(hang=1.0)}, {"seconds_per_request": 30}])
def test_closing_ends_what_hangs_and_what_waits(settings):
    """Requests that hang, compute or wait for a slot end at once when the server closes."""
    outcomes = []
    with FakeOllama(lambda _: 1.0, **settings) as server:
        threads = [in_thread(server, outcomes, f"{i}") for i in range(5)]
        while len(server.requests) < 5:
            time.sleep(0.001)
        began = time.perf_counter()
    assert 2 > time.perf_counter() - began
    for thread in threads:
        thread.join()
    assert 5 == len(outcomes)
    assert {"ReadError", "RemoteProtocolError"} >= set(outcomes)


def test_closing_leaves_no_thread():
    """Idle connections that clients keep open are ended too."""
    before = threading.active_count()
    with httpx.Client(trust_env=False) as client, FakeOpenAI(lambda _: 1.0) as server:
        client.get(f"{server.url}/models")
        assert before < threading.active_count()
        server.__exit__(None, None, None)
        assert before == threading.active_count()


def test_a_failing_answer_is_seen():
    """The client gets status 500, and the exception is raised where the server is left."""

    def answer(text):
        raise ZeroDivisionError(text)

    server = FakeOllama(answer).__enter__()
    response = httpx.post(f"{server.url}/api/generate", json=ASK, trust_env=False)
    assert (500, {"error": "ZeroDivisionError('?')"}) == (response.status_code, response.json())
    with pytest.raises(ZeroDivisionError):
        server.__exit__(None, None, None)


def test_requests_are_logged():
    """Their bodies and headers are there to look at, in the order of their arrival."""
    with FakeOllama(lambda _: 1.0) as server, httpx.Client(trust_env=False) as client:
        client.get(f"{server.url}/api/version")
        client.post(f"{server.url}/api/generate", json=ASK, headers={"X-Own": "a"})
        client.post(f"{server.url}/api/generate", content=b"{")
        assert ["/api/version", "/api/generate"] == [asked.path for asked in server.requests]
        assert [ASK] == server.asked_for("/api/generate")
        assert "a" == server.requests[1].headers["x-own"]


def test_one_connection_serves_many_requests_quickly():
    """A connection is kept, and a small answer is not held back on its way."""
    with FakeOllama(lambda _: 1.0) as server, httpx.Client(trust_env=False) as client:
        url = f"{server.url}/api/generate"
        client.post(url, json=ASK)
        seconds = []
        for _ in range(20):
            began = time.perf_counter()
            client.post(url, json=ASK)
            seconds.append(time.perf_counter() - began)
        assert 0.02 > min(seconds)
