"""`minicheck-eval calibrate`, with a judge that no model stands behind."""

import json

import pytest

from minicheck_eval import family as door
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.manifest import load_manifest

CANARIES = {canary.claim: canary.support for canary in load_manifest("minicheck-nano").manifest.canaries}


@pytest.fixture(autouse=True)
def fake_model(monkeypatch):
    """Answer with the number that the claim ends with, which is too high by half."""

    def answer(prompt):
        claim = prompt.suffix[1].text
        return CANARIES.get(claim) or int(claim.strip(".").split()[-1]) / 100

    fake = FakeBackend(answer, window_tokens=2048)
    fake.dtype = "float32"
    monkeypatch.setattr(door, "_open_backend", lambda *_: fake)


@pytest.fixture
def cases(tmp_path):
    """Sixty cases; from a support of 70 on they are supported."""
    rows = [
        {"id": i, "documents": [f"Paper {i} is long."], "answer": f"The claim is {40 + i}.", "label": i > 30}
        for i in range(60)
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def command(command_line):
    """Run a verb over the judge with the fake model."""
    return command_line


def test_a_better_threshold_is_saved_and_decides(command, cases, tmp_path):
    """What calibrate saves, run and check decide by."""
    code, out, _ = command("calibrate", str(cases), "--repeats", "1", "--no-probes", "--save", "my.json")
    assert (0, True) == (code, "Saved; decide by it with: --calibration my.json" in out)
    assert 0.7 < json.loads((tmp_path / "my.json").read_text())["threshold"] < 0.71
    (tmp_path / "paper.txt").write_text("Paper 1 is long.")
    check = ["check", "--document", "paper.txt", "--claim", "The claim is 60."]
    assert (0, 1) == (command(*check)[0], command(*check, "--calibration", "my.json")[0])
    code, out, _ = command("run", str(cases), "--calibration", "my.json", "--min-rate", "0.4")
    assert (0, True) == (code, "29/60" in out)


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_map_is_saved_with_its_threshold(command, cases, tmp_path, kind):
    """With a map the score is a probability, and the same answers pass."""
    quick = ["calibrate", str(cases), "--repeats", "1", "--no-probes"]
    command(*quick, "--save", "my.json", "--map", kind)
    assert kind == json.loads((tmp_path / "my.json").read_text())["map"]["kind"]
    code = command(*quick, "--calibration", "my.json", "--json", "after.json")[0]
    after = json.loads((tmp_path / "after.json").read_text())
    assert (0, 29, 31) == (code, after["outcomes"]["pass"], after["outcomes"]["fail"])
    assert 0.1 > after["agreement"]["measures"]["brier"]["value"]
    code, _, err = command(*quick, "--calibration", "my.json", "--save", "other.json")
    assert (2, True) == (code, "has a calibration" in err)


def test_all_is_written_as_json_and_drawn(command, cases, tmp_path):
    """The numbers and the diagram go where they were asked to go."""
    assert 0 == command("calibrate", str(cases), "--repeats", "2", "--json", "a.json", "--diagram", "a.svg")[0]
    found = json.loads((tmp_path / "a.json").read_text())
    assert ["repeat", "batch", "batch", "order", "padding", "padding"] == [one["kind"] for one in found["rounds"]]
    assert 1 == found["schema"]
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


def test_a_run_is_calibrated_from_without_asking(command, cases, tmp_path, monkeypatch):
    """A run's folder in place of cases: no judge is opened, and a file can be saved all the same."""
    command("run", str(cases), "--out", "run")
    monkeypatch.setattr(door, "_open_backend", lambda *_: pytest.fail("the judge was opened"))
    code, out, _ = command("calibrate", "run", "--save", "my.json")
    assert (0, True) == (code, "Saved" in out)
    assert 0.7 < json.loads((tmp_path / "my.json").read_text())["threshold"] < 0.71


def test_nothing_better_is_said_and_not_saved(command, cases, tmp_path):
    """A judge that is good as it is needs no file."""
    quick = ["calibrate", str(cases), "--repeats", "1", "--no-probes", "--threshold", "0.705"]
    code, out, _ = command(*quick, "--save", "my.json")
    assert (0, True, False) == (code, "Nothing is saved" in out, (tmp_path / "my.json").exists())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "no such file"),
        (["cases.jsonl", "--map", "platt"], "--save"),
        (["cases.jsonl", "--repeats", "0"], "repeats"),
        (["."], "run.json"),
        (["cases.jsonl", "--calibration", "nowhere.json"], "cannot be read"),
    ],
)
def test_bad_input_is_named(command, cases, arguments, message):
    """What cannot be used ends with 2 and says why."""
    code, _, err = command("calibrate", *arguments)
    assert (2, True) == (code, message in err)


def test_a_diagram_needs_labels(command, cases):
    """There is nothing to draw without labels."""
    cases.write_text('{"id": 1, "documents": ["x"], "answer": "The claim is 60."}')
    code, _, err = command("calibrate", str(cases), "--no-probes", "--diagram", "a.svg")
    assert (2, True) == (code, "label" in err)
