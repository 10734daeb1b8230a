"""Gates by evaluator and slice, from a file."""

import json

import pytest

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.gate_file import read_gates
from minicheck_eval.harness.summary import summarise

OUTCOMES = {"p": "pass", "f": "fail", "i": "invalid", "e": "error", "n": "not_checkable", "u": "not_checkable"}


@pytest.fixture
def folder_of(tmp_path):
    """Write a run whose outcomes are letters, slice by slice; case ids are the slice and a number."""

    def make(name, evaluator="fact-checking", **slices):
        folder = tmp_path / name
        folder.mkdir()
        records = [
            {
                "id": f"{part}{place}",
                "slice": part,
                "in_scope": letter != "n",
                "verdicts": {evaluator: {"outcome": OUTCOMES[letter]}},
            }
            for part, letters in slices.items()
            for place, letter in enumerate(letters)
        ]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "results.jsonl").write_text(lines, encoding="utf-8")
        (folder / "run.json").write_text('{"status": "finished"}', encoding="utf-8")
        return folder, summarise(records)

    return make


@pytest.fixture
def decide(tmp_path, folder_of):
    """Decide outcomes by the text of a gate file."""

    def run(text, baseline=None, *, undecided_passes=False, **slices):
        path = tmp_path / "gates.toml"
        path.write_text(text, encoding="utf-8")
        beside = None if baseline is None else folder_of("base", **baseline)[0]
        gates = read_gates(path, baseline=beside, undecided_passes=undecided_passes)
        folder, summary = folder_of("run", **slices)
        return gates.decide(summary, folder)

    return run


@pytest.mark.parametrize(
    ("text", "slices", "status", "exit_code"),
    [
        ("min_rate = 0.9", {"a": "p" * 9 + "f"}, "passed", 0),
        ("min_rate = 0.9", {"a": "pppf"}, "failed", 1),
        ("min_rate = 1", {"a": "ppp"}, "passed", 0),
        ('min_rate = 0.8\non = "lower-bound"', {"a": "p" * 20}, "passed", 0),
        ('min_rate = 0.8\non = "lower-bound"', {"a": "p" * 18 + "ff"}, "undecided", 1),
        ('min_rate = 0.8\non = "lower-bound"', {"a": "p" * 15 + "f" * 5}, "failed", 1),
        ("min_rate = 0.5\nmin_judged = 5", {"a": "pppp"}, "undecided", 1),
        ("min_rate = 0.5\nmin_judged = 5", {"a": "ffff"}, "undecided", 1),
        ("min_rate = 0.5\nmin_judged = 4", {"a": "pppp"}, "passed", 0),
        ("min_rate = 0.5", {"a": "pppi"}, "could_not_judge", 3),
        ("min_rate = 0.5\nmax_invalid_rate = 0.25", {"a": "pppi"}, "passed", 0),
        ("min_rate = 0.5\nmax_invalid_rate = 0.25", {"a": "pppe"}, "could_not_judge", 3),
        ("min_rate = 0.5\nmax_error_rate = 0.2", {"a": "pppe"}, "could_not_judge", 3),
        ("min_rate = 0.5\nmax_error_rate = 1", {"a": "eee"}, "undecided", 1),
        ("min_rate = 0.5", {"a": "pppu"}, "undecided", 1),
        ("min_rate = 0.5\nmax_unanswered_rate = 0.25", {"a": "pppu"}, "passed", 0),
        ("min_rate = 0.5", {"a": "pppn"}, "passed", 0),
        ("min_rate = 0.5", {}, "could_not_judge", 3),
        ("[evaluators.fact-checking.slices.a]\nmin_rate = 1", {"a": "pp", "b": "ff"}, "passed", 0),
        ("min_rate = 1\n[evaluators.fact-checking.slices.a]\nmin_rate = 0.5", {"a": "pf", "b": "p"}, "passed", 0),
        ("min_rate = 0\n[evaluators.fact-checking]\nmin_rate = 1", {"a": "pf"}, "failed", 1),
        ("[evaluators.fact-checking.slices.c]\nmin_rate = 0.5", {"a": "pp"}, "undecided", 1),
        ("[evaluators.rubric]\nmin_rate = 0.5", {"a": "pp"}, "undecided", 1),
        ('never_break = ["a0"]', {"a": "pff"}, "passed", 0),
        ('never_break = ["a1"]', {"a": "pff"}, "failed", 1),
        ('min_rate = 0\nnever_break = ["a1"]', {"a": "pu"}, "failed", 1),
        ('min_rate = 0\nnever_break = ["a9"]', {"a": "pp"}, "could_not_judge", 3),
        ('max_error_rate = 1\nnever_break = ["a0"]', {"a": "ep"}, "could_not_judge", 3),
        ('[evaluators.fact-checking]\nnever_break = ["a1"]', {"a": "pf"}, "failed", 1),
        ('min_rate = 0\n[evaluators.rubric]\nnever_break = ["a1"]', {"a": "pf"}, "could_not_judge", 3),
    ],
)
def test_decisions(decide, text, slices, status, exit_code):
    """The nearest rule counts, the worst that is found decides, and silence never passes."""
    decision = decide(text, **slices)
    assert (status, exit_code) == (decision.status, decision.exit_code)
    assert decision.reasons


