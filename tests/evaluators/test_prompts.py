import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.prompts import (
    ANSWERS_QUESTION,
    CRITERION,
    FACT_CHECKING,
    MINICHECK,
    RELEVANCY,
    RUBRIC,
    QuestionTemplate,
)
from minicheck_eval.manifest import load_manifest

QUESTIONS = [RELEVANCY, ANSWERS_QUESTION, CRITERION, RUBRIC]


def test_minicheck_is_asked_what_it_was_trained_on():
    """The chat form of the prompt, written out in the model's chat, is the prompt of the manifest."""
    own = load_manifest("bespoke-minicheck-7b").manifest.template
    system, user = f"<s><|im_start|>system\n{MINICHECK.system}<|im_end|>\n", "<|im_start|>user\n"
    assert own.prefix == system + user + MINICHECK.prefix
    assert own.suffix == f"{MINICHECK.suffix}<|im_end|>\n<|im_start|>assistant\n"


@settings(max_examples=40)
@given(
    st.sampled_from(QUESTIONS), st.text(), st.text(), st.sampled_from(["{answer}", "{}", "{0}", "{context", "}}", "%s"])
)
def test_a_filled_template_is_the_plain_concatenation(template, one, other, braces):
    """Braces and the names of slots in what is filled in mean nothing, and only the template's own text is trusted."""
    values = dict(zip(template.slots, (one + braces, other, braces), strict=False))
    prompt = template.fill(**values)
    expected = template.prefix + template.suffix
    for name in template.slots:
        before, after = expected.split(f"{{{name}}}")
        expected = f"{before}\0{name}\0{after}"
    for name, value in values.items():
        expected = expected.replace(f"\0{name}\0", value)
    assert template.system == prompt.system
    assert expected == prompt.text
    foreign = [segment.text for segment in prompt.prefix + prompt.suffix if not segment.trusted]
    assert sorted(value for value in values.values() if value) == sorted(foreign)


def test_what_cases_share_stands_in_the_prefix():
    """Answers to one question, and questions about one context, share the beginning of their prompts."""
    one, other = (RELEVANCY.fill(context="c", question=q, answer=q) for q in "xy")
    assert one.prefix == other.prefix
    one, other = (ANSWERS_QUESTION.fill(question="q", answer=a) for a in "xy")
    assert one.prefix == other.prefix


@pytest.mark.parametrize(
    ("prefix", "suffix", "slots", "what"),
    [
        ("{question}", "", ("question", "answer"), "{answer} is missing"),
        ("{question}", "{answer}", ("answer",), "{question} is unknown"),
        ("{query}", "{answer}", ("answer",), "{query} is unknown"),
        ("{answer}", "{answer}", ("answer",), "{answer} stands there 2 times"),
        ("", "{answer}", ("answer", "query"), "the slots are"),
        ("", "{answer}", "answer", "the slots are"),
    ],
)
def test_wrong_placeholders_are_refused_at_construction(prefix, suffix, slots, what):
    """A placeholder that is unknown, missing or there twice is an error that names it."""
    with pytest.raises(BadInput) as caught:
        QuestionTemplate("", prefix, suffix, slots)
    assert what in str(caught.value)


def test_a_placeholder_in_the_system_text_is_refused():
    """The system text is never filled in, so that a placeholder there would be shown as it stands."""
    with pytest.raises(BadInput, match="system text"):
        QuestionTemplate("Judge {answer}.", "", "{answer}", ("answer",))


def test_other_braces_are_plain_text():
    """JSON in a prompt needs no escaping."""
    template = QuestionTemplate('{"score": 1}', "{} {0} {Answer} { answer } {{", "{answer}", ("answer",))
    assert "{} {0} {Answer} { answer } {{{x}" == template.fill(answer="{x}").text


def test_a_template_without_the_place_that_is_needed_is_refused():
    """Who replaces a prompt must keep the places that the evaluator fills."""
    assert RELEVANCY is RELEVANCY.needs({"answer", "context"})
    with pytest.raises(BadInput, match="no place for context"):
        ANSWERS_QUESTION.needs({"answer", "context"})


def test_prompts_have_digests_of_their_own():
    """Another word in any part is another prompt."""
    own = [template.digest for template in (*QUESTIONS, FACT_CHECKING, MINICHECK)]
    moved = QuestionTemplate(CRITERION.system, CRITERION.prefix + "Text:\n", CRITERION.suffix[6:], CRITERION.slots)
    assert 7 == len({*own, moved.digest})
