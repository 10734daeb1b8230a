import pytest

from minicheck_eval import Document, EvaluationRequest, Outcome
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.prompts import ANSWERS_QUESTION, QuestionTemplate
from minicheck_eval.evaluators.relevancy import AnswersQuestionEvaluator, RelevancyEvaluator

DOCUMENTS = [
    Document("Full-time employees have 30 days of annual leave.", "handbook"),
    Document("Up to five days may be carried over into the next year, until the end of March.", "carry-over"),
]
LEAVE = "How many days of leave do I have, and what becomes of those that I do not take?"


def in_line(prompt):
    """Answers as a judge that knows which of the answers of these tests stand in the handbook."""
    return 0.95 if "30 days of annual leave" in prompt.prefix[1].text and "30 days" in prompt.suffix[3].text else 0.05


def test_an_answer_from_elsewhere_is_not_in_line_with_the_context():
    """What the documents say passes relevancy; what another company grants does not."""
    checker = RelevancyEvaluator(FakeBackend(in_line))
    answers = ("You have 30 days; five of them can be carried over.", "You have 25 days, all of which expire.")
    own, foreign = checker.evaluate_batch([EvaluationRequest(LEAVE, DOCUMENTS, answer) for answer in answers])
    assert (Outcome.PASS, 0.95) == (own.outcome, own.score)
    assert (Outcome.FAIL, 0.05) == (foreign.outcome, foreign.score)
    assert "relevancy: failed, P(yes) = 0.050." == foreign.feedback
    first, _ = checker.backend.batches[0]
    assert "\n".join(document.text for document in DOCUMENTS) == first.prefix[1].text
    assert LEAVE == first.suffix[1].text


def test_without_evidence_nothing_is_in_line():
    """Which of two numbers is larger needs no documents, but relevancy to documents does: never a pass, no question."""
    checker = RelevancyEvaluator(FakeBackend(lambda _: 1.0))
    for documents in ([], [Document(None), Document(" … ")]):
        response = checker.evaluate(EvaluationRequest("Which is larger, 0.18 or 0.2?", documents, "0.2 is larger."))
        assert (Outcome.NOT_CHECKABLE, "no_evidence") == (response.outcome, response.metadata["reason"])
    assert not any(checker.backend.batches)


def test_an_answer_to_the_question_needs_no_evidence():
    """Whether the question is answered is judged by question and answer; without a question it cannot be."""
    checker = AnswersQuestionEvaluator(FakeBackend(lambda p: 0.9 if "0.2 is larger" in p.text else 0.2))
    question = "Which is larger, 0.18 or 0.2?"
    good, evasive, without = checker.evaluate_batch(
        [
            EvaluationRequest.from_question(question, "0.2 is larger."),
            EvaluationRequest(question, DOCUMENTS, "That depends on whom you ask."),
            EvaluationRequest.from_documents(DOCUMENTS, "0.2 is larger."),
        ]
    )
    assert (Outcome.PASS, Outcome.FAIL, Outcome.NOT_CHECKABLE) == (good.outcome, evasive.outcome, without.outcome)
    assert "empty_question" == without.metadata["reason"]
    assert all("annual leave" not in prompt.text for prompt in checker.backend.batches[0])


def test_prompts_can_be_replaced_but_must_keep_what_is_compared():
    """A prompt in other words is asked as it is; one without the context is no prompt for relevancy."""
    template = QuestionTemplate("System", "{context} / ", "{answer}?", ("context", "answer"))
    checker = RelevancyEvaluator(FakeBackend(lambda _: 0.9), template=template)
    # It shows no question, so none is needed.
    assert checker.evaluate(EvaluationRequest.from_documents([Document("c")], "{context}")).passed
    assert "c / {context}?" == checker.backend.batches[0][0].text
    with pytest.raises(BadInput, match="context"):
        RelevancyEvaluator(FakeBackend(lambda _: 0.9), template=ANSWERS_QUESTION)
    with pytest.raises(BadInput, match="question"):
        AnswersQuestionEvaluator(FakeBackend(lambda _: 0.9), template=template)
