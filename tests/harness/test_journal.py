"""The folder of a run after crashes, and against a second process."""

import subprocess
import sys

import pytest

from minicheck_eval.errors import BadInput, CouldNotJudge, RunMismatch
from minicheck_eval.harness.files import compact
from minicheck_eval.harness.journal import HEADER, RESULTS, Journal, read_records


def record(name: str) -> dict:
    return {"id": name, "slice": "all", "verdicts": {"fact-checking": {"outcome": "pass"}}}


def line(name: str) -> bytes:
    return compact(record(name)) + b"\n"


def test_records_are_lines_on_the_disk_when_append_returns(tmp_path):
    """What was appended can be read by anyone at once, one object a line."""
    with Journal(tmp_path / "deep" / "run") as journal:
        journal.append([record("a"), record("b")])
        assert line("a") + line("b") == (tmp_path / "deep" / "run" / RESULTS).read_bytes()
        journal.append([record("c")])
        assert {"a", "b", "c"} == journal.ids
    with Journal(tmp_path / "deep" / "run") as journal:
        assert (("a", "b", "c"), ()) == (tuple(r["id"] for r in journal.records()), journal.repairs)


def test_records_can_be_put_in_order(tmp_path):
    """The records come into the order of the ids, and what is appended later follows."""
    with Journal(tmp_path) as journal:
        journal.append([record("b"), record("c"), record("a")])
        journal.arrange(["a", "b", "c"])
        assert line("a") + line("b") + line("c") == (tmp_path / RESULTS).read_bytes()
        journal.append([record("d")])
    assert ["a", "b", "c", "d"] == [found["id"] for found in read_records(tmp_path)]


def test_any_text_makes_the_round_trip(tmp_path):
    """Lone surrogates, NUL, line separators and other scripts come back as they went, in valid UTF-8."""
    texts = ["\ud800", "a\udfffb", "\x00", "\u2028\u2029", "漢字 😀", '"\\\n', "\\ud800"]
    with Journal(tmp_path) as journal:
        journal.append([{**record(text), "answer": text} for text in texts])
    (tmp_path / RESULTS).read_text(encoding="utf-8")
    assert texts == [found["answer"] for found in read_records(tmp_path)]
    assert "漢字" in (tmp_path / RESULTS).read_text(encoding="utf-8")
    with Journal(tmp_path) as journal:
        assert (set(texts), ()) == (journal.ids, journal.repairs)


@pytest.mark.parametrize(
    ("left", "whole", "repair"),
    [
        (b"", "", None),
        (line("a") + line("b"), "ab", None),
        (line("a") + line("b")[:-1], "ab", "results.jsonl:2: the last line was given its end"),
        (line("a") + line("b")[:-2], "a", "results.jsonl:2: a torn line was cut off"),
        (line("a") + line("b")[:1], "a", "results.jsonl:2: a torn line was cut off"),
        (line("a")[:-2], "", "results.jsonl:1: a torn line was cut off"),
        (line("a") + b"\0" * 4096, "a", "results.jsonl:2: a torn line was cut off"),
        (line("a") + line("b")[:-1] + b"\0" * 100, "ab", "results.jsonl:2: the last line was given its end"),
        (line("a") + line("b")[:9] + b"\0" * 100, "a", "results.jsonl:2: a torn line was cut off"),
        (line("a") + b"\0" * 50 + line("b") + line("c"), "ac", "results.jsonl:2: a torn line was cut off"),
        (line("a") + line("b")[:9] + b"\xe6\xbc", "a", "results.jsonl:2: a torn line was cut off"),
        (line("a") + line("a") + line("b"), "ab", "results.jsonl:2: a second record of the case 'a' was cut off"),
        (line("a") + b"\n" + line("b"), "ab", "results.jsonl:2: a torn line was cut off"),
    ],
)
def test_what_a_crash_left_is_mended(tmp_path, left, whole, repair):
    """Whole records stay, what is torn goes and is reported, and the next record begins a line of its own."""
    (tmp_path / RESULTS).write_bytes(left)
    with Journal(tmp_path) as journal:
        assert set(whole) == journal.ids
        assert (repair is not None) == bool(journal.repairs)
        assert repair is None or repair in journal.repairs[0]
        journal.append([record("next")])
    assert b"".join(line(name) for name in [*whole, "next"]) == (tmp_path / RESULTS).read_bytes()
    with Journal(tmp_path) as journal:
        assert () == journal.repairs


