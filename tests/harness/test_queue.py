"""The order in which cases are judged."""

from itertools import pairwise
from random import Random

import pytest

from minicheck_eval.contract import Document
from minicheck_eval.errors import BadInput
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.queue import Queue

CASES = [Case(id=f"c{n}", documents=(Document(f"text {n % 3}", f"d{n}"),)) for n in range(10)]


def batches(cases, done=()):
    return [[case.id for case in batch] for batch in Queue(cases, 4).without(done)]


def test_cases_with_the_same_evidence_meet():
    """Cases come by what their documents say, each once, in batches that are full but for the last."""
    found = batches(CASES)
    assert [4, 4, 2] == [len(batch) for batch in found]
    order = [int(name[1:]) % 3 for batch in found for name in batch]
    assert 2 == sum(before != after for before, after in pairwise(order))
    assert {case.id for case in CASES} == {name for batch in found for name in batch}


def test_the_order_of_the_file_does_not_matter():
    """The same cases are judged in the same batches, however the file is sorted; ids keep the order of the file."""
    shuffled = Random(7).sample(CASES, len(CASES))
    assert batches(CASES) == batches(iter(shuffled))
    assert [case.id for case in shuffled] == Queue(shuffled, 4).ids


def test_what_is_done_is_left_out_and_batches_stay():
    """A resumed run asks about the same neighbours, and no batch is empty."""
    whole = batches(CASES)
    done = {*whole[0], whole[1][1]}
    assert [[name for name in whole[1] if name not in done], whole[2]] == batches(CASES, done)


def test_what_is_done_meanwhile_is_seen():
    """A batch is made when it is asked for."""
    done: set[str] = set()
    left = Queue(CASES, 4).without(done)
    done.update(case.id for case in next(left))
    done.update(batches(CASES)[1])
    assert batches(CASES)[2] == [case.id for case in next(left)]


def test_an_id_that_comes_twice_is_refused():
    """Two cases cannot have one record."""
    with pytest.raises(BadInput, match="the same id"):
        Queue([*CASES, CASES[0]], 4)
