import json

import pytest

from minicheck_eval import Document, EvaluationRequest, Evaluator, Outcome
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.scoring import Failure, PromptTemplate, Score

TEMPLATE = PromptTemplate("Document: {document}\nClaim:", " {claim}")


def contains(prompt):
    """Support is 0.9 where the claim stands word for word in the document, else 0.2."""
    document, claim = prompt.prefix[1].text, prompt.suffix[1].text
    return 0.9 if claim in document else 0.2


def evaluator(answer=contains, *, chunk_tokens=7, window_tokens=100, **more):
    backend = FakeBackend(answer, window_tokens=window_tokens)
    config = DecisionConfig(threshold=0.5)
    return FactCheckingEvaluator(backend, template=TEMPLATE, chunk_tokens=chunk_tokens, decision=config, **more)


DOCUMENTS = [
    Document("The shop opens at nine. It closes at six. Parcels are free.", "hours"),
    Document("Cats sleep a lot."),
]


def test_it_is_an_evaluator():
    """It keeps the contract."""
    assert isinstance(evaluator(), Evaluator)


def test_every_claim_is_checked_against_every_chunk():
    """The answer fails by its weakest claim; the record holds spans, supports and the best chunk."""
    answer = "It closes at six. Cats sleep a lot. Dogs bark."
    response = evaluator().evaluate(EvaluationRequest.from_documents(DOCUMENTS, answer))
    assert (Outcome.FAIL, 0.2) == (response.outcome, response.score)
    chunks = response.metadata["chunks"]
    assert ["hours", "hours", 1] == [chunk["document"] for chunk in chunks]
    claims = response.metadata["claims"]
    assert ["It closes at six.", "Cats sleep a lot.", "Dogs bark."] == [answer[c["start"] : c["end"]] for c in claims]
    assert [0.9, 0.9, 0.2] == [c["support"] for c in claims]
    assert [0.2, 0.9, 0.2] == claims[0]["supports"]
    assert ("hours", {"start": chunks[1]["start"], "end": chunks[1]["end"]}) == (
        claims[0]["document"],
        claims[0]["chunk"],
    )
    assert 1 == claims[1]["document"]
    json.dumps(response.to_json(), allow_nan=False)


def test_feedback_names_the_failed_claim_its_support_and_the_best_evidence():
    """Whoever reads the feedback knows what failed and against what."""
    response = evaluator().evaluate(EvaluationRequest.from_documents(DOCUMENTS, "It closes at six. Dogs bark."))
    assert "1 of 2 claims supported." in response.feedback
    assert "Not supported (0.200): Dogs bark." in response.feedback
    assert "best evidence, document hours: The shop opens" in response.feedback


@pytest.mark.parametrize(
    ("documents", "answer", "reason"),
    [
        (DOCUMENTS, "", "empty_answer"),
        (DOCUMENTS, " \n\t", "empty_answer"),
        (DOCUMENTS, "…", "no_claims"),
        ([], "Dogs bark.", "no_evidence"),
        ([Document(None), Document(""), Document(" \n")], "Dogs bark.", "no_evidence"),
        ([Document("."), Document("\u200b"), Document("\ufeff\0 …")], "Dogs bark.", "no_evidence"),
    ],
)
def test_nothing_to_check_is_said_and_no_judge_is_asked(documents, answer, reason):
    """Without a claim or without evidence there is no verdict and no question."""
    checker = evaluator()
    response = checker.evaluate(EvaluationRequest.from_documents(documents, answer))
    assert (Outcome.NOT_CHECKABLE, None, reason) == (response.outcome, response.score, response.metadata["reason"])
    assert not any(checker.backend.batches)


def test_documents_that_share_an_id_are_told_apart_by_their_place():
    """Two pieces of one source may carry its id; the record must still say which of them is meant."""
    documents = [Document("Dogs bark.", "a"), Document("Cats sleep a lot.", "a"), Document("It rains.", "b")]
    metadata = evaluator().evaluate(EvaluationRequest.from_documents(documents, "Cats sleep a lot.")).metadata
    assert [0, 1, "b"] == [chunk["document"] for chunk in metadata["chunks"]]
    assert 1 == metadata["claims"][0]["document"]


def test_a_batch_is_one_call_and_an_identical_pair_is_scored_once():
    """All requests reach the backend together; a pair that two requests share is asked once."""
    checker = evaluator()
    request = EvaluationRequest.from_documents(DOCUMENTS, "It closes at six. It closes at six.")
    responses = checker.evaluate_batch([request, request])
    assert [3] == [len(batch) for batch in checker.backend.batches]
    assert responses[0] == responses[1]


