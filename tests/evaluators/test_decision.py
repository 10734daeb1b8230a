import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.contract import Outcome
from minicheck_eval.evaluators.decision import ClaimVerdict, DecisionConfig, decide_answer, decide_claim
from minicheck_eval.scoring import Failure, Score

CONFIG = DecisionConfig(threshold=0.5)
MEAN = DecisionConfig(threshold=0.5, claim_aggregation="mean")
YES, NO, NEITHER = Score(0.9, 0.1), Score(0.2, 0.8), Score(0.1, 0.1, "The")
LOST, LONG = Failure("out_of_memory", "gone"), Failure("too_long", "too many")


@pytest.mark.parametrize(
    ("scores", "outcome", "support", "best"),
    [
        ([YES], Outcome.PASS, 0.9, 0),
        ([NO], Outcome.FAIL, 0.2, 0),
        ([NO, YES, NO], Outcome.PASS, 0.9, 1),
        ([NO, NO], Outcome.FAIL, 0.2, 0),
        ([YES, LOST, NEITHER], Outcome.PASS, 0.9, 0),  # nothing missing could take the support away
        ([NO, LOST], Outcome.ERROR, None, 0),  # the lost chunk might have supported it
        ([NO, NEITHER], Outcome.INVALID, None, 0),
        ([LOST, NEITHER], Outcome.ERROR, None, None),
        ([LONG], Outcome.INVALID, None, None),
        ([LONG, LOST], Outcome.ERROR, None, None),
    ],
)
def test_claim_is_decided_by_its_best_chunk(scores, outcome, support, best):
    """The maximum decides; a missing score is never a no."""
    verdict = decide_claim(scores, CONFIG)
    assert (outcome, support, best) == (verdict.outcome, verdict.support, verdict.best_chunk)


def test_support_at_the_threshold_does_not_pass():
    """Support must exceed the threshold."""
    assert Outcome.FAIL is decide_claim([Score(0.5, 0.5)], CONFIG).outcome


def test_reason_names_what_stood_in_the_way():
    """A claim without a verdict says why."""
    assert "out_of_memory" == decide_claim([NO, LONG, LOST], CONFIG).reason
    assert "too_long" == decide_claim([LONG], CONFIG).reason
    assert "neither_yes_nor_no" == decide_claim([NEITHER], CONFIG).reason


def claim(outcome, support=None):
    return ClaimVerdict(outcome=outcome, support=support, best_chunk=None)


GOOD, BAD = claim(Outcome.PASS, 0.8), claim(Outcome.FAIL, 0.3)
UNCLEAR, BROKEN = claim(Outcome.INVALID), claim(Outcome.ERROR)


@pytest.mark.parametrize(
    ("claims", "outcome", "support"),
    [
        ([], Outcome.NOT_CHECKABLE, None),
        ([GOOD, GOOD], Outcome.PASS, 0.8),
        ([GOOD, BAD], Outcome.FAIL, 0.3),
        ([BAD, BROKEN, UNCLEAR], Outcome.FAIL, 0.3),  # one unsupported claim decides
        ([GOOD, UNCLEAR], Outcome.INVALID, None),
        ([GOOD, UNCLEAR, BROKEN], Outcome.ERROR, None),
    ],
)
def test_answer_is_decided_by_its_weakest_claim(claims, outcome, support):
    """The minimum decides; a claim that could not be judged is never a pass."""
    assert (outcome, support) == decide_answer(claims, CONFIG)


def test_mean_needs_every_claim():
    """With the mean a missing claim leaves the answer undecided, even beside a failed one."""
    assert (Outcome.PASS, pytest.approx(0.55)) == decide_answer([GOOD, BAD], MEAN)
    assert (Outcome.ERROR, None) == decide_answer([BAD, BROKEN], MEAN)


scores = st.one_of(
    st.builds(lambda p: Score(p, 1 - p), st.floats(0, 1)), st.just(LOST), st.just(LONG), st.just(NEITHER)
)


@given(st.lists(scores, min_size=1, max_size=5))
def test_filling_a_gap_never_contradicts_a_verdict(row):
    """A verdict given despite missing scores is the one that any scores in their places would give."""
    verdict = decide_claim(row, CONFIG)
    gaps = [i for i, s in enumerate(row) if isinstance(s, Failure) or s.mass < 0.5]
    if not verdict.outcome.judged:
        assert gaps
        return
    for filled in itertools.product([YES, NO], repeat=len(gaps)):
        full = list(row)
        for i, score in zip(gaps, filled, strict=True):
            full[i] = score
        assert verdict.outcome is decide_claim(full, CONFIG).outcome
