"""Tapes through the one door: every kind of judge is replayed without its model, its server or the network."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import minicheck_eval
from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.cli import main
from minicheck_eval.contract import Document, EvaluationRequest, Outcome
from minicheck_eval.errors import BadInput, RunMismatch
from minicheck_eval.judge import Fallback, open_judge
from minicheck_eval.tape.options import Mode, TapeOptions
from minicheck_eval.testing import FakeModel, FakeOllama

FERRY = Document("The ferry leaves at nine. It takes an hour.", "ferry")
RATING = '{"reason": "Good.", "score": 5}'


def says(text):
    if "Rate the answer" in text:
        return RATING
    _, _, claim = text.rpartition("Claim:")
    return 0.9 if claim.strip().split("\n")[0].rstrip(".") in text.rpartition("Claim:")[0] else 0.1


def requests(*answers):
    return [EvaluationRequest("When does the ferry leave?", [FERRY], answer) for answer in answers]


ANSWERS = requests("The ferry leaves at nine. It takes an hour.", "The ferry leaves at ten.")


@pytest.fixture
def ollama():
    """A server with a MiniCheck and a chat model."""
    models = {"bespoke-minicheck": FakeModel(), "chatty": FakeModel(system=None)}
    with FakeOllama(says, models=models) as server:
        yield server


@pytest.fixture
def both_ways(tmp_path):
    """Record with a judge, then replay without one; return both judges' identities and responses."""

    def both_ways(name, **how):
        found = []
        for mode in (Mode.RECORD, Mode.REPLAY_ONLY):
            asked = how if mode is Mode.RECORD else {**how, "server": None}
            with open_judge(name, tape=TapeOptions(tmp_path / "tapes", mode), **asked) as judge:
                found.append((judge.identity, judge.evaluate_batch(ANSWERS)))
        return found

    return both_ways


@pytest.mark.parametrize(
    ("evaluator", "reading"),
    [
        *((evaluator, reading) for evaluator in ("fact-checking", "relevancy") for reading in ("auto", "words")),
        ("answers-question", "auto"),
        ("rubric", "auto"),
    ],
)
def test_a_judge_on_a_server_replays_as_it_was(ollama, both_ways, evaluator, reading):
    """Identity and responses are the same in every field, whatever is asked and however it is read."""
    recorded, replayed = both_ways(
        "ollama:chatty", server=ServerOptions(url=ollama.url), evaluator=evaluator, reading=reading
    )
    assert recorded == replayed
    assert {Outcome.PASS, Outcome.FAIL} >= {response.outcome for response in replayed[1]}


def test_a_replay_opens_no_connection(ollama, tmp_path, monkeypatch):
    """Nobody is asked, not even who they are."""
    record, only = (TapeOptions(tmp_path, mode) for mode in (Mode.RECORD, Mode.REPLAY_ONLY))
    name = "ollama:bespoke-minicheck"
    with open_judge(name, server=ServerOptions(url=ollama.url), tape=record) as judge:
        expected = judge.evaluate_batch(ANSWERS)

    def refuse(*_):
        raise AssertionError("a connection was tried")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", refuse)
        patched.setattr(socket.socket, "connect", refuse)
        with open_judge(name, tape=only) as judge:
            assert expected == judge.evaluate_batch(ANSWERS)
            (other,) = judge.evaluate_batch(requests("The ferry leaves at noon."))
            tapes = judge.tapes
    assert Outcome.ERROR is other.outcome
    assert "not_on_tape" == other.metadata["claims"][0]["reason"]
    assert 1 == tapes[name]["missed"]


def test_thresholds_are_applied_after_replay(ollama, tmp_path):
    """Another threshold is a new decision over old scores."""
    name, server = "ollama:bespoke-minicheck", ServerOptions(url=ollama.url)
    with open_judge(name, server=server, tape=TapeOptions(tmp_path)) as judge:
        judge.evaluate_batch(ANSWERS)
    with open_judge(name, threshold=0.95, tape=TapeOptions(tmp_path, Mode.REPLAY_ONLY)) as judge:
        assert [Outcome.FAIL, Outcome.FAIL] == [response.outcome for response in judge.evaluate_batch(ANSWERS)]