def test_every_tear_of_the_last_line(tmp_path):
    """Cut after any byte, the file keeps exactly its whole records."""
    content = line("a") + line("b")
    for cut in range(len(content) + 1):
        (tmp_path / RESULTS).write_bytes(content[:cut])
        with Journal(tmp_path) as journal:
            assert sum(cut >= end - 1 for end in (len(line("a")), len(content))) == len(journal.ids)


@pytest.mark.parametrize(
    "content", [b"{}", b"7", b'{"id": 1}', b'{"id": "a", "slice": "b", "verdicts": {"x": {"outcome": "?"}}}']
)
def test_what_is_no_record_is_refused_and_kept(tmp_path, content):
    """Whole JSON that no run wrote is not cut off as if it were torn."""
    (tmp_path / RESULTS).write_bytes(line("a") + content + b"\n" + line("b")[:-5])
    with pytest.raises(RunMismatch, match=r"results\.jsonl:2: is no record of a run"):
        Journal(tmp_path)
    assert line("a") + content + b"\n" + line("b")[:-5] == (tmp_path / RESULTS).read_bytes()
    (tmp_path / RESULTS).unlink()
    Journal(tmp_path).close()


def test_the_header_is_replaced_whole(tmp_path):
    """The header is read back as written, and no temporary file stays."""
    with Journal(tmp_path) as journal:
        assert journal.header() is None
        for header in ({"status": "started", "path": "\udcff"}, {"status": "finished"}):
            journal.write_header(header)
            assert header == journal.header()
    assert {HEADER, RESULTS, ".lock"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_damaged_header_is_a_clear_error(tmp_path, content):
    """A header that is no JSON object is refused with a way out."""
    (tmp_path / HEADER).write_bytes(content)
    with Journal(tmp_path) as journal, pytest.raises(RunMismatch) as caught:
        journal.header()
    assert "--restart" in caught.value.hint


def test_a_second_writer_is_refused(tmp_path):
    """While one process has the folder open no other gets in, and afterwards it does, also after a kill."""
    program = (
        "import sys, pathlib\nfrom minicheck_eval.harness.journal import Journal\n"
        "journal = Journal(pathlib.Path(sys.argv[1]))\nprint('open', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert b"open\n" == other.stdout.readline()
        with pytest.raises(BadInput, match="another process is writing to"):
            Journal(tmp_path)
        other.kill()
    Journal(tmp_path).close()


def test_two_journals_in_one_process(tmp_path):
    """The lock holds within a process too."""
    with Journal(tmp_path), pytest.raises(BadInput, match="another process is writing to"):
        Journal(tmp_path)


def test_a_folder_that_cannot_be_one(tmp_path):
    """A file in the place of the folder is a clear error."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(CouldNotJudge, match="cannot be written"):
        Journal(tmp_path / "file")


def test_a_full_disk_is_a_clear_error(tmp_path, monkeypatch):
    """A write that fails says so, and what it left is mended on the next opening."""
    import os

    write = os.write

    def half(descriptor, data):
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(data)[:-10])

    with Journal(tmp_path) as journal:
        journal.append([record("a")])
        monkeypatch.setattr("minicheck_eval.harness.journal.os.write", half)
        with pytest.raises(CouldNotJudge, match="No space left on device"):
            journal.append([record("b")])
        monkeypatch.undo()
    with Journal(tmp_path) as journal:
        assert {"a"} == journal.ids


def test_anew_forgets_the_run_and_nothing_else(tmp_path):
    """Header and records go, in whatever state they are, and other files stay."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / HEADER).write_bytes(b"{")
    (tmp_path / RESULTS).write_bytes(b"7\n")
    with Journal(tmp_path, anew=True) as journal:
        assert (set(), None, []) == (journal.ids, journal.header(), list(journal.records()))
        journal.append([record("b")])
    assert line("b") == (tmp_path / RESULTS).read_bytes()
    assert "mine" == (tmp_path / "notes.txt").read_text()
