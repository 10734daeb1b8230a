import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from minicheck_eval import family as door
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.manifest import load_manifest
from minicheck_eval.scoring import Failure

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "accuracy.py"
CANARIES = {canary.claim: canary.support for canary in load_manifest("minicheck-nano").manifest.canaries}


@pytest.fixture
def accuracy(monkeypatch):
    """The script, over a fake model whose support stands in the claim."""

    def answer(prompt):
        claim = prompt.suffix[1].text
        return (
            Failure("out_of_memory", "gone")
            if claim == "lost"
            else CANARIES.get(claim, float(claim.split()[-1]) if claim[-1].isdigit() else 0.0)
        )

    fake = FakeBackend(answer, window_tokens=2048)
    fake.dtype = "float32"
    monkeypatch.setattr(door, "_open_backend", lambda *_: fake)
    spec = importlib.util.spec_from_file_location("accuracy", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "accuracy", module)
    spec.loader.exec_module(module)
    return module


def row(dataset, support, label, key="document"):
    return {
        "dataset": dataset,
        key: "It rains.",
        "claim": support if support == "lost" else f"support is {support}",
        "label": label,
    }


ROWS = [
    *[row("a", s, label) for s, label in [(0.9, 1), (0.8, 1), (0.7, 0), (0.1, 0), (0.2, 0), (0.3, 0)]],
    *[row("b", s, label, "doc") for s, label in [(0.9, 1), ("lost", 1), (0.1, 0), (0.2, 0)]],
]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_balanced_accuracy_and_auc_are_those_of_a_hand_count(accuracy, tmp_path, monkeypatch, capsys, suffix):
    """Accuracies of both labels are averaged, then data sets; what was not judged is wrong."""
    path, out = tmp_path / f"rows{suffix}", tmp_path / "out.json"
    opener = gzip.open if suffix.endswith("gz") else open
    with opener(path, "wt") as stream:
        stream.writelines(json.dumps(r) + "\n" for r in ROWS)
    monkeypatch.setattr(sys, "argv", ["accuracy.py", str(path), "--threshold", "0.5", "--json", str(out)])
    accuracy.main()
    result = json.loads(out.read_text())
    assert ["judge", "datasets", "mean"] == list(result)
    a, b = result["datasets"]["a"], result["datasets"]["b"]
    assert (6, pytest.approx((1 + 3 / 4) / 2), 1.0, 0) == (a["n"], a["balanced_accuracy"], a["auc"], a["unjudged"])
    assert (4, pytest.approx((1 / 2 + 1) / 2), 1.0, 1) == (b["n"], b["balanced_accuracy"], b["auc"], b["unjudged"])
    assert pytest.approx((0.875 + 0.75) / 2) == result["mean"]["balanced_accuracy"]
    for dataset in (a, b):
        low, high = dataset["interval"]
        assert 0 <= low <= dataset["balanced_accuracy"] <= high <= 1
        assert low < high
    assert 0.5 == result["judge"]["threshold"]
    assert "0.875" in capsys.readouterr().out


def test_auc_counts_ties_as_half(accuracy):
    """Equal supports are worth half a pair; without both labels there is no AUC."""
    make = accuracy.Answer
    assert 0.5 == accuracy.auc([make(1, 1, 0.5), make(0, 1, 0.5)])
    assert 0.0 == accuracy.auc([make(1, 0, 0.1), make(0, 1, 0.5)])
    assert accuracy.auc([make(1, 1, 0.5)]) is None


@pytest.mark.parametrize("line", ['{"dataset": "a"}', "[]", "{", json.dumps({**ROWS[0], "label": 2})])
def test_wrong_row_is_named(accuracy, tmp_path, line):
    """A row without the columns, or with another label than 0 and 1, ends with file and line."""
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(ROWS[0])}\n{line}\n")
    with pytest.raises(SystemExit, match=r"rows\.jsonl:2"):
        accuracy.read(path)


def test_a_file_without_rows_is_named(accuracy, tmp_path):
    """A missing or empty file ends with its name."""
    (tmp_path / "empty.jsonl").write_text("")
    for name in ("empty.jsonl", "missing.jsonl", "missing.jsonl.gz"):
        with pytest.raises(SystemExit, match=name):
            accuracy.read(tmp_path / name)