def test_a_judge_and_its_fallback_have_a_tape_each(ollama, tmp_path):
    """Both are recorded and both are replayed."""
    how = {"threshold": 0.85, "fallback": Fallback("ollama:chatty", band=0.06)}
    folder = tmp_path / "tapes"
    server = ServerOptions(url=ollama.url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLLAMA_HOST", ollama.url)
        with open_judge("ollama:bespoke-minicheck", server=server, tape=TapeOptions(folder), **how) as judge:
            expected = judge.evaluate_batch(ANSWERS)
    assert {"ollama-bespoke-minicheck", "ollama-chatty"} == {path.name for path in folder.iterdir()}
    with open_judge("ollama:bespoke-minicheck", tape=TapeOptions(folder, Mode.REPLAY_ONLY), **how) as judge:
        assert expected == judge.evaluate_batch(ANSWERS)
    assert "ollama:chatty" == expected[0].metadata["decided_by"]


def test_a_tape_of_another_model_is_refused(ollama, tmp_path):
    """The weights behind a name have changed: the error says so before anything is asked."""
    how = {"server": ServerOptions(url=ollama.url), "tape": TapeOptions(tmp_path)}
    with open_judge("ollama:chatty", **how) as judge:
        judge.evaluate_batch(ANSWERS)
    header = tmp_path / "ollama-chatty" / "tape.json"
    header.write_text(header.read_text().replace(json.loads(header.read_text())["digests"]["weights"], "0" * 64))
    with pytest.raises(RunMismatch, match=r"digests\.weights is '0000"):
        open_judge("ollama:chatty", **how)
    with pytest.raises(RunMismatch, match="reading is 'first-token' on the tape and 'words' here"):
        open_judge("ollama:chatty", reading="words", tape=TapeOptions(tmp_path, Mode.REPLAY_ONLY))


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ((None, None), {"CI": "true"}, None),
        (("t", None), {"CI": "true"}, Mode.REPLAY_ONLY),
        (("t", None), {"CI": "false"}, Mode.RECORD),
        (("t", None), {}, Mode.RECORD),
        (("t", "record-always"), {"CI": "1"}, Mode.RECORD_ALWAYS),
        ((None, "bypass"), {}, None),
    ],
)
def test_in_ci_a_tape_is_only_replayed(given, environment, expected):
    """Where $CI is set nothing is recorded unless the mode says so."""
    options = TapeOptions.read(*given, environment)
    assert expected == (options and options.mode)