@pytest.mark.parametrize(
    ("run", "baseline", "most", "status"),
    [
        ("p" * 15 + "f" * 5, "p" * 18 + "ff", 0, "undecided"),
        ("p" * 15 + "f" * 5, "p" * 18 + "ff", 0.15, "passed"),
        ("p" * 14 + "f" * 6, "p" * 20, 0, "failed"),
        ("p" * 14 + "f" * 6, "p" * 20, 0.25, "undecided"),
        ("p" * 20, "p" * 18 + "ff", 0, "passed"),
        ("p" * 20, "i" * 20, 0, "undecided"),
    ],
)
def test_a_drop_from_the_baseline(decide, run, baseline, most, status):
    """A drop fails where it can be seen and is larger than allowed; where it cannot be seen it is undecided."""
    decision = decide(f"max_drop = {most}", {"a": baseline}, a=run)
    assert status == decision.status
    assert decision.comparison is not None


def test_a_slice_that_is_gone_is_undecided(decide):
    """What the baseline judged and the run lacks does not pass unseen."""
    decision = decide("max_drop = 0", {"a": "pp", "b": "pp"}, a="pp")
    assert [("undecided", "fact-checking, b: the baseline has such cases, the run has none")] == [
        (reason.status, reason.words) for reason in decision.reasons
    ]


def test_an_evaluator_that_is_gone_is_undecided(tmp_path, folder_of):
    """All that the baseline asked and the run did not ask does not pass unseen either."""
    (tmp_path / "gates.toml").write_text("max_drop = 0", encoding="utf-8")
    baseline, _ = folder_of("base", evaluator="retrieval", a="pp")
    folder, summary = folder_of("run", a="pp")
    decision = read_gates(tmp_path / "gates.toml", baseline=baseline).decide(summary, folder)
    assert "undecided" == decision.status
    assert "retrieval, a: the baseline has such cases, the run has none" in [
        reason.words for reason in decision.reasons
    ]


def test_a_case_that_was_asked_nothing_breaks(tmp_path, folder_of):
    """A case that must never break and has no verdict of any evaluator could not be judged."""
    (tmp_path / "gates.toml").write_text('never_break = ["b0"]', encoding="utf-8")
    folder, summary = folder_of("run", a="pp")
    with (folder / "results.jsonl").open("a") as stream:
        stream.write('{"id": "b0", "slice": "b", "verdicts": {}}\n')
    decision = read_gates(tmp_path / "gates.toml").decide(summary, folder)
    assert "could_not_judge" == decision.status


def test_reasons_carry_the_arithmetic(decide):
    """An undecided gate says what was found, what was asked, and how many cases would do."""
    (reason,) = decide('min_rate = 0.8\non = "lower-bound"', a="p" * 18 + "ff").reasons
    assert (
        "fact-checking, a: 18 of 20 passed = 90.0 % [69.9 %, 97.2 %], asked for 80 % as the lower bound, which is "
        "69.9 %; too few cases to tell: at this rate 62 cases would" == reason.words
    )


@pytest.mark.parametrize("in_file", [True, False])
def test_undecided_can_be_let_through(decide, in_file):
    """It stays undecided, and the exit code is 0; a failure still fails."""
    text = "undecided_passes = true\n" if in_file else ""
    decision = decide(f"{text}min_rate = 1\nmin_judged = 9", undecided_passes=not in_file, a="p")
    assert ("undecided", 0, True) == (
        decision.status,
        decision.exit_code,
        decision.to_json()["rule"]["undecided_passes"],
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("min_rat = 0.9", "min_rat: unknown key"),
        ("min_rate = 1.5", "min_rate: .*less than or equal to 1"),
        ("min_rate = nan", "min_rate"),
        ("min_rate = true", "min_rate"),
        ('on = "upper-bound"', "on: "),
        ("[evaluators.x.slices.y]\nnever_break = []", "evaluators.x.slices.y.never_break: unknown key"),
        ("min_judged = 0\nmin_rate = 1", "min_judged"),
        ("min_rate =", "cannot be read"),
        ("", "asks for nothing"),
        ("min_judged = 5", "asks for nothing"),
        ("max_drop = 0.1", "no run to compare with"),
    ],
)
def test_a_wrong_file_is_bad_input(tmp_path, text, message):
    """What cannot be used is named with its file and key."""
    path = tmp_path / "gates.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=message) as caught:
        read_gates(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_gates_stand_in_pyproject(tmp_path):
    """A pyproject.toml has them in a table of its own; without it, and without the file, it is bad input."""
    path = tmp_path / "pyproject.toml"
    with pytest.raises(BadInput, match="there is no file"):
        read_gates(path)
    path.write_text("[tool.minicheck_eval.gates]\nmin_rate = 0.5\n", encoding="utf-8")
    assert 0.5 == read_gates(path).rule("any", "slice").min_rate
    path.write_text("[tool.other]\nmin_rate = 0.5\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"no table \[tool.minicheck_eval.gates\]"):
        read_gates(path)
