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