@pytest.mark.parametrize("given", [(None, "record"), ("t", "sometimes")])
def test_a_mode_needs_a_tape_and_a_name(given):
    """A mode without a tape, or one that is not known, is an error."""
    with pytest.raises(BadInput):
        TapeOptions.read(*given)


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command line in a folder of its own; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    cases = [
        {"id": f"c{i}", "documents": [{"id": "f", "text": FERRY.text}], "answer": f"The ferry leaves at {hour}."}
        for i, hour in enumerate(["nine", "ten"])
    ]
    Path("cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        output = capsys.readouterr()
        return stopped.value.code, output.out, output.err

    return run


def test_a_run_in_ci_replays_and_says_what(command, ollama, monkeypatch):
    """The report and run.json tell mode, digest, days and judge; the verdicts are those that were recorded."""
    run = ("run", "cases.jsonl", "--judge", "ollama:bespoke-minicheck", "--tape", "tapes", "--min-rate", "0.5")
    code, recorded, _ = command(*run, "--url", ollama.url, "--out", "one")
    assert 0 == code
    assert "tape tapes/ollama-bespoke-minicheck (record): 2 answers of" in " ".join(recorded.split())
    monkeypatch.setenv("CI", "true")
    outputs = []
    for out in ("two", "two", "three"):
        code, output, _ = command(*run, "--out", out)
        assert 0 == code
        outputs.append(output.replace("three", "two"))
    assert outputs[0] == outputs[1] == outputs[2]
    said = " ".join(outputs[0].split())
    assert "(replay-only)" in said
    one, two = (json.loads(Path(out, "run.json").read_text()) for out in ("one", "two"))
    (tape,) = two["tapes"].values()
    assert one["tapes"]["ollama:bespoke-minicheck"]["digest"] == tape["digest"]
    assert (one["judge"], one["summary"]) == (two["judge"], two["summary"])
    assert ("replay-only", 0) == (tape["mode"], tape["missed"])
    assert tape["first"] == tape["last"] is not None
    # By which judge and when: what a reader of a replayed verdict has to know.
    judge = f"{two['judge']['model']}, {two['judge']['revision'][:12]}, {two['judge']['backend']}"
    assert f"2 answers of {judge}" in said
    assert f", recorded {tape['first']}, digest {tape['digest'][:12]}" in said


def test_a_changed_answer_could_not_be_judged_in_ci(command, ollama):
    """No old verdict is used: the run ends with exit code 3, and the report shows the nearest recorded question."""
    run = ("run", "cases.jsonl", "--judge", "ollama:bespoke-minicheck", "--tape", "tapes", "--min-rate", "0")
    assert 0 == command(*run, "--url", ollama.url)[0]
    path = Path("cases.jsonl")
    path.write_text(path.read_text().replace("at ten", "at noon"))
    code, output, _ = command(*run, "--mode", "replay-only", "--out", "other")
    assert 3 == code
    assert "asked 'The ferry leaves at noon.'" in " ".join(output.split())
    assert "1 question was not on it" in " ".join(output.split())


def test_a_run_without_a_tape_is_not_forgotten(command, ollama):
    """Where a folder holds a run that is on no tape, a run with one is refused."""
    run = ("run", "cases.jsonl", "--judge", "ollama:bespoke-minicheck", "--url", ollama.url, "--min-rate", "0")
    assert 0 == command(*run)[0]
    code, _, error = command(*run, "--tape", "tapes")
    assert 2 == code
    assert "not on the tape tapes" in error
    assert 0 == command(*run, "--tape", "tapes", "--restart")[0]


PROGRAM = """
import socket, sys
def refuse(*_): raise AssertionError("a connection was tried")
socket.socket.connect = socket.getaddrinfo = refuse
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers", "accelerate"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from minicheck_eval.cli import main
main(sys.argv[1:])
"""


def test_the_demo_replays_without_torch_or_network(nano, command, tmp_path):
    """A judge on this machine is replayed where its libraries are not installed, with the same bytes each time."""
    from minicheck_eval.cli.demo import CASES

    lines = CASES.read_text(encoding="utf-8").splitlines(keepends=True)
    Path("demo.jsonl").write_text("".join(lines[:8]), encoding="utf-8")
    run = ("run", "demo.jsonl", "--tape", "tapes", "--min-rate", "0", "--max-unjudged", "99")
    assert 0 == command(*run, "--out", "recorded")[0]
    code, _, error = command(*run, "--out", "other", "--mode", "replay-only", "--dtype", "float16")
    assert 2 == code
    assert "and 'float16' here" in error
    environment = {
        **os.environ,
        "CI": "true",
        "PYTHONPATH": str(Path(minicheck_eval.__file__).parents[1]),
        "MINICHECK_EVAL_HOME": str(tmp_path / "nothing"),
    }
    outputs = []
    for out in ("replay-1", "replay-2"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *run, "--out", out], env=environment, capture_output=True, check=False
        )
        assert 0 == done.returncode, done.stderr.decode()
        outputs.append(done.stdout.replace(out.encode(), b"OUT"))
    assert outputs[0] == outputs[1]

    def verdicts(out):
        lines = Path(out, "results.jsonl").read_text(encoding="utf-8").splitlines()
        return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]

    assert verdicts("recorded") == verdicts("replay-1") == verdicts("replay-2")
