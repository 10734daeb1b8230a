"""Run passes side by side on a CPU, one thread of the processor for each: none waits for another within a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

__all__ = ["SideBySide"]

Asked = TypeVar("Asked")
Found = TypeVar("Found")


class SideBySide:
    """A map over passes, in order; as many threads as PyTorch would use within one pass."""

    def __init__(self) -> None:
        self._threads = torch.get_num_threads()
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self, run: Callable[[Asked], Found], passes: Sequence[Asked]) -> Iterable[Found]:
        """Return what `run` returns for each pass."""
        if self._threads == 1 or len(passes) < self._threads:
            # One pass alone is faster with all threads inside it.
            return map(run, passes)
        self._pool = self._pool or _started(self._threads)
        return self._pool.map(run, passes)


def _started(threads: int) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(threads, thread_name_prefix="pass")
    barrier = Barrier(threads)
    list(pool.map(_use_one_thread, [barrier] * threads))
    # What a thread sets is also the count of threads that are yet to come.
    torch.set_num_threads(threads)
    return pool


def _use_one_thread(barrier: Barrier) -> None:
    # PyTorch sets a new thread's count at its first question about it; after that it stays as set here.
    torch.get_num_threads()
    torch.set_num_threads(1)
    barrier.wait()
