import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval import EvaluationRequest, Outcome
from minicheck_eval.contract import EvaluationResponse, StreamingEvaluator
from minicheck_eval.errors import BackendError, BadInput, IntegrityError
from minicheck_eval.evaluators.fallback import FallbackEvaluator
from minicheck_eval.evaluators.names import FALLBACK_ON
from minicheck_eval.scoring import Usage

P, F, U, E, N = Outcome.PASS, Outcome.FAIL, Outcome.INVALID, Outcome.ERROR, Outcome.NOT_CHECKABLE


class Judge:
    """Gives the verdict of a table; what is no verdict is raised."""

    def __init__(self, verdicts, usage=None):
        self.verdicts = verdicts
        self.usage = usage
        self.asked = []

    def evaluate_batch(self, requests):
        self.asked.append([request.response for request in requests])
        found = [self.verdicts[request.response] for request in requests]
        for verdict in found:
            if isinstance(verdict, Exception):
                raise verdict
        return found

    def evaluate(self, request):
        return self.evaluate_batch([request])[0]


def verdict(outcome, score=None, reason=None, claims=None, threshold=0.5):
    metadata = {"threshold": threshold, "reason": reason, "claims": claims}
    return EvaluationResponse(outcome, score, outcome.value, {k: v for k, v in metadata.items() if v is not None})


FIRST = {
    "sure": verdict(P, 0.99),
    "never": verdict(F, 0.01),
    "near": verdict(P, 0.6),
    "nearly": verdict(F, 0.4),
    "neither": verdict(U, reason="neither_yes_nor_no"),
    "long": verdict(U, claims=[{"reason": "too_long"}, {}]),
    "longer": verdict(U, reason="too_long"),
    "lost": verdict(E, claims=[{"reason": "backend"}]),
    "empty": verdict(N, reason="empty_answer"),
}
SECOND = {name: verdict(F, 0.2) for name in FIRST}


def ask(names):
    return [EvaluationRequest(response=name) for name in names]


def both(on=FALLBACK_ON, second=None, **more):
    return FallbackEvaluator(Judge(FIRST), Judge(second or SECOND), on=on, names=("small", "big"), **more)


@pytest.mark.parametrize(
    ("on", "asked"),
    [
        (["uncertain"], ["near", "nearly"]),
        (["invalid"], ["neither", "long", "longer"]),
        (["too_long"], ["long", "longer"]),
        (["error"], ["lost"]),
        (FALLBACK_ON, ["near", "nearly", "neither", "long", "longer", "lost"]),
    ],
)
def test_the_second_judge_is_asked_about_what_is_open_and_nothing_else(on, asked):
    """Clear verdicts, and what cannot be checked, stay with the first; the rest goes by the ways that were chosen."""
    checker = both(on)
    responses = checker.evaluate_batch(ask(FIRST))
    assert [asked] == checker.second.asked
    for name, response in zip(FIRST, responses, strict=True):
        if name in asked:
            assert (F, 0.2, "big") == (response.outcome, response.score, response.metadata["decided_by"])
            assert FIRST[name].to_json() == response.metadata["first"]
            assert response.metadata["fallback_on"] in on
        else:
            assert (FIRST[name].outcome, FIRST[name].score) == (response.outcome, response.score)
            assert {**FIRST[name].metadata, "decided_by": "small"} == response.metadata
        json.dumps(response.to_json(), allow_nan=False)
    assert {"small": len(FIRST), "big": len(asked)} == checker.asked
    assert len(asked) == checker.decided["big"]


@settings(max_examples=60)
@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_uncertain_is_a_band_around_the_threshold(score, threshold, band):
    """The ends of the band belong to it, whatever binary fractions make of them."""
    outcome = P if score > threshold else F
    first = Judge({"a": verdict(outcome, score / 100, threshold=threshold / 100)})
    checker = FallbackEvaluator(first, Judge(SECOND | {"a": verdict(P, 1)}), on=["uncertain"], band=band / 100)
    decided_by = checker.evaluate(EvaluationRequest(response="a")).metadata["decided_by"]
    assert ("second" if abs(score - threshold) <= band else "first") == decided_by


