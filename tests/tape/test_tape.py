"""The folder of a tape: bytes, merges, damage."""

import json
import subprocess
import threading
from contextlib import closing

import pytest

from minicheck_eval.errors import BadInput, IntegrityError, RunMismatch
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.prune import prune_unused
from minicheck_eval.tape.record import line_of
from minicheck_eval.tape.shards import Shard, rewrite
from minicheck_eval.tape.tape import Tape
from minicheck_eval.tape.verify import problems


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name not in (".lock", ".used")}


def shards(folder):
    return sorted(folder.glob("?.jsonl"))


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def record(recording, fill, fake):
    """Record claims about one document."""

    def record(*claims, support=0.9, document="d"):
        tape = recording(fake(support))
        tape.score([fill(document, claim) for claim in claims])
        tape.close()

    return record


def test_the_same_answers_make_the_same_bytes(recording, fill, fake, tmp_path):
    """In whatever order and in however many sessions they were recorded."""
    folder = tmp_path / "tape"
    claims = [str(i) for i in range(40)]
    for order in ([claims], [claims[::-1]], [claims[20:], claims[:30]]):
        for part in order:
            tape = recording(fake())
            tape.score([fill("d", claim) for claim in part])
            tape.close()
        folder.rename(tmp_path / f"tape{len(list(tmp_path.iterdir()))}")
    first, *others = [files(path) for path in sorted(tmp_path.iterdir())]
    assert 3 == len(others) + 1
    assert all(first == other for other in others)
    lines = [line for name, content in first.items() if name.endswith(".jsonl") for line in content.splitlines()]
    assert sorted(lines) == lines
    assert 42 == len(lines)
    assert {"score": 40, "text": 2} == {k: [json.loads(x)["kind"] for x in lines].count(k) for k in ("score", "text")}


def test_an_unchanged_answer_changes_no_byte(recording, fill, fake, tmp_path, monkeypatch):
    """Recording all again on another day changes the lines of the answers that changed, and no others."""
    for day, changed in (("2026-01-01", 0.9), ("2026-02-02", 0.1)):
        monkeypatch.setattr("minicheck_eval.tape.tape.now", lambda day=day: f"{day}T00:00:00")
        judge = fake()
        judge.answer = lambda prompt, changed=changed: changed if prompt.text.endswith("Claim: 7") else 0.5
        tape = recording(judge, "record-always")
        tape.score([fill("d", str(i)) for i in range(20)])
        tape.close()
    days = [json.loads(line)["recorded"] for path in shards(tmp_path / "tape") for line in lines_of(path)]
    assert 1 == days.count("2026-02-02")
    stats = Tape.open(tmp_path / "tape").stats()
    assert ("2026-01-01", "2026-02-02") == (stats.first, stats.last)


def test_a_tape_of_another_judge_is_refused(record, tmp_path, header):
    """The error names each field that differs; what was not known before is filled in."""
    record("c")
    with pytest.raises(RunMismatch, match=r"revision is '1' on the tape and '2' here; digests.weights is 'a'"):
        Tape.record(tmp_path / "tape", header.model_copy(update={"revision": "2", "digests": {"weights": "b"}}))
    Tape.record(tmp_path / "tape", header.model_copy(update={"reading": "words"}))
    with pytest.raises(RunMismatch, match="reading is 'words' on the tape and 'first-token' here"):
        Tape.record(tmp_path / "tape", header.model_copy(update={"reading": "first-token"}))


def test_answers_without_a_header_are_refused(record, tmp_path, header):
    """Where tape.json is gone nothing says whose answers they are: no judge takes them over, whoever it is."""
    record("old")
    (tmp_path / "tape" / "tape.json").unlink()
    for opening in (Tape.open, lambda folder: Tape.record(folder, header)):
        with pytest.raises(BadInput, match=r"no tape\.json: nothing says which judge") as caught:
            opening(tmp_path / "tape")
        assert caught.value.hint


def test_a_shard_is_read_while_another_recorder_replaces_it(tmp_path):
    """A reader meets the old file or the new one, and never the lines of one at the places of the other."""
    path = tmp_path / "0.jsonl"
    lines = [line_of(f"{i:064x}", "2026-01-01", "count", {"tokens": [i]}) for i in range(2000)]
    rewrite(path, lines)
    ended = threading.Event()

    def replaces():
        count = 0
        while not ended.is_set():
            count += 1
            rewrite(path, lines[: 1000 + count % 1000])

    writer = threading.Thread(target=replaces)
    writer.start()
    try:
        assert all(Shard(path).find(f"{5:064x}")["tokens"] == [5] for _ in range(100))
    finally:
        ended.set()
        writer.join()


def test_replay_of_nothing_says_how_to_record(tmp_path):
    """A folder without a tape is an error with what to do."""
    with pytest.raises(BadInput, match="there is no tape") as error:
        Tape.open(tmp_path / "none")
    assert "--mode record" in error.value.hint
    (tmp_path / "tape.json").write_text('{"model": 1}')
    with pytest.raises(BadInput, match=r"tape\.json cannot be read: model"):
        TapeHeader.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"support": 0.9', b'"support": 0.1'),
        lambda line: line.replace(b'"suffix": ["c"]', b'"suffix": ["d"]'),
        lambda line: line.replace(b'"recorded": "20', b'"recorded": "19'),
        lambda line: line[:40],
        lambda line: line[:-1],
        lambda line: b"<<<<<<< HEAD\n" + line,
        lambda line: b"\n" + line,
    ],
)
def test_tampered_and_torn_lines_are_found(record, replaying, fill, tmp_path, change):
    """Neither a changed verdict nor a cut line nor a conflict that was left is ever replayed."""
    record("c")
    path, line = next((p, x) for p in shards(tmp_path / "tape") for x in lines_of(p) if b'"support"' in x)
    path.write_bytes(path.read_bytes().replace(line, change(line)))
    assert any(severe for severe, _ in problems(tmp_path / "tape"))
    with pytest.raises(IntegrityError, match=path.name):
        replaying().score([fill("d", "c")])


