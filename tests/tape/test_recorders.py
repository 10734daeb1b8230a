"""Recorders that are killed, and recorders side by side: the tape stays whole and nothing is lost."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import minicheck_eval
from minicheck_eval.scoring import PromptTemplate
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape
from minicheck_eval.tape.verify import problems

PROGRAM = Path(__file__).with_name("recorder.py")
TEMPLATE = PromptTemplate("Document: {document}\n", "Claim: {claim}", system="Judge.")
KILLS = 6
CLAIMS = 1000


def start(folder, first, last):
    environment = {**os.environ, "PYTHONPATH": str(Path(minicheck_eval.__file__).parents[1])}
    command = [sys.executable, str(PROGRAM), str(folder), str(first), str(last)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def supports(folder, claims):
    tape = TapeBackend(Tape.open(folder), Mode.REPLAY_ONLY)
    asked = [TEMPLATE.fill(f"document {claim // 7}", str(claim)) for claim in claims]
    return [getattr(score, "support", None) for score in tape.score(asked)]


def severe(folder):
    return [text for is_severe, text in problems(folder) if is_severe]


@pytest.fixture
def killed():
    """Kill a recorder after it has told of some batches; return the last claim that it said was on the disk."""

    def killed(folder, batches):
        process = start(folder, 0, CLAIMS)
        told = [line for _, line in zip(range(batches), process.stdout, strict=False)]
        process.kill()
        process.wait()
        process.stdout.close()
        return int(told[-1])

    return killed


def test_a_recorder_killed_at_any_moment_loses_nothing(tmp_path, killed):
    """What was told to be on the disk is replayed after each kill; in the end it is as if nothing had happened."""
    generator = random.Random(5)
    folder = tmp_path / "killed"
    for i in range(KILLS):
        last = killed(folder, generator.randrange(1, 40))
        # A crash of the machine may leave half a line, too.
        journal = folder / "new.jsonl"
        if i % 2 and journal.exists():
            journal.write_bytes(journal.read_bytes() + b'{"key": "0123')
        assert [claim / 10_000 for claim in range(last + 1)] == supports(folder, range(last + 1))
        assert [] == severe(folder)
    for name in ("killed", "calm"):
        process = start(tmp_path / name, 0, CLAIMS)
        process.communicate()
        assert 0 == process.returncode
    one, other = (
        {path.name: path.read_bytes() for path in sorted((tmp_path / name).glob("*.json*"))}
        for name in ("killed", "calm")
    )
    assert one == other
    assert [] == list(problems(folder))


def test_two_recorders_at_once_lose_nothing(tmp_path):
    """What either of them asked is on the tape, what both asked is there once, and the files are whole."""
    folder = tmp_path / "tape"
    recorders = [start(folder, 0, 600), start(folder, 400, CLAIMS)]
    for recorder in recorders:
        recorder.communicate()
    assert [0, 0] == [recorder.returncode for recorder in recorders]
    assert [claim / 10_000 for claim in range(CLAIMS)] == supports(folder, range(CLAIMS))
    assert [] == list(problems(folder))
    assert CLAIMS == Tape.open(folder).stats().records["score"]
