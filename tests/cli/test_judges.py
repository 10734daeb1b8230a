"""`run`, `check` and `fetch` with judges from folders on disk, one of each family."""

import json

import pytest

from minicheck_eval.cli import main
from minicheck_eval.harness.journal import read_records

KINDS = ["internlm2", "t5", "roberta", "deberta-v2"]


@pytest.fixture
def cases(tmp_path):
    rows = [
        {"id": "1", "documents": ["The shop opens at nine. The ferry leaves at ten."], "answer": "The shop opens."},
        {"id": "2", "documents": ["The ferry leaves from pier four."], "answer": "The ferry leaves. It is blue."},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def command(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return caught.value.code


def judged(cases, out, folder, *flags):
    """Run the cases and return the supports of the claims."""
    assert command("run", cases, "--judge", folder, "--out", out, "--min-rate", 0, "--max-unjudged", 2, *flags) in {
        0,
        1,
    }
    verdicts = [record["verdicts"]["fact-checking"] for record in read_records(out)]
    assert 2 == len(verdicts)
    return [claim["support"] for verdict in verdicts for claim in verdict["metadata"]["claims"]]


@pytest.mark.parametrize("kind", KINDS)
def test_run_judges_with_a_model_on_disk(cases, tiny_models, tmp_path, kind, no_network):
    """A folder in the format of transformers is all that a run needs, without network; its identity is recorded."""
    folder = tiny_models(kind)
    supports = judged(cases, tmp_path / "out", folder, "--device", "cpu", "--dtype", "float32")
    assert all(0 < support < 1 for support in supports)
    header = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (kind, "float32") == (header["judge"]["judge"], header["judge"]["dtype"])
    assert "model.safetensors" in header["judge"]["digests"]


@pytest.mark.shared
@pytest.mark.parametrize("kind", ["internlm2", "flan-t5", "roberta", "deberta-v3"])
def test_run_judges_with_the_tiny_models_of_the_parity_kit(cases, shared, tmp_path, kind):
    """The folders that stand for the published models are judges as they are."""
    judged(cases, tmp_path / "out", shared / "parity" / f"tiny-{kind}")


def test_check_takes_a_model_on_disk(tiny_models, tmp_path, capsys):
    """A single text is checked with a folder, too."""
    (tmp_path / "evidence.txt").write_text("The shop opens at nine.")
    flags = ["--judge", tiny_models("roberta"), "--json", "--device", "cpu"]
    assert command("check", "--document", tmp_path / "evidence.txt", "--claim", "The shop opens.", *flags) in {0, 1}
    assert 0 < json.loads(capsys.readouterr().out)["score"] < 1


def test_a_damaged_folder_is_an_error_and_no_verdict(cases, tiny_model, tmp_path, capsys):
    """The command says what is wrong and what to do, without a traceback, and writes no run."""
    folder = tiny_model("roberta")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert 2 == command("run", cases, "--judge", folder, "--out", tmp_path / "out")
    err = capsys.readouterr().err
    assert "error: " in err
    assert "pytorch_model.bin is a pickle" in err
    assert "hint: " in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flags", [["--device", "gpu"], ["--max-memory", "much"], ["--dtype", "int7"]])
def test_placement_that_is_not_understood_is_bad_input(cases, tiny_models, tmp_path, flags):
    """A flag that means nothing is told before anything is loaded."""
    assert 2 == command("run", cases, "--judge", tiny_models("roberta"), "--out", tmp_path / "out", *flags)


def test_fetch_says_what_is_not_fetched(tiny_models, tmp_path, capsys):
    """A folder of one's own is at hand; there is nothing to bring to it."""
    assert 0 == command("fetch", tiny_models("roberta"))
    assert str(tiny_models("roberta")) == capsys.readouterr().out.strip()
    assert 2 == command("fetch", tiny_models("roberta"), "--from", tmp_path)