def test_a_whole_tape_has_no_problems(record, tmp_path):
    """Verification finds nothing in what was recorded."""
    record(*map(str, range(50)))
    assert [] == list(problems(tmp_path / "tape"))


def test_tapes_of_two_branches_merge_to_their_union(record, replaying, fill, tmp_path):
    """Git merges what two branches recorded without a conflict, and every answer of both is replayed."""
    folder = tmp_path / "tape"

    def git(*arguments):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    record("common")
    for branch, claims in (("one", map(str, range(60))), ("two", map(str, range(40, 100)))):
        if branch == "one":
            git("add", ".")
            git("commit", "-m", "common")
        else:
            git("checkout", "main")
        git("checkout", "-b", branch)
        record(*claims, document=branch)
        record("both", support=0.2 if branch == "one" else 0.3)
        git("add", ".")
        git("commit", "-m", branch)
    git("merge", "one", "-m", "both")
    assert [] == [text for severe, text in problems(folder) if severe]
    replay = replaying()
    asked = [("one", str(i)) for i in range(60)] + [("two", str(i)) for i in range(40, 100)] + [("d", "common")]
    assert [0.9] * 121 == [score.support for score in replay.score([fill(*pair) for pair in asked])]
    # Of two answers to one question recorded on one day the same one counts everywhere.
    assert replay.score([fill("d", "both")])[0].support in (0.2, 0.3)
    before = replay.tape.stats()
    record("new")
    assert [] == [text for severe, text in problems(folder) if severe]
    assert before.records["score"] + 1 == Tape.open(folder).stats().records["score"]


def test_what_a_crash_left_is_read_and_merged(recording, replaying, fill, fake, tmp_path):
    """Answers that were synced before a crash are replayed; half a line at the end is passed over and cut off."""
    tape = recording(fake())
    tape.score([fill("d", str(i)) for i in range(9)])
    journal = tmp_path / "tape" / "new.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"key": "00')
    assert [0.9] * 9 == [score.support for score in replaying().score([fill("d", str(i)) for i in range(9)])]
    after = recording(fake(0.1))
    assert not journal.exists()
    assert [0.9] * 9 + [0.1] == [score.support for score in after.score([fill("d", str(i)) for i in range(10)])]
    journal.write_bytes(journal.read_bytes() + b'{"key": "00')
    after.score([fill("d", "10")])
    after.close()
    assert 11 == Tape.open(tmp_path / "tape").stats().records["score"]


def test_prune_drops_what_no_recording_met(record, replaying, fill, tmp_path):
    """Records of claims that are gone go, with their texts; those of the present cases stay."""
    folder = tmp_path / "tape"
    record("old", document="gone")
    record("kept")
    (folder / ".used").unlink()
    with pytest.raises(BadInput, match="nothing says"):
        prune_unused(folder)
    record("kept", "new")
    assert (2, 4) == prune_unused(folder, dry_run=True)
    assert (2, 4) == prune_unused(folder)
    assert {"score": 2, "text": 2} == Tape.open(folder).stats().records
    assert ["not_on_tape"] == [failure.reason for failure in replaying().score([fill("gone", "old")])]
    assert [] == list(problems(folder))


def test_prune_keeps_what_a_recorder_wrote_that_has_not_ended(recording, replaying, fill, fake, tmp_path):
    """Answers of a recorder that was killed, or still runs, stay, before they are merged and after."""
    folder = tmp_path / "tape"
    with closing(recording(fake())) as ended:
        ended.score([fill("d", "kept")])
    recording(fake()).score([fill("d", "killed")])
    recording(fake()).score([fill("other", "running")])
    assert (0, 6) == prune_unused(folder, dry_run=True)
    assert (0, 6) == prune_unused(folder)
    recording(fake()).score([fill("d", "killed again")])
    with pytest.raises(BadInput, match="nothing says"):
        prune_unused(folder)
    asked = [("d", "kept"), ("d", "killed"), ("other", "running"), ("d", "killed again")]
    assert [0.9] * 4 == [score.support for score in replaying().score([fill(*pair) for pair in asked])]


def test_what_waits_to_be_merged_counts_everywhere(record, recording, fill, fake, tmp_path):
    """A recorder that was killed had asked again: its answer is the one that is found, listed and merged."""
    record("claim", support=0.9)
    recording(fake(0.1), Mode.RECORD_ALWAYS).score([fill("d", "claim")])
    supports = []
    header = Tape.open(tmp_path / "tape").header
    for opening in (Tape.open, lambda folder: Tape.record(folder, header)):
        tape = opening(tmp_path / "tape")
        listed = [record for record in tape.records() if record["kind"] == "score"]
        supports += [tape.find(listed[0]["key"])["support"], *(record["support"] for record in listed)]
    assert [0.1] * 4 == supports
