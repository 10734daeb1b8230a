"""What the tests of verbs share: command lines over a judge without a model, and two runs of the worked example."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

import minicheck_eval.judge as door
from minicheck_eval import cli
from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.identity import JudgeIdentity

ROWS = 20


@dataclass
class Judge:
    """Passes an answer that says so."""

    identity: Any
    notes: tuple[str, ...] = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def evaluate_batch(self, requests):
        return [
            EvaluationResponse(Outcome.PASS if "yes" in r.response else Outcome.FAIL, 0.9, "[said] so", {})
            for r in requests
        ]


def identity(name, **_):
    texts = ("model", "revision", "backend", "dtype", "splitter", "package", "chunk_aggregation", "claim_aggregation")
    return JudgeIdentity(
        judge=name,
        prompt_digest="",
        labels_digest="",
        window_tokens=1,
        chunk_tokens=1,
        threshold=0.5,
        least_mass=0.5,
        **dict.fromkeys(texts, ""),
    )


@pytest.fixture
def command_line(capsys, tmp_path, monkeypatch):
    """Run a command line in a folder of its own; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            cli.main(list(arguments))
        output = capsys.readouterr()
        return stopped.value.code, output.out, output.err

    return run


@pytest.fixture
def command(command_line, monkeypatch):
    """Run a command line over a judge without a model."""
    monkeypatch.setattr(door, "open_judge", lambda name, **_: Judge(identity(name)))
    monkeypatch.setattr(door, "identity_without_weights", identity)
    return command_line


@pytest.fixture
def runs(command, tmp_path):
    """Make the two runs of the worked example: 18 of 20 pass, and then 15."""
    for name, passing in (("before", 18), ("after", 15)):
        rows = [
            {
                "id": f"c{place}",
                "documents": [{"id": "policy", "text": "It is so."}],
                "answer": "yes" if place < passing else "no",
                "date": "2020-01-01",
            }
            for place in range(ROWS)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
        assert 0 == command("run", f"{name}.jsonl", "--out", name, "--min-rate", "0")[0]
    return command
