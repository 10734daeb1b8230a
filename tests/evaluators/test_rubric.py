import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval import Document, EvaluationRequest, Outcome
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.contract import EvaluationResponse, StreamingEvaluator
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.prompts import QuestionTemplate
from minicheck_eval.evaluators.rating import SCHEMA, Rating, read_rating
from minicheck_eval.evaluators.rubric import RubricEvaluator
from minicheck_eval.scoring import Failure, Reply, Usage


class Rater(FakeBackend):
    """Gives the replies of a list, one for each prompt."""

    usage = Usage(prompts=3)

    def __init__(self, *replies):
        super().__init__(lambda _: 0.5)
        self.replies = list(replies)
        self.asked = []

    def reply(self, prompts, *, schema=None, most_tokens=512):
        assert SCHEMA == schema
        self.asked.append(list(prompts))
        replies = [self.replies.pop(0) for _ in prompts]
        return [Reply(reply) if isinstance(reply, str) else reply for reply in replies]


REQUEST = EvaluationRequest.from_question("How many days of leave are there?", "30.")


def rating(score, reason="Right and short."):
    return json.dumps({"reason": reason, "score": score})


@pytest.mark.parametrize("score", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("pass_score", [1, 4, 5])
def test_the_rating_decides(score, pass_score):
    """An answer passes from the chosen rating on; the score is a fifth of it, and reason and reply are kept."""
    checker = RubricEvaluator(Rater(rating(score)), pass_score=pass_score)
    response = checker.evaluate(REQUEST)
    assert (score >= pass_score, score / 5) == (response.passed, response.score)
    expected = {"pass_score": pass_score, "rubric_score": score, "reason": "Right and short.", "reply": rating(score)}
    assert expected == response.metadata
    assert (
        f"rubric: {'passed' if score >= pass_score else 'failed'}, {score} of 5. Right and short." == response.feedback
    )
    assert response == EvaluationResponse.from_json(json.loads(json.dumps(response.to_json())))
    assert 1 == len(checker.backend.asked)


BROKEN = ["I would give it a 4.", "", rating(6), rating(0), rating("4"), rating(True), rating(4.5), '{"score": 4}',
    '{"reason": "r", "score": 4, "more": 1}', '{"reason": "r", "score": ', "[4]", "4", "null", "<think>" + rating(4),
    rating(4) + rating(5), "Here: " + rating(4)]  # fmt: skip


@pytest.mark.parametrize("reply", BROKEN)
def test_a_reply_that_cannot_be_read_is_repaired_once(reply):
    """The judge sees its reply and what is wrong with it, and is asked again; then its answer counts."""
    checker = RubricEvaluator(Rater(reply, rating(4)))
    response = checker.evaluate(REQUEST)
    assert (Outcome.PASS, 0.8) == (response.outcome, response.score)
    assert (reply, rating(4)) == (response.metadata["first_reply"], response.metadata["reply"])
    (first,), (second,) = checker.backend.asked
    assert (first.system, first.prefix) == (second.system, second.prefix)
    assert second.text.startswith(first.text)
    assert reply in second.text
    problem = read_rating(reply)
    assert [problem] == [segment.text for segment in second.suffix if segment.text == problem and not segment.trusted]


@pytest.mark.parametrize("reply", BROKEN)
def test_a_reply_that_is_wrong_twice_is_invalid(reply):
    """After one repair there is no rating: not the lowest, and not the one that prose mentions."""
    checker = RubricEvaluator(Rater(reply, reply))
    response = checker.evaluate(REQUEST)
    assert (Outcome.INVALID, None, "unreadable_reply") == (
        response.outcome,
        response.score,
        response.metadata["reason"],
    )
    assert "rubric_score" not in response.metadata
    assert 2 == len(checker.backend.asked)


@pytest.mark.parametrize(
    "reply",
    ["  {0}\n", "```json\n{0}\n```", "```\n{0}\n```", "<think>3? 4?</think>\n{0}", "</think>\n```JSON\n{0}\n```\n"],
)
def test_json_may_stand_in_a_code_block_or_after_a_thought(reply):
    """Where a server does not hold the model to the schema, its usual habits are no mistakes."""
    own = rating(5, "It says </think> and ```.")
    assert Rating(reason="It says </think> and ```.", score=5) == read_rating(own)
    assert Rating(reason="Right and short.", score=5) == read_rating(reply.replace("{0}", rating(5)))


@settings(max_examples=50)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_reply_is_a_rating_or_a_problem(text, reason):
    """No text breaks the reading, and a rating that was written as JSON is read as it was meant."""
    found = read_rating(text)
    assert isinstance(found, Rating) or found
    assert Rating(reason=reason, score=3) == read_rating(rating(3, reason))


def test_a_reply_that_was_cut_off_says_so():
    """A reply at its limit of tokens is repaired like any other, and the judge is told to be brief."""
    cut = Reply('{"reason": "It goes on and on', complete=False)
    checker = RubricEvaluator(Rater(cut, cut), most_tokens=9)
    response = checker.evaluate(REQUEST)
    assert "cut off at 9 tokens" in response.metadata["detail"]
    assert "cut off at 9 tokens" in checker.backend.asked[1][0].text


def test_a_failure_is_no_rating_and_fails_alone():
    """What could not be asked is invalid or an error with its reason, also where only the repair failed."""
    long, lost = Failure("too_long", "too many tokens"), Failure("backend", "gone")
    requests = [EvaluationRequest.from_question("q", answer) for answer in "abcd"]
    checker = RubricEvaluator(Rater(long, lost, "well", rating(5), lost))
    responses = checker.evaluate_batch(requests)
    expected = [(Outcome.INVALID, "too_long"), (Outcome.ERROR, "backend"), (Outcome.ERROR, "backend")]
    assert expected == [(response.outcome, response.metadata["reason"]) for response in responses[:3]]
    assert "well" == responses[2].metadata["first_reply"]
    assert responses[3].passed


def test_batches_stream_and_nothing_is_asked_about_nothing():
    """Responses come back in input order; in a batch an identical prompt is asked once, an empty answer never."""
    requests = [REQUEST, EvaluationRequest.from_question("q", " "), REQUEST, EvaluationRequest(response="30.")]
    checker = RubricEvaluator(Rater(rating(5), rating(1)))
    assert isinstance(checker, StreamingEvaluator)
    first, empty, last = checker.evaluate_stream([requests, [], [REQUEST]])
    assert [Outcome.PASS, Outcome.NOT_CHECKABLE] * 2 == [response.outcome for response in first]
    assert ["empty_answer", "empty_question"] == [first[1].metadata["reason"], first[3].metadata["reason"]]
    assert ([], Outcome.FAIL) == (empty, last[0].outcome)
    assert [1, 1] == [len(batch) for batch in checker.backend.asked]
    assert Usage(prompts=3) == checker.usage


def test_the_rubric_can_be_replaced():
    """A rubric of one's own may show the documents too."""
    template = QuestionTemplate("Rate.", "{context}", "{answer}", ("context", "answer"))
    checker = RubricEvaluator(Rater(rating(5)), template=template)
    assert checker.evaluate(EvaluationRequest.from_documents([Document("c")], "{context}")).passed
    assert "c{context}" == checker.backend.asked[0][0].text


@pytest.mark.parametrize(
    "wrong", [{"pass_score": 0}, {"pass_score": 6}, {"template": QuestionTemplate("", "{question}", "", ("question",))}]
)
def test_a_rubric_that_cannot_decide_is_refused(wrong):
    """The rating to pass at is one that can be given, and the answer is shown."""
    with pytest.raises(BadInput):
        RubricEvaluator(Rater(), **wrong)
