"""From records to a summary, and from a summary to a decision."""

import pytest

from minicheck_eval.harness.gates import GateRule, check
from minicheck_eval.harness.summary import Summary, summarise

OUTCOMES = {"p": "pass", "f": "fail", "i": "invalid", "e": "error", "n": "not_checkable", "u": "not_checkable"}


def summary(evaluator: str = "fact-checking", **slices: str) -> Summary:
    """Summarise outcomes written as letters; "u" is a case in scope with nothing to check."""
    return summarise(
        {"slice": part, "in_scope": letter != "n", "verdicts": {evaluator: {"outcome": OUTCOMES[letter]}}}
        for part, letters in slices.items()
        for letter in letters
    )


def words(decision) -> list[str]:
    return [reason.words for reason in decision.reasons]


def test_the_taxonomy_counts_sum_to_the_number_of_records():
    """Every record is counted once, in its slice and overall, in the order of the slices' names."""
    (found,) = summary(zoo="pfien", apes="pp").evaluators
    assert ["apes", "zoo"] == list(found.slices)
    assert (7, 4, 2) == (found.overall.total, found.overall.judged, found.overall.unjudged)
    assert (3, 1, 1, 1, 1) == (
        found.overall.passed,
        found.overall.failed,
        found.overall.invalid,
        found.overall.error,
        found.overall.not_checkable,
    )
    assert (2 / 5, 1.0) == (found.slices["zoo"].coverage, found.slices["apes"].coverage)


def test_a_summary_as_json():
    """Counts have the names of the outcomes; a rate over nothing is null."""
    found = summary(a="pf", b="n").to_json()["fact-checking"]
    assert {"overall", "slices", "decided_by"} == found.keys()
    assert (2, 0.5) == (found["slices"]["a"]["rate"]["n"], found["slices"]["a"]["rate"]["value"])
    assert {
        "pass": 0,
        "fail": 0,
        "invalid": 0,
        "error": 0,
        "not_checkable": 1,
        "unanswered": 0,
        "total": 1,
        "judged": 0,
        "coverage": 0.0,
        "rate": None,
    } == found["slices"]["b"]


@pytest.mark.parametrize(
    ("slices", "rule", "status", "exit_code"),
    [
        ({"a": "ppp"}, {}, "passed", 0),
        ({"a": "ppf"}, {}, "failed", 1),
        ({"a": "pppf"}, {"min_rate": 0.75}, "passed", 0),
        ({"a": "p" * 9 + "f"}, {"min_rate": 0.9}, "passed", 0),
        ({"a": "p" * 7 + "fff"}, {"min_rate": 0.7}, "passed", 0),
        ({"a": "p" * 89 + "f" * 11}, {"min_rate": 0.9}, "failed", 1),
        ({"a": "p" * 99, "b": "f"}, {"min_rate": 0.5}, "failed", 1),
        ({"a": "ppp", "b": "nn"}, {}, "undecided", 1),
        ({"a": "nn"}, {}, "undecided", 1),
        ({"a": "pppn"}, {}, "passed", 0),
        ({"a": "pppu"}, {}, "undecided", 1),
        ({"a": "pppu"}, {"max_unjudged": 1}, "passed", 0),
        ({"a": "ppfu"}, {}, "failed", 1),
        ({"a": "nn"}, {"min_rate": 0.0}, "undecided", 1),
        ({"a": "pppi"}, {}, "could_not_judge", 3),
        ({"a": "pppe"}, {}, "could_not_judge", 3),
        ({"a": "pppe"}, {"max_unjudged": 1}, "passed", 0),
        ({"a": "pppe", "b": "pi"}, {"max_unjudged": 1}, "could_not_judge", 3),
        ({"a": "ppp", "b": "e"}, {"max_unjudged": 1}, "undecided", 1),
        ({"a": "e"}, {"max_unjudged": 1}, "could_not_judge", 3),
        ({"a": "en"}, {"max_unjudged": 1}, "could_not_judge", 3),
        ({"a": "f", "b": "n"}, {}, "failed", 1),
        ({"a": "f", "b": "n", "c": "e"}, {}, "could_not_judge", 3),
        ({}, {}, "could_not_judge", 3),
    ],
)
def test_decisions(slices, rule, status, exit_code):
    """The worst that is found in any slice decides, and no silence passes."""
    decision = check(summary(**slices), GateRule(**rule))
    assert (status, exit_code) == (decision.status, decision.exit_code)
    assert decision.reasons


def test_every_evaluator_is_gated():
    """A failing retrieval fails a run whose answers all pass."""
    records = [
        {"slice": "a", "verdicts": {"fact-checking": {"outcome": "pass"}, "retrieval": {"outcome": outcome}}}
        for outcome in ("pass", "fail")
    ]
    decision = check(summarise(records), GateRule())
    assert "failed" == decision.status
    assert ["retrieval, a: 1 of 2 passed = 50.0 % [9.5 %, 90.5 %], asked for 100 %"] == words(decision)


def test_reasons_carry_the_arithmetic():
    """A reason can be checked by hand, and what is in order is left out where something is not."""
    found = summary(billing="p" * 20, returns="p" * 18 + "ff", other="nn")
    assert [
        "fact-checking, returns: 18 of 20 passed = 90.0 % [69.9 %, 97.2 %], asked for 95 %",
        "fact-checking, other: none of 2 cases has a verdict, so there is no rate",
    ] == words(check(found, GateRule(min_rate=0.95)))
    passed = check(summary(billing="p" * 20), GateRule())
    assert ["fact-checking, billing: 20 of 20 passed = 100.0 % [83.9 %, 100.0 %], asked for 100 %"] == words(passed)
    unjudged = check(summary(a="ppie"), GateRule(max_unjudged=1))
    assert ["fact-checking: 1 invalid + 1 error = 2 of 4 cases without a verdict, allowed: 1"] == words(unjudged)


def test_each_reason_has_the_status_of_its_gate():
    """What failed stands first, then what could not be judged, then what is undecided."""
    decision = check(summary(a="nn", b="ie", c="pf"), GateRule())
    assert "could_not_judge" == decision.status
    assert [("failed", "c"), ("could_not_judge", ""), ("undecided", "a"), ("undecided", "b")] == [
        (reason.status, reason.slice) for reason in decision.reasons
    ]


def test_a_decision_as_json():
    """The decision is written with its rule, because another rule decides otherwise."""
    assert {
        "status": "could_not_judge",
        "exit_code": 3,
        "reasons": ["there is no case with a verdict"],
        "findings": [
            {
                "status": "could_not_judge",
                "words": "there is no case with a verdict",
                "evaluator": "",
                "slice": "",
                "asked": None,
            }
        ],
        "rule": {"min_rate": 1.0, "max_unjudged": 0, "undecided_passes": False, "baseline": None},
    } == check(summary(), GateRule()).to_json()
