"""The verbs `report` and `schema`."""

import json

import pytest

from minicheck_eval.cli import main


def call(*arguments):
    with pytest.raises(SystemExit) as done:
        main(list(map(str, arguments)))
    return done.value.code


def test_a_run_that_is_not_there_is_bad_input(tmp_path, capsys):
    """The exit code is 2, and the message says what to name."""
    assert 2 == call("report", tmp_path, "--html", tmp_path / "r.html")
    assert "holds no run" in capsys.readouterr().err


def test_a_report_has_to_be_asked_for(tmp_path, capsys):
    """Without a file there is nothing to do."""
    assert 2 == call("report", tmp_path)
    assert "--html" in capsys.readouterr().err


def test_the_schema_is_printed(capsys):
    """What `schema` prints is a JSON Schema."""
    assert 0 == call("schema")
    assert "properties" in json.loads(capsys.readouterr().out)


def test_a_run_writes_the_reports_that_it_is_asked_for(tmp_path, nano, capsys):
    """The files lie in the run's folder; `report` writes the same from there; an unknown format is refused at once."""
    cases = tmp_path / "cases.jsonl"
    row = {"id": "a", "documents": ["The shop opens at nine."], "answer": "The shop opens at nine."}
    cases.write_text(json.dumps(row))
    out = tmp_path / "out"
    assert 2 == call("run", cases, "--out", out, "--report", "html,pdf")
    assert not out.exists()
    assert 0 == call("run", cases, "--out", out, "--report", "html,json,markdown,junit")
    names = {"html": "report.html", "json": "report.json", "markdown": "report.md", "junit": "junit.xml"}
    for name, file in names.items():
        assert 0 == call("report", out, f"--{name}", tmp_path / file)
        assert (out / file).read_bytes() == (tmp_path / file).read_bytes()
    capsys.readouterr()
    assert 0 == call("report", out, "--baseline", out, "--json", "-")
    assert [] == json.loads(capsys.readouterr().out)["comparison"]["evaluators"]["fact-checking"]["newly_failing"]
