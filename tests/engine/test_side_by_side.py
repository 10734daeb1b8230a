import threading

import pytest
import torch

from minicheck_eval.engine.side_by_side import SideBySide


@pytest.fixture
def three_threads():
    """Let PyTorch use three threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_passes_run_in_threads_of_one_each(three_threads):
    """Each pass has one thread of the processor, results keep their order, and PyTorch's own count is as before."""
    over = SideBySide()
    found = list(over(lambda n: (n, threading.current_thread().name, torch.get_num_threads()), range(9)))
    assert list(range(9)) == [n for n, _, _ in found]
    assert all(name.startswith("pass") and count == 1 for _, name, count in found)
    assert 3 == torch.get_num_threads()
    other = []
    thread = threading.Thread(target=lambda: other.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert [3] == other


def test_few_passes_use_all_threads_within(three_threads):
    """Where there are fewer passes than threads, each uses them all."""
    found = list(SideBySide()(lambda _: (threading.current_thread().name, torch.get_num_threads()), [1, 2]))
    assert [(threading.current_thread().name, 3)] * 2 == found
