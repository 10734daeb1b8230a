import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.backends.servers.first_token import score_from
from minicheck_eval.scoring import Failure, Score

YES, NO = frozenset({"yes", "ja"}), frozenset({"no"})


def test_every_token_that_says_it_counts():
    """Case and white space around a word mean nothing; words that only begin with it are others."""
    top = [(" Yes", 0.4), ("YES\n", 0.2), ("Ja", 0.05), ("No", 0.15), (" nO", 0.1), ("Yesterday", 0.05), ("", 0.05)]
    score = score_from([(text, math.log(p)) for text, p in top], YES, NO)
    assert (pytest.approx(0.65), pytest.approx(0.25), " Yes") == (score.support, score.refute, score.top)


def test_no_candidates_are_no_answer():
    """Without any first token nothing was said."""
    assert Score(0.0, 0.0, "") == score_from([], YES, NO)


@pytest.mark.parametrize("least", [-3.4028235e38, float("-inf"), float("nan"), -9999.0])
def test_nothing_is_not_an_accident(least):
    """However a server writes the logarithm of zero, the probability is zero."""
    assert Score(0.0, 1.0, "No") == score_from([("Yes", least), ("No", 0.0)], YES, NO)


@given(st.lists(st.tuples(st.sampled_from(["Yes", "No", " yes", "x"]), st.floats(width=32)), max_size=20))
def test_probabilities_stay_probabilities(top):
    """Whatever numbers come, support and refute lie in [0, 1], and the likeliest token is one of those given."""
    score = score_from(top, YES, NO)
    if isinstance(score, Failure):
        assert 1.01 < sum(math.exp(min(logprob, 1)) for _, logprob in top if not math.isnan(logprob))
        return
    assert 0 <= score.support <= 1
    assert 0 <= score.refute <= 1
    assert score.top in {text for text, _ in top} | {""}


@pytest.mark.parametrize("top", [[("Yes", 0.0), ("No", 0.0)], [("No", 0.9), ("Yes", 0.1)], [("Yes", 5.0)]])
def test_numbers_that_are_no_probabilities_are_no_score(top):
    """Placeholders, and probabilities in place of their logarithms, are found out: no verdict rests on them."""
    found = score_from(top, YES, NO)
    assert isinstance(found, Failure)
    assert "they are none" in found.message
