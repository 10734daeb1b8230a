import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.engine.execute import Executor, PassTooLargeError, Unscored
from minicheck_eval.engine.plan import TokenPrompt

ids = st.lists(st.integers(0, 3), min_size=1, max_size=8).map(tuple)
prompts = st.lists(st.builds(TokenPrompt, ids, ids), max_size=30)


class Device:
    """A device that holds so many tokens at once, and answers each prompt with its own tokens."""

    def __init__(self, memory):
        self.memory = memory
        self.sizes = []

    def __call__(self, one):
        self.sizes.append(one.tokens)
        if one.tokens > self.memory:
            raise PassTooLargeError(f"{one.tokens} > {self.memory}")
        answers = []
        for leaf in one.leaves:
            tokens, place = (), leaf.node
            while place >= 0:
                tokens, place = one.nodes[place].ids + tokens, one.nodes[place].parent
            answers.append(tokens)
        return answers


@given(prompts, st.integers(1, 60), st.integers(1, 60), st.integers(2, 16))
@settings(deadline=None)
def test_each_prompt_gets_its_own_answer_whatever_the_memory(asked, budget, memory, window):
    """Passes that do not fit are split until they do; only what does not fit alone, or no window, has no answer."""
    results = Executor(Device(memory), budget_tokens=budget, window_tokens=window).score(asked)
    assert len(asked) == len(results)
    for prompt, result in zip(asked, results, strict=True):
        if len(prompt) > window:
            assert isinstance(result, Unscored)
            assert "too_long" == result.reason
        elif len(prompt) > memory:
            assert isinstance(result, Unscored)
            assert "out_of_memory" == result.reason
        else:
            assert prompt.prefix + prompt.suffix == result


def test_the_smaller_budget_is_kept():
    """After a pass did not fit, no later pass is planned as large."""
    device = Device(40)
    executor = Executor(device, budget_tokens=1000, window_tokens=100)
    asked = [TokenPrompt((i,), (i, i + 1, i + 2)) for i in range(50)]
    executor.score(asked)
    assert 40 >= executor.budget_tokens
    device.sizes.clear()
    executor.score(asked)
    assert 40 >= max(device.sizes)


def test_passes_are_no_longer_stretched_when_memory_ends():
    """A long prefix with many claims that does not fit is split until each claim is alone with it."""
    device = Device(90)
    executor = Executor(device, budget_tokens=60, window_tokens=100)
    asked = [TokenPrompt((1,) * 80, (i, i, i)) for i in range(2, 12)]
    assert [(1,) * 80 + (i, i, i) for i in range(2, 12)] == executor.score(asked)
    assert 90 < max(device.sizes)
    device.sizes.clear()
    executor.score(asked)
    assert [83] * 10 == device.sizes


def test_other_errors_are_not_hidden():
    """Only a lack of memory is answered by smaller passes."""

    def broken(_):
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        Executor(broken, budget_tokens=10, window_tokens=10).score([TokenPrompt((1,), (2,))])


@given(st.lists(prompts, max_size=6), st.integers(1, 60), st.integers(1, 60))
@settings(deadline=None)
def test_a_stream_gives_each_batch_its_answers(batches, budget, memory):
    """Batches come back in order, each as if it had been asked alone, also where passes had to be split."""
    executor = Executor(Device(memory), budget_tokens=budget, window_tokens=16)
    found = list(executor.stream(iter(batches)))
    assert [Executor(Device(memory), budget_tokens=1, window_tokens=16).score(batch) for batch in batches] == found
    assert sum(map(len, batches)) == executor.usage.prompts


@given(prompts, st.integers(1, 60), st.integers(1, 60))
@settings(deadline=None)
def test_passes_may_run_side_by_side(asked, budget, memory):
    """Threads change neither an answer nor its place, also where passes had to be split."""
    expected = Executor(Device(memory), budget_tokens=budget, window_tokens=16).score(asked)
    with ThreadPoolExecutor(3) as pool:
        several = Executor(Device(memory), budget_tokens=budget, window_tokens=16, over_passes=pool.map)
        assert expected == several.score(asked)


def test_a_stream_holds_few_batches():
    """A million batches could pass: no more than a few are made before the first is done."""
    made = 0

    def batches():
        nonlocal made
        while True:
            made += 1
            yield [TokenPrompt((1,), (made,))]

    stream = Executor(Device(100), budget_tokens=50, window_tokens=16).stream(batches())
    for _ in range(20):
        next(stream)
    assert made <= 20 + 4
    stream.close()


def test_usage_counts_what_was_shared():
    """Asked tokens count each prompt whole; computed tokens count a shared prefix once."""
    executor = Executor(Device(100), budget_tokens=50, window_tokens=16)
    executor.score([TokenPrompt((1, 2, 3), (4,)), TokenPrompt((1, 2, 3), (5,)), TokenPrompt((1, 2, 3), (5,))])
    assert (3, 12, 5) == (executor.usage.prompts, executor.usage.asked_tokens, executor.usage.computed_tokens)


def test_usage_counts_each_pass_and_its_seconds():
    """A pass that did not fit is a call as well, and passes side by side count their seconds each."""

    def run(one):
        time.sleep(0.01)
        return Device(8)(one)

    with ThreadPoolExecutor(4) as pool:
        executor = Executor(run, budget_tokens=12, window_tokens=16, over_passes=pool.map)
        executor.score([TokenPrompt((n, n, n), (1, 2, 3)) for n in range(4)])
    # Two passes of two prompts that do not fit, and each prompt alone.
    assert 6 == executor.usage.calls
    assert 0.06 <= executor.usage.seconds < 60


def test_the_budget_shrinks_once_for_passes_planned_alike():
    """Several passes of one size that do not fit halve the budget once, and so do plans that were made before."""
    device = Device(8)
    executor = Executor(device, budget_tokens=12, window_tokens=16)
    batches = [[TokenPrompt((b, n, 1), (n, 2, 3)) for n in range(8)] for b in range(6)]
    for batch, found in zip(batches, executor.stream(iter(batches)), strict=True):
        assert [prompt.prefix + prompt.suffix for prompt in batch] == found
    assert executor.budget_tokens in (5, 6)


def test_a_prompt_that_had_no_room_beside_others_is_tried_alone():
    """What fits alone is scored, whatever ran beside it when it did not fit."""
    crowded = [True]

    def run(one):
        if crowded.pop() if crowded else False:
            raise PassTooLargeError("others were here")
        return [0.5]

    executor = Executor(run, budget_tokens=4, window_tokens=16)
    assert [0.5, 0.5] == executor.score([TokenPrompt((1, 2, 3, 4, 5), (6,)), TokenPrompt((2, 2, 3, 4, 5), (6,))])
