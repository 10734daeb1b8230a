import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.backends.servers.estimate import estimate_tokens

ENGLISH = "The shop opens at nine, and the ferry to the island leaves from pier four at 10:30."


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # What Mistral's vocabulary of 32,000 tokens makes of it, and twice as much.
        (ENGLISH, 24, 36),
        ("Die Donaudampfschifffahrtsgesellschaft beförderte jahrzehntelang Fahrgäste.", 24, 48),
        ("Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.", 33, 66),
        ("北京是中华人民共和国的首都，是全国的政治中心。", 25, 50),
        ("def f(x):\n    return {k: v**2 for k, v in x.items()}\n", 24, 48),
    ],
)
def test_estimates_are_on_the_high_side(text, least, most):
    """What is estimated to fit does, without chunks that are much too small."""
    assert least <= estimate_tokens(text) <= most


@given(st.text(), st.text())
def test_estimates_add_up(one, other):
    """Nothing has no tokens, any text has some, and two texts together have no more than each alone."""
    assert 0 == estimate_tokens("")
    assert bool(one.strip()) <= estimate_tokens(one)
    assert estimate_tokens(one + " " + other) <= estimate_tokens(one) + estimate_tokens(other) + 1


def test_half_a_surrogate_pair_has_tokens_too():
    """What is no text in UTF-8 is no accident."""
    assert 2 == estimate_tokens("\ud800")
