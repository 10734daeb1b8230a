"""A recorder that dies at any one step of its writing: nothing that was on the disk is lost."""

import os
from itertools import count
from pathlib import Path

import pytest

from minicheck_eval.scoring import PromptTemplate
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape
from minicheck_eval.tape.verify import problems
from minicheck_eval.testing import FakeBackend

TEMPLATE = PromptTemplate("Document: {document}\n", "Claim: {claim}", system="Judge.")
STEPS = ((os, "fsync"), (Path, "replace"), (Path, "unlink"))


class DiedError(BaseException):
    """Stands for the end of the process: nothing catches it, and nothing is tidied up that a kill would leave."""


def record(folder, claims, support):
    """Record claims in batches, each of which is on the disk when the next begins; yield how many are."""
    tape = TapeBackend(Tape.record(folder, TapeHeader(model="fake")), Mode.RECORD, FakeBackend(lambda _: support))
    for start in range(0, claims, 10):
        tape.score([TEMPLATE.fill("document", str(claim)) for claim in range(start, start + 10)])
        yield start + 10
    tape.close()


def replayed(folder, claims):
    tape = TapeBackend(Tape.open(folder), Mode.REPLAY_ONLY)
    return [getattr(score, "support", None) for score in tape.score([TEMPLATE.fill("document", c) for c in claims])]


def recorded_until(step, folder, monkeypatch):
    """Record thirty claims, and die before the `step`th step of writing; return how many were told to be recorded."""
    steps = count()

    def dying(real):
        def do(*arguments, **options):
            if next(steps) == step:
                raise DiedError
            return real(*arguments, **options)

        return do

    told = 0
    with monkeypatch.context() as patched:
        for owner, name in STEPS:
            patched.setattr(owner, name, dying(getattr(owner, name)))
        try:
            for told in record(folder, 30, 0.9):  # noqa: B007 - the last one counts
                pass
        except DiedError:
            return told
    return None


@pytest.mark.parametrize("before", [0, 20])
def test_dying_at_any_step_loses_nothing(tmp_path, monkeypatch, before):
    """Whichever write is the last, what was told to be recorded is replayed, and going on ends with the same bytes."""
    calm = tmp_path / "calm"
    assert [10, 20, 30] == list(record(calm, 30, 0.9))
    for step in count():
        folder = tmp_path / f"step-{step}"
        list(record(folder, before, 0.9))
        told = recorded_until(step, folder, monkeypatch)
        if told is None:
            break
        known = max(told, before)
        if known:
            assert [0.9] * known == replayed(folder, map(str, range(known)))
            assert [] == [text for is_severe, text in problems(folder) if is_severe]
        list(record(folder, 30, 0.9))
        files = [{path.name: path.read_bytes() for path in at.glob("*.json*")} for at in (calm, folder)]
        assert files[0] == files[1]
    # A sync for each batch, and three steps for each file that is replaced.
    assert step > 20


def test_what_is_told_to_be_recorded_was_synced(tmp_path, monkeypatch):
    """A batch is on the disk before the next one is asked, so that a machine that loses its power loses none."""
    synced = []
    real = os.fsync
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda stream: synced.append(os.fstat(stream).st_ino) or real(stream))
        for told in record(tmp_path / "tape", 30, 0.9):
            journal = (tmp_path / "tape" / "new.jsonl").stat().st_ino
            assert told // 10 == synced.count(journal)
