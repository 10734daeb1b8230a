"""The pytest plugin, in sessions of its own: what it does, and that it does nothing until it is used."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import minicheck_eval
from minicheck_eval.cli import main
from minicheck_eval.testing import FakeModel, FakeOllama

INSTALLED = any(entry.value == "minicheck_eval.pytest_plugin" for entry in entry_points(group="pytest11"))
PLUGIN = [] if INSTALLED else ["-p", "minicheck_eval.pytest_plugin"]
MODEL = "bespoke-minicheck"
TESTS = """
import pytest
from minicheck_eval import Observation

FACT = "The ferry leaves at nine."
ANSWERS = {"a": FACT, "b": FACT, "c": "The ferry leaves at ten.", "d": FACT}

@pytest.mark.parametrize("name", "abcd")
def test_answers(grounding, name):
    seen = Observation(ANSWERS[name], [FACT])
    grounding.record(seen, question=name, slice="good" if name in "ab" else "mixed", id=name)
"""


def holds_claim(text):
    """Support a claim that the document has in the same words."""
    document, _, claim = text.rpartition("Claim:")
    return 0.9 if claim.strip().split("\n")[0].rstrip(".") in document else 0.1


@pytest.fixture
def session(tmp_path):
    """Run pytest over one file of tests in a folder of its own; return the exit code and what it printed."""

    def run(tests, *arguments, url="", **environment):
        (tmp_path / "test_answers.py").write_text(tests)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p no:randomly\n")
        known = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(minicheck_eval.__file__).parents[1]), *sys.path]),
        }
        known.pop("CI", None)
        judge = ["--judge", f"ollama:{url}#{MODEL}"] if url else []
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "pytest", *PLUGIN, *judge, *arguments],
            cwd=tmp_path,
            env={**known, "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def ollama():
    """A server whose model supports what a document holds."""
    with FakeOllama(holds_claim, models={MODEL: FakeModel()}) as server:
        yield server


def outcomes(folder):
    records = map(json.loads, (folder / "results.jsonl").read_text().splitlines())
    return {record["id"]: record["verdicts"]["fact-checking"]["outcome"] for record in records}


def test_answers_are_judged_at_the_end(session, ollama, tmp_path):
    """No test fails because of an answer; the gate over each slice does, with the report, and the run can be kept."""
    code, said = session(TESTS, "--grounding-out", "out", url=ollama.url)
    assert 1 == code, said
    assert "4 passed" in said
    assert "FAILED" in said
    assert "fact-checking, mixed: 1 of 2 passed" in said
    assert {"a": "pass", "b": "pass", "c": "fail", "d": "pass"} == outcomes(tmp_path / "out")
    code, said = session(TESTS, "--grounding-min-rate", "0.5", url=ollama.url)
    assert 0 == code, said
    assert "PASSED" in said


def test_workers_of_xdist_record_together(session, ollama, tmp_path):
    """What several processes recorded is one run, the same as that of one process."""
    pytest.importorskip("xdist")
    assert 1 == session(TESTS, "--grounding-out", "alone", url=ollama.url)[0]
    code, said = session(TESTS, "-n", "2", "--grounding-out", "together", url=ollama.url)
    assert 1 == code, said
    assert "fact-checking, mixed: 1 of 2 passed" in said
    alone, together = (tmp_path / name for name in ("alone", "together"))
    assert (alone / "cases.jsonl").read_bytes() == (together / "cases.jsonl").read_bytes()
    assert outcomes(alone) == outcomes(together)


def test_a_session_in_ci_replays_its_tape(session, ollama, tmp_path):
    """Recorded once, the same tests need no model; an answer that changed cannot be judged, and the session says so."""
    options = ("--tape", "tapes", "--grounding-min-rate", "0.5")
    assert 0 == session(TESTS, *options, url=ollama.url)[0]
    asked = len(ollama.requests)
    code, said = session(TESTS, *options, url=ollama.url, CI="true")
    assert (0, asked) == (code, len(ollama.requests)), said
    assert "replay-only" in said
    code, said = session(TESTS.replace("at ten", "at eleven"), *options, url=ollama.url, CI="true")
    assert (3, asked) == (code, len(ollama.requests)), said
    assert "COULD NOT JUDGE" in said


def test_the_judge_is_a_fixture(session, ollama):
    """A test that wants a verdict at once asks for the judge, which is opened once a session."""
    tests = """
from minicheck_eval import Document, EvaluationRequest

def test_one(judge):
    request = EvaluationRequest("", [Document("The ferry leaves at nine.")], "The ferry leaves at nine.")
    assert judge.evaluate(request).passed

def test_other(judge):
    assert judge.evaluate(EvaluationRequest("", [Document("It is so.")], "The ferry leaves at ten.")).outcome == "fail"
"""
    code, said = session(tests, url=ollama.url)
    assert 0 == code, said
    assert "grounding" not in said


def test_a_test_can_record_more_than_one_answer(session, ollama, tmp_path):
    """Cases are named by their tests, and what an application returns is read as `run --app` reads it."""
    tests = """
def test_two(grounding):
    for answer in ("The ferry leaves at nine.", "It is blue."):
        grounding.record({"answer": answer, "documents": ["The ferry leaves at nine."]})
    grounding.record({"answer": "Yes.", "documents": []}, must_retrieve=["d1"])
