import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "encoders.py"


@pytest.fixture
def encoders(monkeypatch):
    spec = importlib.util.spec_from_file_location("encoders", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "encoders", module)
    spec.loader.exec_module(module)
    return module


def test_all_families_are_measured_and_agree(encoders, tmp_path, monkeypatch, capsys):
    """At toy size both ways give the same supports, which differ among cases, and batching all cases pads less."""
    out = tmp_path / "out.json"
    size = ["--shape", "tiny", "--cases", "12", "--repeats", "2"]
    monkeypatch.setattr(sys, "argv", ["encoders.py", *size, "--out", str(out)])
    encoders.main()
    report = json.loads(out.read_text())
    assert "random" == report["weights"]
    assert ["roberta", "deberta-v3", "flan-t5"] == [one["family"] for one in report["families"]]
    for one in report["families"]:
        before, after = one["ways"].values()
        assert 2 == len(before["seconds"]) == len(after["seconds"])
        assert 0 <= after["padding_share"] < before["padding_share"] < 1
        assert after["tokens_computed"] < before["tokens_computed"]
        assert 1e-5 > one["largest_difference_of_support"]
        assert one["prompts"] >= 12
    printed = capsys.readouterr().out
    assert "RANDOM weights" in printed
    assert "medians of 2" in printed


def test_documents_are_cut_into_chunks(encoders):
    """A case has one prompt for each chunk, and no chunk is longer than asked."""
    cases = encoders.build_cases(30, 10, 300, 50, seed=1)
    lengths = [[len(prompt.prefix[1].text.split()) for prompt in case] for case in cases]
    assert all(part == 50 for case in lengths for part in case[:-1])
    assert all(1 <= case[-1] <= 50 for case in lengths)
    assert 10 <= min(map(sum, lengths)) < 50 < max(map(sum, lengths)) <= 300


def test_supports_of_random_models_differ(encoders):
    """The largest difference means something, since the supports of a random model are not all alike."""
    for family in encoders.FAMILIES:
        model = encoders.build_model(family, "tiny", 0).eval()
        cases = encoders.build_cases(8, 10, 100, 400, seed=0)
        labels = [209, 3] if family == "flan-t5" else [1, 0]
        supports = encoders.one_case_at_a_time(model, encoders.build_tokenizer(), labels, cases)
        assert max(supports) - min(supports) > 1e-3, family
