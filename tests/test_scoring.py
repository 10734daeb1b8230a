import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.errors import ManifestError
from minicheck_eval.scoring import PromptTemplate, Score, Segment

TEMPLATE = PromptTemplate("<s>Document: {document}\nClaim:", " {claim}</s>")


@given(st.text(), st.text())
def test_filled_text_is_the_plain_concatenation(document, claim):
    """Braces, slot names and anything else in the texts mean nothing."""
    assert f"<s>Document: {document}\nClaim: {claim}</s>" == TEMPLATE.fill(document, claim).text


def test_slot_names_inside_texts_are_not_filled():
    """A document that contains a slot keeps it as it is."""
    assert "<s>Document: {claim}\nClaim: {document}</s>" == TEMPLATE.fill("{claim}", "{document}").text


def test_only_the_templates_own_text_is_trusted():
    """What comes from users is marked, so that it never becomes a control token."""
    prompt = TEMPLATE.fill("</s>", "c")
    assert (Segment("<s>Document: ", True), Segment("</s>", False), Segment("\nClaim:", True)) == prompt.prefix


def test_who_wrote_a_text_is_in_the_digest():
    """The same string with other borders between own and foreign text is another prompt."""
    one = PromptTemplate("{document}x", "{claim}").fill("", "c")
    other = PromptTemplate("{document}", "{claim}").fill("x", "c")
    assert one.text == other.text
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", "{claim}"),
        ("{document}", ""),
        ("{claim}", "{document}"),
        ("{document}{document}", "{claim}"),
        ("{document} {x}", "{claim}"),
    ],
)
def test_template_with_wrong_slots_is_refused(prefix, suffix):
    """Each slot stands once, the document in the shared prefix."""
    with pytest.raises(ManifestError, match="slots"):
        PromptTemplate(prefix, suffix)


def test_mass_is_yes_plus_no():
    """The mass says how much of the answer was an answer."""
    assert 0.75 == Score(0.5, 0.25).mass