"""
    session(tests, "--grounding-out", "out", url=ollama.url)
    name = "test_answers.py::test_two"
    assert {name: "pass", f"{name}#2": "fail", f"{name}#3": "fail"} == outcomes(tmp_path / "out")


def test_a_failing_test_stays_a_failure_beside_a_gate_that_passes(session, ollama):
    """The gate takes no failure away, and is decided over what was recorded all the same."""
    code, said = session(TESTS + "\ndef test_fails(): assert False\n", "--grounding-min-rate", "0.5", url=ollama.url)
    assert 1 == code, said
    assert "PASSED" in said


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ("min_rate = 1", (1, "mixed: 1 of 2 passed")),
        ("min_rate = 1\n[evaluators.fact-checking.slices.mixed]\nmin_rate = 0.5", (0, "PASSED")),
        ('never_break = ["c"]', (1, "'c' must never break, and did (fail)")),
        ('never_break = ["gone"]', (3, "'gone' must never break, and is not in the run")),
    ],
)
def test_a_file_of_gates_decides(session, ollama, tmp_path, gates, expected):
    """Gates of single slices, and cases that must never break, are the exit code where no test failed."""
    (tmp_path / "gates.toml").write_text(gates)
    code, said = session(TESTS, "--grounding-gates", "gates.toml", url=ollama.url)
    assert expected[0] == code, said
    assert "4 passed" in said
    assert expected[1] in said


def test_workers_are_decided_by_gates_and_beside_a_baseline(session, ollama, tmp_path, monkeypatch):
    """A drop from the baseline decides what workers recorded; the reports show both, as the verb writes them."""
    pytest.importorskip("xdist")
    (tmp_path / "pyproject.toml").write_text("[tool.minicheck_eval.gates]\nmax_drop = 0\n")
    formats = {"html": "report.html", "json": "report.json", "markdown": "report.md", "junit": "junit.xml"}
    assert 0 == session(TESTS.replace("at ten", "at nine"), "--grounding-out", "before", url=ollama.url)[0]
    options = ("--grounding-gates", "pyproject.toml", "--grounding-baseline", "before")
    reports = ("--grounding-out", "after", "--grounding-report", ",".join(formats))
    code, said = session(TESTS, "-n", "2", *options, *reports, url=ollama.url)
    assert 1 == code, said
    assert "after beside before" in said
    assert "mixed: 1 of 2 passed" in said
    monkeypatch.chdir(tmp_path)
    for name, file in formats.items():
        with pytest.raises(SystemExit, match="0"):
            main(["report", "after", "--baseline", "before", f"--{name}", file])
        assert (tmp_path / "after" / file).read_bytes() == (tmp_path / file).read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grounding-gates", "none.toml"], "there is no file none.toml"),
        (["--grounding-gates", "none.toml", "-n", "2"], "there is no file none.toml"),
        (["--grounding-gates", "g.toml", "--grounding-min-rate", "0.5"], "exclude each other"),
        (["--grounding-baseline", "nowhere"], "nowhere holds no run"),
        (["--grounding-report", "html"], "--grounding-out DIR"),
        (["--grounding-report", "pdf", "--grounding-out", "out"], "'pdf' names no known report"),
    ],
)
def test_what_cannot_be_used_is_told_before_any_test_runs(session, tmp_path, options, message):
    """A wrong file of gates, baseline or report is a usage error, and no test has run for nothing."""
    if "-n" in options:
        pytest.importorskip("xdist")
    code, said = session("def test_first(): open('ran', 'w').close()", *options)
    assert pytest.ExitCode.USAGE_ERROR == code, said
    assert message in said
    assert not (tmp_path / "ran").exists()


def test_a_baseline_is_not_overwritten_by_its_run(session, ollama, tmp_path):
    """The folder of the baseline is refused for the run, which would begin by forgetting it."""
    assert 1 == session(TESTS, "--grounding-out", "out", url=ollama.url)[0]
    kept = outcomes(tmp_path / "out")
    code, said = session(TESTS, "--grounding-out", "out", "--grounding-baseline", "out", url=ollama.url)
    assert pytest.ExitCode.USAGE_ERROR == code, said
    assert kept == outcomes(tmp_path / "out")


def test_gates_decide_nothing_where_nothing_was_recorded(session, tmp_path):
    """Flags that stand in a configuration do not touch a session without a recorded answer."""
    (tmp_path / "gates.toml").write_text('never_break = ["a"]')
    options = ("--grounding-gates", "gates.toml", "--grounding-out", "out", "--grounding-report", "junit")
    code, said = session("def test_nothing(): pass", *options)
    assert 0 == code, said
    assert "grounding" not in said
    assert not (tmp_path / "out").exists()


def test_a_judge_that_cannot_be_opened_ends_the_session(session):
    """Without a judge there is no verdict, and no green build."""
    code, said = session(TESTS, "--judge", "no-such-judge")
    assert 2 == code, said
    assert "error:" in said
    assert "no-such-judge" in said


def test_the_plugin_does_nothing_until_it_is_used(session):
    """Where no test asks for a fixture, nothing is imported or printed, and the exit code is that of the tests."""
    heavy = ("minicheck_eval.contract", "minicheck_eval.judge", "pydantic", "rich", "torch", "numpy")
    tests = f"import sys\ndef test_nothing(): assert not [name for name in {heavy} if name in sys.modules]\n"
    code, said = session(tests)
    assert 0 == code, said
    assert "grounding" not in said
