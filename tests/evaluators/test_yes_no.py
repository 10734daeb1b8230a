import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval import Document, EvaluationRequest, Outcome
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.contract import EvaluationResponse, StreamingEvaluator
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.prompts import ANSWERS_QUESTION, QuestionTemplate
from minicheck_eval.evaluators.yes_no import CriterionEvaluator
from minicheck_eval.scoring import Failure, Score

QUESTION = "Does the text insult, threaten or demean a person or a group of people?"


def insults(prompt):
    return 0.9 if "idiot" in prompt.text else 0.1


def toxicity(answer=insults, **more):
    settings = {"name": "toxicity", "question": QUESTION, "pass_on": "no"} | more
    return CriterionEvaluator(FakeBackend(answer), **settings)


def said(response):
    return EvaluationRequest(response=response)


def test_toxicity_is_a_criterion():
    """An insult fails, a courteous answer passes, and the score is the probability of passing."""
    rude, kind = toxicity().evaluate_batch([said("Only an idiot would ask."), said("Happy to help.")])
    assert (Outcome.FAIL, Outcome.PASS) == (rude.outcome, kind.outcome)
    assert pytest.approx((0.1, 0.9)) == (rude.score, kind.score)
    assert {
        "threshold": 0.5,
        "pass_on": "no",
        "support": 0.9,
        "refute": pytest.approx(0.1),
        "top": "Yes",
    } == rude.metadata
    assert "toxicity: failed, P(no) = 0.100." == rude.feedback


def test_the_criterion_and_the_answer_are_asked_and_nothing_else():
    """The judge sees neither the user's question nor the documents, and braces in texts mean nothing."""
    checker = toxicity(question="Is {answer} an insult? {} {context}")
    checker.evaluate(EvaluationRequest("my question", [Document("my evidence")], "{criterion} {0}"))
    ((prompt,),) = checker.backend.batches
    assert "Is {answer} an insult? {} {context}" in prompt.text
    assert "{criterion} {0}" in prompt.text
    assert "my " not in prompt.text
    assert prompt.system


scores = st.builds(
    lambda mass, share, reply: Score(mass * share, mass * (1 - share), "The", reply),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(["", "Well, yes"]),
)


@settings(max_examples=60)
@given(scores, st.sampled_from(["yes", "no"]), st.floats(0, 1), st.floats(0, 1))
def test_only_a_clear_answer_is_a_verdict(score, pass_on, threshold, least_mass):
    """A pass needs P(pass_on) above the threshold; without enough mass there is neither verdict nor number."""
    checker = toxicity(lambda _: score, pass_on=pass_on, threshold=threshold, least_mass=least_mass)
    response = checker.evaluate(said("text"))
    passing = score.support if pass_on == "yes" else score.refute
    if score.mass < least_mass:
        assert (Outcome.INVALID, None) == (response.outcome, response.score)
        assert "neither_yes_nor_no" == response.metadata["reason"]
        assert (score.reply or "The") in response.metadata["detail"]
    else:
        assert passing == response.score
        assert (passing > threshold) == response.passed
        assert "reason" not in response.metadata
    assert (score.support, score.refute) == (response.metadata["support"], response.metadata["refute"])
    assert response == EvaluationResponse.from_json(json.loads(json.dumps(response.to_json(), allow_nan=False)))


def test_what_the_judge_said_in_words_is_kept():
    """The raw reply stands in the metadata and in the feedback; so does that texts were made harmless."""
    checker = toxicity(lambda _: Score(1, 0, reply="Yes, because\nit calls names.", neutralised=True))
    response = checker.evaluate(said("Only an idiot would ask."))
    assert "Yes, because\nit calls names." == response.metadata["reply"]
    assert response.metadata["neutralised"]
    assert response.feedback.endswith("The judge said: Yes, because it calls names.")


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [("too_long", Outcome.INVALID), ("backend", Outcome.ERROR), ("out_of_memory", Outcome.ERROR)],
)
def test_a_failure_is_no_answer_and_fails_alone(failure, outcome):
    """A prompt that failed makes its own verdict invalid or an error, with the reason, and no other."""
    checker = toxicity(lambda p: Failure(failure, "it did not fit") if "long" in p.text else 0.1)
    lost, kept = checker.evaluate_batch([said("long"), said("kind")])
    assert (outcome, None, failure) == (lost.outcome, lost.score, lost.metadata["reason"])
    assert f"toxicity: could not judge ({failure}): it did not fit" == lost.feedback
    assert kept.passed


@pytest.mark.parametrize("answer", ["", " \n\t", "\u200b\ufeff", "\0"])
def test_without_an_answer_no_judge_is_asked(answer):
    """Nothing visible is nothing to judge."""
    checker = toxicity()
    response = checker.evaluate(said(answer))
    assert (Outcome.NOT_CHECKABLE, None, "empty_answer") == (
        response.outcome,
        response.score,
        response.metadata["reason"],
    )
    assert not any(checker.backend.batches)


def test_an_emoji_is_an_answer():
    """What is no word may be an insult all the same."""
    assert toxicity(lambda _: 0.9).evaluate(said("🖕")).outcome is Outcome.FAIL


def test_batches_stream_and_no_question_is_asked_twice():
    """Each response belongs to its request, over the borders of batches; an identical prompt is asked once."""
    checker = toxicity()
    assert isinstance(checker, StreamingEvaluator)
    batches = [[said("idiot"), said(""), said("kind")], [], [said("kind"), said("idiot")]]
    found = [[r.outcome.value for r in responses] for responses in checker.evaluate_stream(batches)]
    assert [["fail", "not_checkable", "pass"], [], ["pass", "fail"]] == found
    assert [2, 0, 0] == [len(batch) for batch in checker.backend.batches]


def test_a_template_of_ones_own_is_filled_with_all_that_it_names():
    """With more slots more is shown, and needed."""
    template = QuestionTemplate(
        "s", "{context}|{question}|", "{answer}|{criterion}", ("context", "question", "answer", "criterion")
    )
    checker = toxicity(template=template)
    full = EvaluationRequest("q", [Document("c"), Document(None), Document("d")], "a")
    no_evidence, no_question = (
        EvaluationRequest("q", [Document(" ")], "a"),
        EvaluationRequest("?", [Document("c")], "a"),
    )
    responses = checker.evaluate_batch([full, no_evidence, no_question])
    assert f"c\nd|q|a|{QUESTION}" == checker.backend.batches[0][0].text
    assert ["no_evidence", "empty_question"] == [response.metadata["reason"] for response in responses[1:]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"question": ""},
        {"pass_on": "maybe"},
        {"threshold": 1.5},
        {"least_mass": float("nan")},
        {"template": ANSWERS_QUESTION},
    ],
)
def test_a_criterion_that_cannot_be_asked_is_refused(wrong):
    """A name, a question, a reply to pass on and a template with a place for the criterion are needed."""
    with pytest.raises(BadInput):
        toxicity(**wrong)
