"""`minicheck-eval run`, with a judge that no model stands behind."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import minicheck_eval.judge as door
from minicheck_eval import cli


@dataclass
class Judge:
    """A fake judge with an identity."""

    fake: Any
    identity: Any
    notes = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def evaluate_batch(self, requests):
        return self.fake.evaluate_batch(requests)


@pytest.fixture
def opened(monkeypatch, fake_judge, make_identity):
    """Put a fake behind the door, and list how it was opened."""
    opened = []

    @contextmanager
    def open_judges(name, evaluators, *, threshold=None, chunk_tokens=None, parity=None, **_):
        opened.append((name, threshold, chunk_tokens, parity))
        identity = make_identity(judge=name, threshold=threshold or 0.5)
        yield {evaluator: Judge(fake_judge(), identity) for evaluator in evaluators}

    def identity_without_weights(name, *, threshold=None, chunk_tokens=None, parity=None, **_):
        return make_identity(judge=name, threshold=threshold or 0.5, backend="", dtype="")

    monkeypatch.setattr(door, "open_judges", open_judges)
    monkeypatch.setattr(door, "identity_without_weights", identity_without_weights)
    return opened


@pytest.fixture
def command(capsys, tmp_path, monkeypatch, opened):
    """Run the command in a folder of its own; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["run", *arguments])
        output = capsys.readouterr()
        return stopped.value.code, output.out, output.err

    return run


def write(tmp_path, *answers, extra=""):
    rows = [
        {"id": f"c{i}", "question": f"c{i}", "documents": ["It is so."], "answer": answer}
        for i, answer in enumerate(answers)
    ]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + extra, encoding="utf-8")


@pytest.mark.parametrize(
    ("answers", "options", "expected"),
    [
        (["so", "is"], [], (0, "PASSED")),
        (["so", "no"], [], (1, "FAILED")),
        (["so", "no"], ["--min-rate", "0.5"], (0, "PASSED")),
        ([""], [], (1, "UNDECIDED")),
    ],
)
def test_the_report_and_the_exit_code(command, tmp_path, answers, options, expected):
    """The report goes to stdout, nothing to stderr, and the exit code is the decision's."""
    write(tmp_path, *answers)
    found, out, err = command("cases.jsonl", *options)
    assert (expected[0], "") == (found, err)
    assert expected[1] in out
    header = json.loads((tmp_path / "runs" / "cases-minicheck-nano" / "run.json").read_bytes())
    assert ("cases.jsonl", len(answers)) == (header["cases"]["path"], header["cases"]["count"])


def test_a_finished_run_needs_no_judge(command, tmp_path, opened):
    """The same command reports again without opening a judge, also under another rule; --restart judges anew."""
    write(tmp_path, "so", "no")
    arguments = ["cases.jsonl", "--meta", "app=x", "--out", "r"]
    first = command(*arguments)
    assert first == command(*arguments)
    assert 0 == command(*arguments, "--min-rate", "0.5")[0]
    assert 1 == len(opened)
    assert 1 == command(*arguments, "--restart")[0]
    assert 2 == len(opened)


def test_a_finished_run_of_a_judge_that_has_changed_is_refused(command, tmp_path, monkeypatch, make_identity):
    """The same name is not the same judge: verdicts of the old one are never shown as those of the new one."""
    write(tmp_path, "so")
    assert 0 == command("cases.jsonl", "--out", "r")[0]

    def changed(name, **_):
        return make_identity(judge=name, threshold=0.9)

    monkeypatch.setattr(door, "identity_without_weights", changed)

    @contextmanager
    def opened(name, evaluators, **_):
        yield {evaluator: Judge(None, changed(name)) for evaluator in evaluators}

    monkeypatch.setattr(door, "open_judges", opened)
    code, out, err = command("cases.jsonl", "--out", "r")
    assert (2, "") == (code, out)
    assert "judges.fact-checking.threshold is 0.5 there and 0.9 here" in err


def test_several_evaluators_are_one_run(command, tmp_path, opened):
    """They share an opened judge, a folder and a report; a name that is none is bad input."""
    write(tmp_path, "so")
    code, out, _ = command("cases.jsonl", "--evaluators", "fact-checking, relevancy")
    assert (0, 1) == (code, len(opened))
    assert "relevancy" in out
    header = json.loads((tmp_path / "runs" / "cases-minicheck-nano-fact-checking-relevancy" / "run.json").read_bytes())
    assert ["fact-checking", "relevancy"] == header["evaluators"] == header["arguments"]["evaluators"]
    assert 2 == command("cases.jsonl", "--evaluators", "beauty")[0]
    assert 2 == command("cases.jsonl", "--evaluators", ",")[0]


def test_retrieval_alone_is_checked_without_a_judge(command, tmp_path):
    """The deterministic check needs no model: it is the same run on every machine."""
    row = {"id": "a", "answer": "So.", "documents": [{"id": "d1", "text": "It is so."}], "must_retrieve": ["d1", "d2"]}
    (tmp_path / "cases.jsonl").write_text(json.dumps(row))
    code, out, _ = command("cases.jsonl", "--evaluators", "retrieval")
    assert 1 == code
    assert "Missing: d2" in out
    assert (tmp_path / "runs" / "cases-retrieval" / "run.json").exists()


@pytest.mark.parametrize("option", ["--min-rate", "--threshold"])
def test_a_share_that_is_no_number_is_bad_input(command, tmp_path, option):
    """NaN is between no two numbers."""
    write(tmp_path, "so")
    code, out, err = command("cases.jsonl", option, "nan")
    assert (2, "") == (code, out)
    assert "nan" in err


