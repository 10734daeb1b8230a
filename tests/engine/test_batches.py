from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.engine.batches import BatchExecutor, batches
from minicheck_eval.engine.execute import PassTooLargeError, Unscored
from minicheck_eval.scoring import Usage

inputs = st.lists(st.lists(st.integers(0, 3), max_size=12).map(tuple), max_size=60)


class Device:
    """A device that holds so many tokens at once, and answers each input with its own tokens."""

    def __init__(self, memory):
        self.memory = memory
        self.seen = []

    def __call__(self, batch):
        if batch.tokens > self.memory:
            raise PassTooLargeError(f"{batch.tokens} > {self.memory}")
        self.seen.append(batch)
        return list(batch.rows)


@given(inputs, st.integers(1, 60))
def test_each_input_is_in_exactly_one_batch(asked, budget):
    """An input that is asked twice has one row; nothing is lost and nothing is made up."""
    rows = Counter(ids for batch in batches(asked, budget_tokens=budget) for ids in batch.rows)
    assert dict.fromkeys(asked, 1) == rows


@given(inputs, st.integers(1, 60))
def test_a_batch_keeps_to_the_budget_with_its_padding(asked, budget):
    """Only a batch of one single input may exceed the budget, and little of the budget is padding."""
    for batch in batches(asked, budget_tokens=budget):
        assert batch.tokens - sum(map(len, batch.rows)) <= budget / 16
        assert batch.width == max(map(len, batch.rows))
        assert batch.tokens <= budget or 1 == len(batch.rows)


@given(inputs, st.integers(1, 60))
def test_lengths_never_grow_from_batch_to_batch(asked, budget):
    """Inputs stand sorted by length, so that each is padded to no more than its neighbours need."""
    lengths = [len(ids) for batch in batches(asked, budget_tokens=budget) for ids in batch.rows]
    assert sorted(lengths, reverse=True) == lengths


@given(inputs, st.integers(1, 60), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_change_the_batches(asked, budget, shuffler):
    """The same inputs in another order are computed in the same batches."""
    shuffled = list(asked)
    shuffler.shuffle(shuffled)
    assert batches(asked, budget_tokens=budget) == batches(shuffled, budget_tokens=budget)


@given(inputs, st.integers(1, 60), st.integers(1, 60), st.integers(1, 10))
@settings(deadline=None)
def test_each_input_gets_its_own_answer_whatever_the_memory(asked, budget, memory, window):
    """Batches that do not fit are cut until they do; only what does not fit alone, or no window, has no answer."""
    device = Device(memory)
    results = BatchExecutor(device, budget_tokens=budget, window_tokens=window).score(asked)
    assert len(asked) == len(results)
    for ids, result in zip(asked, results, strict=True):
        if not 0 < len(ids) <= window:
            assert isinstance(result, Unscored)
            assert "too_long" == result.reason
        elif len(ids) > memory:
            assert isinstance(result, Unscored)
            assert "out_of_memory" == result.reason
        else:
            assert ids == result
    answered = Counter(ids for batch in device.seen for ids in batch.rows)
    assert {1} >= set(answered.values()), "nothing is computed twice"


@given(st.lists(inputs, max_size=8), st.integers(1, 60))
@settings(deadline=None)
def test_a_stream_gives_what_scoring_gives(groups, budget):
    """Each group comes back with its own answers, in order, however groups go together."""
    executor = BatchExecutor(Device(30), budget_tokens=budget, window_tokens=10)
    alone = BatchExecutor(Device(30), budget_tokens=budget, window_tokens=10)
    assert [alone.score(group) for group in groups] == list(executor.stream(iter(groups)))


def test_small_groups_of_a_stream_go_together():
    """One case at a time would pad and waste passes; a stream fills its batches across groups, within bounds."""
    device = Device(1000)
    executor = BatchExecutor(device, budget_tokens=20, window_tokens=10)
    made = []

    def groups():
        for i in range(1000):
            made.append(i)
            yield [(i, i)]

    stream = executor.stream(groups())
    assert [(0, 0)] == next(stream)
    assert 160 >= len(made) > 20, "what is read ahead is bounded"
    assert [[(i, i)] for i in range(1, 1000)] == list(stream)
    assert {10} == {len(batch.rows) for batch in device.seen}


def test_usage_counts_what_was_asked_and_computed():
    """Repeated inputs are asked but not computed again; padding is computed; what fits no window is neither."""
    executor = BatchExecutor(Device(1000), budget_tokens=48, window_tokens=10)
    executor.score([(1,) * 9, (2,) * 7, (2,) * 7, (3,) * 11])
    usage = executor.usage
    assert Usage(prompts=4, asked_tokens=23, computed_tokens=18, calls=1, seconds=usage.seconds) == usage
    assert 0 < usage.seconds < 60


def test_inputs_of_one_length_fill_the_budget():
    """Where there is nothing to pad, a batch takes as many inputs as the budget holds."""
    sizes = [len(batch.rows) for batch in batches([(i, i) for i in range(25)], budget_tokens=21)]
    assert [10, 10, 5] == sizes


def test_the_smaller_budget_is_kept():
    """After a batch did not fit, no later batch is as large."""
    device = Device(40)
    executor = BatchExecutor(device, budget_tokens=1000, window_tokens=100)
    asked = [(i, i + 1, i + 2) for i in range(50)]
    assert asked == executor.score(asked)
    assert 40 >= executor.budget_tokens
    device.memory = 1000
    executor.score(asked)
    assert 40 >= max(batch.tokens for batch in device.seen)


def test_other_errors_are_not_hidden():
    """Only a lack of memory is answered by smaller batches."""

    def broken(_):
        raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        BatchExecutor(broken, budget_tokens=10, window_tokens=10).score([(1, 2)])


def test_groups_without_tokens_do_not_wait_for_ever():
    """Where nothing is left to ask, the answers come after few groups, though no batch is filled."""
    executor = BatchExecutor(Device(1000), budget_tokens=1000, window_tokens=10)
    made = []

    def groups():
        for _ in range(1000):
            made.append(())
            yield ()

    stream = executor.stream(groups())
    assert [] == next(stream)
    assert 100 > len(made)
    assert 999 == len(list(stream))


def test_groups_before_an_error_are_answered():
    """When the source breaks, what came before has its answers, and then the error comes out."""

    def groups():
        yield from ([(1, 2)], [(3,), (4,)])
        raise ValueError("a row that cannot be read")

    stream = BatchExecutor(Device(1000), budget_tokens=1000, window_tokens=10).stream(groups())
    assert [(1, 2)] == next(stream)
    assert [(3,), (4,)] == next(stream)
    with pytest.raises(ValueError, match="cannot be read"):
        next(stream)
