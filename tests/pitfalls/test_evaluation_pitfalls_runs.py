"""What users of evaluation tools have complained about: languages, speed and cost, networks, runs that were killed."""

import socket
import threading

import pytest

from minicheck_eval.contract import Outcome
from minicheck_eval.scoring import StreamingBackend
from minicheck_eval.testing import FakeBackend, FakeOllama, FakeOpenAI
from minicheck_eval.text import OwnRules

FACT = "The ferry leaves from pier four."


def test_pitfall_22_scripts_without_full_stops_or_spaces_have_claims(checker, about):
    """Japanese, Chinese, Arabic and Hindi answers are cut into sentences, and each is asked about."""
    answers = {
        "船は四番から出ます。切符は二ユーロです。": 2,
        "渡轮从四号码头出发。票价是两欧元！": 2,
        "تغادر العبارة من الرصيف الرابع. سعر التذكرة اثنان يورو.": 2,
        "नाव चौथे घाट से चलती है। टिकट दो यूरो का है।": 2,
    }
    for answer, count in answers.items():
        backend = FakeBackend(lambda _: 0.9)
        response = checker(backend).evaluate(about(FACT, answer))
        assert Outcome.PASS is response.outcome
        assert count == len(response.metadata["claims"])


def test_pitfall_28_a_batch_is_not_asked_one_by_one(opened, ask):
    """Requests of one batch are under way side by side: four meet at the server before one of them is answered."""
    met = threading.Barrier(4)

    def together(_):
        met.wait(timeout=10)
        return 0.9

    with FakeOllama(together, slots=4) as server:
        scores = opened(server, concurrency=4).score([ask(f"Document {i}", FACT) for i in range(8)])
        assert [pytest.approx(0.9)] * 8 == [score.support for score in scores]


@pytest.mark.parametrize("make", [FakeOllama, FakeOpenAI])
def test_pitfall_29_tokens_requests_and_seconds_are_counted(opened, ask, make):
    """What a run cost can be told: as the server counted it, repeated requests among them."""
    with make(lambda _: 0.9, seconds_per_request=0.01) as server:
        backend = opened(server)
        assert isinstance(backend, StreamingBackend)
        before = backend.usage
        backend.score([ask(FACT + " and so on" * 40, f"Claim {i}.") for i in range(5)])
        backend.reply([ask(FACT, FACT)])
        used = backend.usage.minus(before)
        assert 6 == used.prompts
        assert 5 * 150 < used.asked_tokens < 6 * 400
        assert 6 <= used.calls
        assert 6 * 0.01 <= used.seconds


def test_pitfall_30_nothing_but_the_named_server_is_connected_to(opened, ask, monkeypatch):
    """No telemetry, no update check, no second server."""
    connected = set()
    connect = socket.socket.connect

    def watched(self, address):
        connected.add(address[:2])
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    with FakeOllama(lambda _: 0.9) as server:
        opened(server).score([ask(FACT, FACT)])
        assert {("127.0.0.1", int(server.url.rpartition(":")[2]))} == connected


def test_pitfall_31_texts_are_split_without_a_network(no_network, tmp_path, monkeypatch):
    """Sentences are found in an empty home and without a download."""
    monkeypatch.setenv("HOME", str(tmp_path))
    pieces = OwnRules().claims(f"{FACT} It costs 2.50 euros, says Dr. Smith.", whole=False)
    assert [FACT, "It costs 2.50 euros, says Dr. Smith."] == [text for _, text in pieces]
    assert [] == list(tmp_path.iterdir())