def test_another_meta_is_another_run(command, tmp_path):
    """A value that was recorded is not changed over old verdicts; a new key may be added."""
    write(tmp_path, "so")
    assert 0 == command("cases.jsonl", "--out", "r", "--meta", "app=A")[0]
    assert 2 == command("cases.jsonl", "--out", "r", "--meta", "app=B")[0]
    assert 0 == command("cases.jsonl", "--out", "r", "--meta", "prompt=1")[0]


def test_options_reach_the_judge_and_the_header(command, tmp_path, opened):
    """Threshold, chunk size and parity go to the judge; arguments and meta are recorded."""
    write(tmp_path, "so")
    options = ["--judge", "ollama:x/y", "--threshold", "0.7", "--chunk-tokens", "50", "--meta", "a=1=2", "--meta", "b="]
    command("cases.jsonl", *options, "--parity", "reference")
    assert [("ollama:x/y", 0.7, 50, "reference")] == opened
    header = json.loads((tmp_path / "runs" / "cases-ollama-x-y" / "run.json").read_bytes())
    assert {"a": "1=2", "b": ""} == header["meta"]
    assert ("ollama:x/y", 0.7, 50, "reference", 32) == tuple(
        header["arguments"][name] for name in ("judge", "threshold", "chunk_tokens", "parity", "batch_cases")
    )


def test_bad_rows_stop_before_a_judge_is_opened(command, tmp_path, opened):
    """A problem is an error with file and line; --skip-bad goes on and says what it left out."""
    write(tmp_path, "so", extra='{"id": "x", "anwser": "y"}\n')
    code, out, err = command("cases.jsonl")
    assert (2, "", []) == (code, out, opened)
    assert 'cases.jsonl:2: unknown key "anwser" (did you mean "answer"?)' in err
    assert "--skip-bad" in err
    code, out, err = command("cases.jsonl", "--skip-bad")
    assert 0 == code
    assert "1 bad row was left out" in out
    assert err.startswith("left out: cases.jsonl:2: unknown key")
    header = json.loads((tmp_path / "runs" / "cases-minicheck-nano" / "run.json").read_bytes())
    assert [2] == [row["line"] for row in header["cases"]["left_out"]]


@pytest.mark.parametrize(
    "options",
    [
        ["--meta", "x"],
        ["--meta", "=x"],
        ["--meta", "a=1", "--meta", "a=2"],
        ["--min-rate", "2"],
        ["--batch-cases", "0"],
    ],
)
def test_bad_options_are_bad_input(command, tmp_path, options):
    """A wrong flag ends with exit code 2 before anything is read."""
    assert 2 == command("none.jsonl", *options)[0]


def test_another_judge_in_the_same_folder_is_bad_input(command, tmp_path):
    """The folder of another run is refused with the fields that differ."""
    write(tmp_path, "so")
    command("cases.jsonl", "--out", "r")
    code, out, err = command("cases.jsonl", "--out", "r", "--threshold", "0.9")
    assert (2, "") == (code, out)
    assert "judges.fact-checking.threshold is 0.5 there and 0.9 here" in err


def test_repairs_are_told(command, tmp_path):
    """A torn record is judged again, and stderr says so."""
    write(tmp_path, "so", "so")
    first = command("cases.jsonl", "--out", "r")
    results = tmp_path / "r" / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-9])
    code, out, err = command("cases.jsonl", "--out", "r")
    assert first[:2] == (code, out)
    assert "results.jsonl:2: a torn line was cut off" in err


def test_an_app_answers_the_questions(command, tmp_path, monkeypatch):
    """Its answers and evidence are judged and recorded; a finished run is shown as it is, and --restart asks again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"app_of_{tmp_path.name}"
    code = "def answer(question):\n    return {'answer': f'So {question}.', 'documents': [f'So {question}.']}\n"
    (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "question": "it is"}\n')
    arguments = ["cases.jsonl", "--app", f"{name}:answer", "--out", "r"]
    first, out, err = command(*arguments)
    assert (0, "") == (first, err)
    assert f"answered by {name}:answer" in " ".join(out.split())
    (record,) = map(json.loads, (tmp_path / "r" / "results.jsonl").read_text().splitlines())
    assert ("So it is.", "So it is.") == (record["answer"], record["documents"][0]["text"])
    assert "to ask the application again add --restart" in command(*arguments)[2]
    assert "" == command(*arguments, "--restart")[2]
    assert 2 == command(*arguments, "--app", f"{name}:no")[0]
    (tmp_path / f"{name}.py").write_text(f"{code}\n# changed\n")
    code, _, err = command(*arguments)
    assert 2 == code
    assert "app.sha256" in err


def test_what_is_on_no_tape_is_not_forgotten(command, tmp_path):
    """A run that left its tape alone, or has another, is refused where one on the tape would begin anew."""
    write(tmp_path, "so", "is")
    assert 0 == command("cases.jsonl", "--tape", "t", "--mode", "bypass")[0]
    for tape in ("t", "other"):
        code, _, err = command("cases.jsonl", "--tape", tape, "--mode", "record")
        assert (2, True) == (code, "whose answers are not on the tape" in err)
    assert 0 == command("cases.jsonl", "--tape", "t", "--mode", "record", "--restart")[0]
    assert 0 == command("cases.jsonl", "--tape", "t", "--mode", "record")[0]
