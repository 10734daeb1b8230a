import importlib.util
import json
import sys
from pathlib import Path

import pytest

from minicheck_eval.scoring import Failure, Score

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "agreement.py"


@pytest.fixture
def agreement(monkeypatch):
    """The script."""
    spec = importlib.util.spec_from_file_location("agreement", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "agreement", module)
    spec.loader.exec_module(module)
    return module


def test_agreement_is_measured_on_the_embedded_judge(nano, agreement, tmp_path, monkeypatch, capsys):
    """On a few pairs the three ways are compared, and the figures are written."""
    pairs = [("The shop opens at nine.", f"The shop opens at {hour}.") for hour in ("nine", "ten", "noon", "nine")]
    pairs.append(("word " * 300, "Too long."))
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps({"document": d, "claim": c}) + "\n" for d, c in pairs), encoding="utf-8")
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["agreement.py", str(file), "--most-tokens", "200", "--out", str(out)])
    assert 0 == agreement.main()
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert [3, 3, 3] == [figure["prompts"] for figure in figures]
    assert figures[0]["largest"] < 1e-5
    assert 0 == figures[0]["verdicts"] == figures[2]["verdicts"]
    assert "--recheck" in capsys.readouterr().out


def test_other_verdicts_are_counted(agreement):
    """A score on the other side of the threshold is another verdict, and a failure is told."""
    oracle = [Score(0.6, 0.4), Score(0.2, 0.8), Score(0.2, 0.8)]
    scores = [Score(0.4, 0.6), Score(0.3, 0.7), Failure("too_long", "")]
    found = agreement.compare("x", oracle, scores, 0.5)
    assert (3, 1, 1) == (found.prompts, found.verdicts, found.failures)
    assert found.largest == pytest.approx(0.2)


def test_a_failure_is_told_and_is_no_success(agreement, monkeypatch, capsys):
    """Prompts without a score stand in the table, and the exit status is that of no answer."""
    found = [agreement.Difference("float32, together", 5, 0.0, 0, 2)]
    monkeypatch.setattr(agreement, "measure", lambda *_: found)
    monkeypatch.setattr(sys, "argv", ["agreement.py", "pairs.jsonl"])
    assert 3 == agreement.main()
    head, row = capsys.readouterr().out.splitlines()
    assert ["failures", "2"] == [head.split()[-1], row.split()[-1]]
