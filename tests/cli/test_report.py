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


FILES = {"html": "report.html", "json": "report.json", "markdown": "report.md", "junit": "junit.xml"}


@pytest.fixture
def decided(runs, tmp_path):
    """Decide a run beside its baseline, with all reports; return the commands and the run's folder."""
    (tmp_path / "gates.toml").write_text("max_drop = 0", encoding="utf-8")
    gates = ("--gates", "gates.toml", "--baseline", "before", "--report", ",".join(FILES))
    assert 1 == runs("run", "after.jsonl", "--out", "after", *gates)[0]
    return runs, tmp_path / "after"


def test_a_report_stands_beside_the_baseline_that_decided(decided, tmp_path):
    """Without --baseline a report is the one that the run itself wrote, with the comparison; the run stays as it is."""
    command, run = decided
    before = (run / "run.json").read_bytes()
    for name, file in FILES.items():
        assert (0, "", "") == command("report", "after", f"--{name}", file)
        assert (run / file).read_bytes() == (tmp_path / file).read_bytes()
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert ["c15", "c16", "c17"] == report["comparison"]["evaluators"]["fact-checking"]["newly_failing"]
    assert before == (run / "run.json").read_bytes()


@pytest.mark.parametrize("decides", [True, False])
@pytest.mark.parametrize(
    ("trouble", "words"),
    [("gone", "before holds no run"), ("another", "before holds another run now"), ("unfinished", "is not finished")],
)
def test_a_baseline_that_is_gone_is_left_out(decided, tmp_path, trouble, words, decides):
    """One line says so, the report has no comparison, and the decision is the one that was made."""
    command, run = decided
    if not decides:
        options = ("--min-rate", "0.5", "--baseline", "before")
        assert 0 == command("run", "after.jsonl", "--out", "after", *options)[0]
    header = (run / "run.json").read_bytes()
    before = tmp_path / "before"
    if trouble == "gone":
        before.rename(tmp_path / "elsewhere")
    elif trouble == "another":
        assert 0 == command("run", "after.jsonl", "--out", "before", "--min-rate", "0", "--restart")[0]
    else:
        kept = json.loads((before / "run.json").read_bytes())
        (before / "run.json").write_text(json.dumps({**kept, "status": "started"}))
    code, out, err = command("report", "after", "--json", "-")
    assert (0, 1) == (code, len(err.splitlines()))
    assert words in err
    assert "--baseline RUN" in err
    report, decision = json.loads(out), json.loads(header)["decision"]
    assert None is report["comparison"]
    assert all(decision[key] == report["decision"][key] for key in ("status", "exit_code", "reasons", "rule"))
    assert header == (run / "run.json").read_bytes()


def test_a_named_baseline_stands_in_place_of_the_recorded_one(decided):
    """The comparison is with the run that is named; what was decided, and beside which run, stays."""
    command, _ = decided
    code, out, err = command("report", "after", "--baseline", "after", "--json", "-")
    assert (0, "") == (code, err)
    report = json.loads(out)
    assert ("after", "before") == (report["comparison"]["baseline"]["path"], report["decision"]["rule"]["baseline"])
    assert "undecided" == report["decision"]["status"]


def test_only_the_last_decision_has_a_baseline(decided):
    """A run that was decided again without a baseline is reported without one."""
    command, _ = decided
    assert 0 == command("run", "after.jsonl", "--out", "after", "--min-rate", "0.5")[0]
    code, out, err = command("report", "after", "--json", "-")
    assert (0, "") == (code, err)
    assert None is json.loads(out)["comparison"]


def test_a_run_writes_the_reports_that_it_is_asked_for(tmp_path, nano, capsys):
    """The files lie in the run's folder; `report` writes the same from there; an unknown format is refused at once."""
    cases = tmp_path / "cases.jsonl"
    row = {"id": "a", "documents": ["The shop opens at nine."], "answer": "The shop opens at nine."}
    cases.write_text(json.dumps(row))
    out = tmp_path / "out"
    assert 2 == call("run", cases, "--out", out, "--report", "html,pdf")
    assert not out.exists()
    assert 0 == call("run", cases, "--out", out, "--report", "html,json,markdown,junit")
    for name, file in FILES.items():
        assert 0 == call("report", out, f"--{name}", tmp_path / file)
        assert (out / file).read_bytes() == (tmp_path / file).read_bytes()
    capsys.readouterr()
    assert 0 == call("report", out, "--baseline", out, "--json", "-")
    assert [] == json.loads(capsys.readouterr().out)["comparison"]["evaluators"]["fact-checking"]["newly_failing"]
