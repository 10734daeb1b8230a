import random
import threading
import time
from collections import defaultdict
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.backends.servers import lanes as server_lanes
from minicheck_eval.backends.servers.lanes import Lanes
from minicheck_eval.errors import BackendError


def lanes(ask, concurrency=4, **more):
    return Lanes(ask, concurrency=concurrency, **{"stall_s": 30, **more})


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), max_size=12), max_size=12),
    st.sampled_from([None, 1, 2, 7]),
    st.randoms(use_true_random=False),
)
def test_answers_come_back_by_place(keys, concurrency, shaken):
    """Whatever ends first, every batch has its own answers in its own order, empty batches too."""
    number = count()
    batches = [[(key, (key, next(number))) for key in batch] for batch in keys]
    pauses = {item: shaken.choice([0, 0, 0.0005]) for batch in batches for _, item in batch}

    def ask(item):
        time.sleep(pauses[item])
        return ("answer", *item)

    expected = [[("answer", *item) for _, item in batch] for batch in batches]
    assert expected == list(lanes(ask, concurrency).stream(iter(batches)))


def test_one_key_goes_one_after_the_other():
    """Items of a key are asked in order and never side by side, over the borders of batches too; keys are parallel."""
    running, most, order, side_by_side = defaultdict(int), defaultdict(int), defaultdict(list), []
    shaken = random.Random(7)

    def ask(item):
        key, place = item
        running[key] += 1
        most[key] = max(most[key], running[key])
        side_by_side.append(sum(running.values()))
        order[key].append(place)
        time.sleep(shaken.choice([0.0, 0.001]))
        running[key] -= 1
        return item

    batches = [[(key, (key, 10 * batch + place)) for place in range(10) for key in "abcdef"] for batch in range(5)]
    list(lanes(ask).stream(batches))
    assert set(most.values()) == {1}
    assert all(places == sorted(places) and len(places) == 50 for places in order.values())
    assert 2 <= max(side_by_side) <= 4


def test_lanes_stay_busy_over_the_borders_of_batches():
    """While the one item of a batch is asked, the items of the next batches are."""
    together = threading.Barrier(4)  # passes only if four are asked at once
    batches = [[(number, number)] for number in range(8)]
    assert [[0]] * 8 == list(lanes(lambda _: together.wait(timeout=20) and 0).stream(batches))


def test_a_slow_item_does_not_let_memory_grow(monkeypatch):
    """Batches are read ahead up to a bound, empty ones too."""
    monkeypatch.setattr(server_lanes, "MOST_AHEAD", 50)
    release, read = threading.Event(), []

    def batches():
        for number in range(1000):
            read.append(number)
            yield [(number, number)] if number % 2 == 0 else []

    def ask(item):
        if item == 0:
            release.wait(timeout=20)
        return item

    stream = lanes(ask).stream(batches())
    threading.Timer(0.2, lambda: (seen.append(len(read)), release.set())).start()
    seen = []
    assert [0] == next(stream)
    assert 1 <= seen[0] <= 50
    assert 999 == len(list(stream))


def test_only_the_lanes_asked_for():
    """With one lane nothing is asked side by side."""
    running = threading.Lock()

    def ask(item):
        assert running.acquire(blocking=False)
        time.sleep(0.0005)
        running.release()
        return item

    batches = [[(n, n) for n in range(40)]]
    assert [list(range(40))] == list(lanes(ask, 1).stream(batches))


def test_what_ask_raises_reaches_the_reader():
    """An error that concerns all ends the stream, and no lane asks any further."""
    asked = []

    def ask(item):
        asked.append(item)
        if item == 5:
            raise BackendError("gone")
        return item

    with pytest.raises(BackendError, match="gone"):
        list(lanes(ask, 1).stream([[(0, n) for n in range(100)]]))
    assert [0, 1, 2, 3, 4, 5] == asked


def test_an_error_of_the_batches_comes_after_the_answers_before_it():
    """What was read before is answered and handed on first."""

    def batches():
        yield [("a", 1), ("b", 2)]
        raise OSError("the file ended")

    stream = lanes(lambda item: item).stream(batches())
    assert [1, 2] == next(stream)
    with pytest.raises(OSError, match="the file ended"):
        next(stream)


def test_a_server_that_is_silent_ends_the_stream():
    """If nothing is answered for as long as was allowed, there is an error that says so."""
    release = threading.Event()
    try:
        with pytest.raises(BackendError, match="no request was answered for 0 s, 2 are under way") as caught:
            list(lanes(lambda _: release.wait(timeout=20), stall_s=0.1).stream([[("a", 1), ("b", 2)]]))
    finally:
        release.set()
    assert "allow a request more time" in caught.value.hint


def test_a_slow_reader_is_no_stall():
    """Time that passes while nobody asks for answers does not count against the server."""
    now = [0.0]

    def batches():
        for number in range(5):
            now[0] += 1000
            yield [("a", number)]

    stream = lanes(lambda item: item, clock=lambda: now[0], stall_s=10).stream(batches())
    for expected in range(5):
        assert [expected] == next(stream)
        now[0] += 1000


def test_closing_does_not_wait_for_the_server():
    """Whoever stops reading goes on at once, although requests are under way."""
    begun, release = threading.Event(), threading.Event()

    def ask(item):
        if item == 0:
            begun.wait(timeout=20)
        else:
            begun.set()
            release.wait(timeout=20)
        return item

    stream = lanes(ask).stream([[(0, 0)], [(1, 1)], [(2, 2)]])
    try:
        assert [0] == next(stream)
        start = time.monotonic()
        stream.close()
        assert 1 > time.monotonic() - start
    finally:
        release.set()


def test_the_number_of_lanes_is_found():
    """Where it is not given it rises while that helps, and the lanes that are too many rest."""
    slots = threading.Semaphore(4)

    def ask(item):
        with slots:
            time.sleep(0.004)
        return item

    found = lanes(ask, None)
    batches = [[(n, n) for n in range(start, start + 20)] for start in range(0, 400, 20)]
    assert [item for batch in batches for _, item in batch] == [n for batch in found.stream(batches) for n in batch]
    assert found.count in (2, 4, 8)