def test_responses_come_back_in_input_order():
    """Each response belongs to its request."""
    answers = ["Dogs bark.", "It closes at six.", "", "Cats sleep a lot."]
    responses = evaluator().evaluate_batch([EvaluationRequest.from_documents(DOCUMENTS, a) for a in answers])
    expected = [Outcome.FAIL, Outcome.PASS, Outcome.NOT_CHECKABLE, Outcome.PASS]
    assert expected == [response.outcome for response in responses]


def test_a_failure_is_not_a_no():
    """A prompt that failed makes its own answer an error, with the reason, and no other."""

    def answer(prompt):
        return Failure("out_of_memory", "it did not fit") if "bark" in prompt.text else contains(prompt)

    requests = [EvaluationRequest.from_documents(DOCUMENTS, a) for a in ("Dogs bark.", "Cats sleep a lot.")]
    first, second = evaluator(answer).evaluate_batch(requests)
    assert (Outcome.ERROR, None) == (first.outcome, first.score)
    assert "it did not fit" == first.metadata["claims"][0]["detail"]
    assert Outcome.PASS is second.outcome


def test_a_judge_that_says_neither_is_invalid():
    """Little mass on yes and no together is no verdict, and the record shows what was said instead."""
    checker = evaluator(lambda _: Score(0.1, 0.05, "Hello"))
    response = checker.evaluate(EvaluationRequest.from_documents(DOCUMENTS, "Dogs bark."))
    assert Outcome.INVALID is response.outcome
    assert "Hello" in response.metadata["claims"][0]["detail"]


def test_what_was_not_checked_is_listed():
    """Questions, titles and fillers are in no claim, and the record says where they stand."""
    answer = "# Hours\n\nSure! It closes at six. Anything else?"
    metadata = evaluator().evaluate(EvaluationRequest.from_documents(DOCUMENTS, answer)).metadata
    assert ["It closes at six."] == [claim["text"] for claim in metadata["claims"]]
    assert ["# Hours\n\nSure! ", " Anything else?"] == [answer[u["start"] : u["end"]] for u in metadata["unchecked"]]


def test_threshold_and_aggregation_are_recorded():
    """A verdict says by which rule it was made."""
    metadata = evaluator().evaluate(EvaluationRequest.from_documents(DOCUMENTS, "Dogs bark.")).metadata
    expected = {"threshold": 0.5, "chunk_aggregation": "max", "claim_aggregation": "min", "chunk_tokens": 7}
    assert expected == {key: metadata[key] for key in expected}


def test_whole_answers_can_be_one_claim():
    """Without splitting the answer is asked as it is, trimmed."""
    checker = evaluator(split_claims=False)
    response = checker.evaluate(EvaluationRequest.from_documents(DOCUMENTS, " It closes at six. Dogs bark. \n"))
    assert ["It closes at six. Dogs bark."] == [claim["text"] for claim in response.metadata["claims"]]


@pytest.mark.parametrize("chunk_tokens", [0, -1, 99, 1000])
def test_chunks_that_cannot_fit_are_refused(chunk_tokens):
    """A chunk size outside the window is an error that says which sizes fit."""
    with pytest.raises(BadInput, match="window has 100 tokens") as caught:
        evaluator(chunk_tokens=chunk_tokens)
    assert "from 1 to 98" in caught.value.hint


def test_what_the_judge_said_in_words_is_kept():
    """Replies stand beside their chunks, and one that is neither yes nor no is shown as the reason."""

    def answer(prompt):
        said = "Well, it depends." if "Cats" in prompt.text else "No, it does not."
        return Score(0, 0, reply=said, neutralised=True) if "Cats" in prompt.text else Score(0, 1, reply=said)

    response = evaluator(answer).evaluate(EvaluationRequest.from_documents(DOCUMENTS, "Dogs bark."))
    (claim,) = response.metadata["claims"]
    assert ["No, it does not.", "No, it does not.", "Well, it depends."] == claim["replies"]
    assert (True, "neither_yes_nor_no") == (claim["neutralised"], claim["reason"])
    assert "the judge's reply is neither a yes nor a no: 'Well, it depends.'" == claim["detail"]


def test_an_empty_reply_is_said_to_be_empty():
    """A judge that says nothing has no first token to show."""
    response = evaluator(lambda _: Score(0, 0)).evaluate(EvaluationRequest.from_documents(DOCUMENTS, "Dogs bark."))
    assert "the judge's reply is empty" == response.metadata["claims"][0]["detail"]


def test_probabilities_need_no_replies():
    """Where nothing was said in words and nothing made harmless the record has no place for it."""
    response = evaluator().evaluate(EvaluationRequest.from_documents(DOCUMENTS, "Dogs bark."))
    assert not {"replies", "neutralised", "parts"} & response.metadata["claims"][0].keys()
