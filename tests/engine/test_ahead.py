import threading

import pytest

from minicheck_eval.engine.ahead import run_ahead


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "run-ahead"]


def test_items_come_in_order():
    """Whatever runs ahead, the items and their order are those of the iterable."""
    assert list(range(200)) == list(run_ahead(range(200)))
    assert [] == list(run_ahead([]))
    assert not threads()


def test_only_a_few_items_are_made_ahead():
    """The source is read no further than the bound, and one item that waits to be handed over."""
    made = []
    third = threading.Event()

    def source():
        for i in range(100):
            made.append(i)
            if i == 3:
                third.set()
            yield i

    items = run_ahead(source(), most=2)
    assert 0 == next(items)
    assert third.wait(10)
    assert [0, 1, 2, 3] == made
    items.close()
    assert not threads()


def test_a_failure_comes_out_where_its_item_would_have():
    """What the source raises reaches whoever waits, after the items before it."""

    def source():
        yield 1
        raise KeyError("gone")

    items = run_ahead(source())
    assert 1 == next(items)
    with pytest.raises(KeyError, match="gone"):
        next(items)
    assert not threads()


def test_closing_ends_the_thread():
    """An iterator that is dropped leaves no thread, also where the source waits for room."""
    items = run_ahead(iter(int, 1), most=1)
    next(items)
    items.close()
    assert not threads()
