"""Several evaluators of one judge on one tape."""

import json

import pytest

from minicheck_eval.cli import main
from minicheck_eval.testing import FakeModel, FakeOllama

RATING = '{"reason": "Good.", "score": 5}'


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["run", "cases.jsonl", "--tape", "tapes", "--min-rate", "0.5", *arguments])
    return stopped.value.code


def test_all_evaluators_of_a_judge_share_its_tape(tmp_path, monkeypatch):
    """What each was told is recorded beside the others, and all of it is replayed without the server."""
    monkeypatch.chdir(tmp_path)
    row = {"id": "a", "question": "When?", "answer": "At nine.", "documents": ["The ferry leaves at nine."]}
    (tmp_path / "cases.jsonl").write_text(json.dumps(row))
    says = lambda text: RATING if "Rate the answer" in text else 0.9  # noqa: E731
    evaluators = ("--evaluators", "fact-checking,relevancy,rubric")
    with FakeOllama(says, models={"chatty": FakeModel()}) as server:
        assert 0 == run("--judge", "ollama:chatty", *evaluators, "--url", server.url, "--out", "one")
    assert 0 == run("--judge", "ollama:chatty", *evaluators, "--mode", "replay-only", "--out", "two")
    one, two = (json.loads((tmp_path / out / "run.json").read_text()) for out in ("one", "two"))
    assert ["fact-checking", "relevancy", "rubric"] == two["evaluators"]
    assert (one["judges"], one["summary"]) == (two["judges"], two["summary"])
    assert 0 == two["tapes"]["ollama:chatty"]["missed"]
