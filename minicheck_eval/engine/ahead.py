"""Prepare what comes next while the device works: an iterator run ahead in a thread, through a bounded queue."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from queue import Empty, Queue
from threading import Event, Thread
from typing import TypeVar

__all__ = ["run_ahead"]

Item = TypeVar("Item")


class _End:
    """Stands behind the last item, with the exception that ended them, if one did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def run_ahead(items: Iterable[Item], most: int = 2) -> Generator[Item, None, None]:
    """Yield the items in order, up to `most` of them made ahead of need in a thread.

    An exception of the iterable comes out where its item would have; closing the iterator ends the thread.
    """
    queue: Queue[Item | _End] = Queue(most)
    stop = Event()
    thread = Thread(target=_fill, args=(items, queue, stop), name="run-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stop.set()
        # A thread that waits for room gets it, sees the sign and ends.
        while thread.is_alive():
            try:
                queue.get(timeout=0.01)
            except Empty:
                thread.join(timeout=0.01)


def _fill(items: Iterable[Item], queue: Queue[Item | _End], stop: Event) -> None:
    try:
        for item in items:
            queue.put(item)
            if stop.is_set():
                return
        queue.put(_End())
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to who asked for the items
        queue.put(_End(error))
