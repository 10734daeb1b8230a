import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.engine.ahead import run_ahead
from minicheck_eval.evaluators.once import score_once
from minicheck_eval.scoring import Failure, PromptTemplate, Score

TEMPLATE = PromptTemplate("{document}", " {claim}")


def prompt(number):
    return TEMPLATE.fill("document", f"claim {number}")


def answer(asked):
    number = int(asked.text.split()[-1])
    return Failure("too_long", asked.text) if number % 7 == 3 else number / 100


class Streaming(FakeBackend):
    """Reads two batches ahead in a thread, as the local backend does."""

    usage = None

    def stream(self, batches):
        for batch in run_ahead(batches):
            yield self.score(batch)


@given(st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=12), st.integers(0, 12), st.booleans())
def test_each_prompt_gets_its_answer(numbers, remembered, streams):
    """However little is remembered, and however far ahead batches are read, each place gets its own answer."""
    backend = (Streaming if streams else FakeBackend)(answer)
    batches = [[prompt(number) for number in batch] for batch in numbers]
    found = list(score_once(backend, iter(batches), remembered=remembered))
    assert [FakeBackend(answer).score(batch) for batch in batches] == found


@pytest.mark.parametrize("streams", [True, False])
def test_no_prompt_is_asked_twice(streams):
    """Pairs that come up again, in the same batch or a later one, are answered from memory."""
    backend = (Streaming if streams else FakeBackend)(answer)
    batches = [[prompt(1), prompt(2), prompt(1)], [prompt(2), prompt(4)], [], [prompt(1)]]
    list(score_once(backend, batches))
    assert [prompt(1), prompt(2), prompt(4)] == [asked for batch in backend.batches for asked in batch]


def test_a_failing_backend_ends_the_stream_and_its_thread():
    """What the backend raises comes out, and nothing keeps reading."""

    def fails(asked):
        if asked == prompt(5):
            raise OSError("gone")
        return 0.5

    answered = score_once(Streaming(fails), ([prompt(n)] for n in range(1000)))
    assert [[Score(0.5, 0.5, "No")]] * 5 == [next(answered) for _ in range(5)]
    with pytest.raises(OSError, match="gone"):
        next(answered)
    assert "run-ahead" not in {thread.name for thread in threading.enumerate()}
