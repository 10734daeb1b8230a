"""`minicheck-eval compare`, `plan-size`, and the flags of `run` that gate, compare and list."""

import json

import pytest

import minicheck_eval.judge as door


def words(text):
    return " ".join(text.split())


def test_the_worked_example(runs, tmp_path):
    """The report has both intervals, what flipped and on which document, and how many cases would show the drop."""
    code, out, err = runs("compare", "after", "before", "--json", "found.json")
    assert (0, "") == (code, err)
    for expected in (
        "18/20 15/20 -15.0",
        "0.70-0.97 0.53-0.89 [-35.2, +4.5]",
        "about 52 cases would show",
        "with policy: 3",
        "[said] so",
    ):
        assert expected in words(out)
    found = json.loads((tmp_path / "found.json").read_bytes())["evaluators"]["fact-checking"]
    assert (["c15", "c16", "c17"], 0.25) == (found["newly_failing"], found["overall"]["p_value"])


def test_a_folder_without_a_run_is_bad_input(runs):
    """What is compared has to be a run."""
    code, out, err = runs("compare", "after", "nowhere")
    assert (2, "") == (code, out)
    assert "nowhere holds no run" in err


@pytest.mark.parametrize(
    ("gates", "options", "expected"),
    [
        ("max_drop = 0", ["--baseline", "before"], (1, "UNDECIDED")),
        ("max_drop = 0", ["--baseline", "before", "--undecided-passes"], (0, "UNDECIDED")),
        ("max_drop = 0.2", ["--baseline", "before"], (0, "PASSED")),
        ('never_break = ["c19"]', [], (1, "FAILED")),
        ("min_rate = 0.75", [], (0, "PASSED")),
    ],
)
def test_a_file_of_gates_decides(runs, tmp_path, gates, options, expected):
    """The file decides the run, and run.json has its rules; the comparison is shown beside the run."""
    (tmp_path / "gates.toml").write_text(gates, encoding="utf-8")
    code, out, _ = runs("run", "after.jsonl", "--out", "after", "--gates", "gates.toml", *options)
    assert expected[0] == code
    assert expected[1] in out
    assert ("after beside before" in out) == ("--baseline" in options)
    header = json.loads((tmp_path / "after" / "run.json").read_bytes())
    assert "gates.toml" == header["decision"]["rule"]["source"]


def test_a_baseline_alone_is_shown(runs):
    """Without a gate on the drop the comparison informs, and the short rule decides."""
    code, out, _ = runs("run", "after.jsonl", "--out", "after", "--min-rate", "0.5", "--baseline", "before")
    assert 0 == code
    assert "not a drop one can see" in words(out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--baseline", "nowhere"], "holds no run"),
        (["--baseline", "after"], "is the run itself"),
        (["--gates", "none.toml"], "there is no file none.toml"),
        (["--gates", "none.toml", "--min-rate", "0.5"], "exclude each other"),
        (["--stale-after", "soon"], "is no age"),
    ],
)
def test_what_cannot_be_used_is_told_before_a_judge_is_asked(runs, monkeypatch, options, message):
    """A wrong gate, baseline or age is bad input."""
    monkeypatch.setattr(door, "open_judge", None)
    code, out, err = runs("run", "after.jsonl", "--out", "after", "--restart", *options)
    assert (2, "") == (code, out)
    assert message in err


def test_stale_cases_are_listed(runs):
    """Cases older than the age are due for review; the decision does not depend on it."""
    code, out, _ = runs("run", "after.jsonl", "--out", "after", "--min-rate", "0", "--stale-after", "180d")
    assert 0 == code
    assert "older than 180d and due for review: 20 of 20 cases" in out
    assert "  2020-01-01  c0" in out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--rate", "0.9", "--width", "0.1"], ["141 cases for an interval of at most 10 points at 90 %"]),
        (
            ["--rate", "0.9", "--drop", "0.15"],
            ["52 cases to see a drop from 90 % to 75 % in 80 of 100", "100 cases to see", "different cases"],
        ),
        (["--rate", "0.5", "--width", "0.00001"], ["more cases than can be had"]),
        (["--rate", "0.9", "--drop", "0.8", "--flips", "0.1"], ["12 cases to see a drop from 90 % to 10 %"]),
    ],
)
def test_plan_size(command, options, expected):
    """The number of cases is told with what it is for."""
    code, out, err = command("plan-size", *options)
    assert (0, "") == (code, err)
    assert all(part in out for part in expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "0.9"], "neither a width nor a drop"),
        (["--rate", "0.1", "--drop", "0.2"], "no room"),
        (["--rate", "0.9", "--drop", "0.1", "--flips", "0.2"], "no room"),
        (["--rate", "0.3", "--drop", "0.3", "--flips", "0.5"], "no room for 0.8 newly failing"),
        (["--rate", "0.9", "--drop", "nan"], "nan"),
    ],
)
def test_a_plan_without_sense_is_bad_input(command, options, message):
    """What cannot be planned is refused with a reason."""
    code, out, err = command("plan-size", *options)
    assert (2, "") == (code, out)
    assert message in err