def test_without_a_second_verdict_the_first_stands_and_says_so():
    """A second judge that has no answer either changes nothing, and what it said is kept."""
    second = SECOND | {"near": verdict(E, reason="backend"), "neither": verdict(U), "long": verdict(N)}
    checker = both(second=second)
    near, neither, long = checker.evaluate_batch(ask(["near", "neither", "long"]))
    assert (P, 0.6, "small") == (near.outcome, near.score, near.metadata["decided_by"])
    assert [U, U] == [neither.outcome, long.outcome]
    assert "pass\nbig was asked (uncertain) and has no verdict: error" == near.feedback
    assert second["near"].to_json() == near.metadata["second"]
    assert {"small": 1} == checker.decided


def test_a_second_judge_that_is_away_takes_no_verdict_with_it():
    """An error that may pass leaves the first judge's verdicts; one that does not ends the run."""
    away = both(second=SECOND | {"near": BackendError("the server is gone")})
    near, sure = away.evaluate_batch(ask(["near", "sure"]))
    assert (P, P) == (near.outcome, sure.outcome)
    assert "the server is gone" in near.feedback
    swapped = both(second=SECOND | {"near": IntegrityError("another model")})
    with pytest.raises(IntegrityError):
        swapped.evaluate_batch(ask(["near"]))


def test_a_first_judge_that_raises_is_an_error_like_any_other():
    """The requests are asked one by one, and the second judge decides those that fail, where it may on an error."""
    first = FIRST | {"away": BackendError("gone"), "swapped": IntegrityError("another model")}
    second = SECOND | {"away": verdict(P, 0.9)}

    def judge(on):
        return FallbackEvaluator(Judge(first), Judge(second), on=on)

    away, sure = judge(["error"]).evaluate_batch(ask(["away", "sure"]))
    assert (P, "second", "exception") == (
        away.outcome,
        away.metadata["decided_by"],
        away.metadata["first"]["metadata"]["reason"],
    )
    assert "first" == sure.metadata["decided_by"]
    for on, name in ((["invalid"], "away"), (["error"], "swapped")):
        with pytest.raises(type(first[name])):
            judge(on).evaluate_batch(ask([name]))


def test_batches_stream_through_both():
    """Responses come back in input order over the borders of batches; where nothing is open nobody is asked."""
    checker = both()
    assert isinstance(checker, StreamingEvaluator)
    batches = [["sure", "near", "empty"], [], ["never"], ["lost", "sure"]]
    found = [[r.outcome for r in responses] for responses in checker.evaluate_stream(map(ask, batches))]
    assert [[P, F, N], [], [F], [F, P]] == found
    assert [["near"], ["lost"]] == checker.second.asked


def test_what_each_judge_cost_is_told():
    """Usage is told by name and in sum, as far as the judges tell theirs."""
    one, other = Usage(prompts=2, calls=1, seconds=0.5), Usage(prompts=1, calls=1, seconds=2.0)
    checker = FallbackEvaluator(Judge(FIRST, one), Judge(SECOND, other), on=FALLBACK_ON)
    assert {"first": one, "second": other} == checker.usages
    assert Usage(prompts=3, calls=2, seconds=2.5) == checker.usage
    assert one == FallbackEvaluator(Judge(FIRST, one), Judge(SECOND), on=FALLBACK_ON).usage
    assert both().usage is None


@pytest.mark.parametrize(
    "wrong", [{"on": []}, {"on": ["never"]}, {"on": "error"}, {"band": -0.1}, {"band": float("nan")}]
)
def test_a_fallback_that_says_nothing_is_refused(wrong):
    """The ways to fall back are known ones, the band is a number, and the judges have names of their own."""
    with pytest.raises(BadInput):
        both(**wrong)
    with pytest.raises(BadInput):
        FallbackEvaluator(Judge(FIRST), Judge(SECOND), on=["error"], names=("nano", "nano"))
