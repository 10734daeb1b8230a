"""`minicheck-eval tape`."""

import json

import pytest

from minicheck_eval.cli import main
from minicheck_eval.scoring import Score


@pytest.fixture
def command(capsys):
    """Run the command; return exit code, stdout and stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(["tape", *map(str, arguments)])
        output = capsys.readouterr()
        return stopped.value.code, output.out, output.err

    return run


@pytest.fixture
def record(recording, fill, fake, tmp_path):
    """Record some claims on a tape of a name."""

    def record(name, **supports):
        judge = fake()
        judge.answer = lambda prompt: supports[prompt.text.rpartition(" ")[2]]
        tape = recording(judge)
        tape.score([fill("d", claim) for claim in supports])
        tape.close()
        (tmp_path / "tape").rename(tmp_path / name)
        return tmp_path / name

    return record


def test_stats_say_what_is_there(command, record, tmp_path):
    """Records by kind, the days, the judge and a digest, in words and as JSON."""
    record("one", a=0.9, b=0.1)
    code, output, _ = command("stats", tmp_path)
    assert 0 == code
    assert "one: 2 score, 2 text; recorded 20" in output
    assert "fake, fake 1" in output
    (found,) = json.loads(command("stats", tmp_path / "one", "--json")[1]).values()
    assert {"score": 2, "text": 2} == found["records"]
    assert "a" == found["judge"]["digests"]["weights"]


def test_verify_names_the_damaged_line(command, record):
    """Exit code 0 for a whole tape, 3 for one with a changed verdict."""
    folder = record("one", a=0.9)
    assert (0, f"{folder} is whole\n") == command("verify", folder)[:2]
    path = next(path for path in folder.glob("?.jsonl") if b'"support"' in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"0.9", b"0.8"))
    code, output, error = command("verify", folder)
    assert 3 == code
    assert f"damaged: {path}:" in output
    assert "1 line of" in error


@pytest.mark.parametrize("change", ["gone", "conflict"])
def test_verify_sees_a_damaged_header(command, record, tmp_path, change):
    """A tape is not whole where nothing can say whose answers it holds, be it one of several."""
    record("one", a=0.9)
    path = record("two", a=0.9) / "tape.json"
    path.unlink() if change == "gone" else path.write_bytes(path.read_bytes() + b"<<<<<<< HEAD\n")
    code, output, _ = command("verify", tmp_path)
    assert 3 == code
    assert f"damaged: {path}" in output


def test_verify_sees_what_is_no_part_of_the_tape(command, record):
    """A copy of a file is named, for nothing in it is replayed; a changed line that waits to be merged is damage."""
    folder = record("one", a=0.9)
    path = next(folder.glob("?.jsonl"))
    (folder / f"{path.stem} copy.jsonl").write_bytes(path.read_bytes())
    code, output, _ = command("verify", folder)
    assert 0 == code
    assert "copy.jsonl is no file of a tape" in output
    (folder / "new.jsonl").write_bytes(path.read_bytes().replace(b"20", b"21", 1))
    assert 3 == command("verify", folder)[0]


def test_prune_says_how_much_goes(command, record):
    """Nothing is dropped in a dry run, and nothing without --unused."""
    folder = record("one", a=0.9)
    assert 2 == command("prune", folder)[0]
    assert "one: 0 lines would go, 3 kept" in command("prune", folder, "--unused", "--dry-run")[1]
    assert "one: 0 lines went, 3 kept" in command("prune", folder, "--unused")[1]
    assert 2 == command("prune", folder, "--unused")[0]


def test_diff_lists_what_drifted_the_worst_first(command, record):
    """A verdict that turned comes before a support that moved; hostile text comes out as text."""
    old = record("old", a=0.9, b=0.8, c=0.7, gone=0.5)
    new = record("new", a=0.9, b=0.7, c=Score(0.2, 0.8, "\x1b[31m"), new=0.5)
    code, output, _ = command("diff", old, new)
    assert 1 == code
    first, second, last = output.splitlines()
    assert ("! 0.700 → 0.200 c", "~ 0.800 → 0.700 b") == (first, second)
    assert "1 answer is the same, 2 changed (1 of them across the threshold, by 0.5 at most), 1 only on" in last
    assert 0 == command("diff", old, old)[0]


def test_a_folder_without_tapes_is_bad_input(command, tmp_path):
    """Each verb says so."""
    for verb in (["stats"], ["verify"], ["prune", "--unused"], ["diff", tmp_path]):
        code, _, error = command(*verb, tmp_path)
        assert 2 == code
        assert "there is no tape in" in error


def test_diff_names_the_tapes_that_are_in_one_folder_only(command, record, tmp_path):
    """A judge that was recorded once has nothing to be compared with, and is not passed over in silence."""
    for folder, names in (("old", ("one", "two", "three")), ("new", ("one", "two"))):
        (tmp_path / folder).mkdir()
        for name in names:
            record(name, a=0.9).rename(tmp_path / folder / name)
    code, output, _ = command("diff", tmp_path / "old", tmp_path / "new")
    assert 0 == code
    assert "three: there is no such tape in the other folder" in output


def test_a_threshold_that_is_no_number_is_bad_input(command, record):
    """Against nan nothing would cross."""
    folder = record("one", a=0.9)
    assert 2 == command("diff", folder, folder, "--threshold", "nan")[0]
