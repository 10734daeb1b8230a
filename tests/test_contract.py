import json

import pytest

from minicheck_eval import Document, EvaluationRequest, EvaluationResponse, Outcome, supporting_text
from minicheck_eval.errors import BadInput

DOCUMENTS = [Document("one", "a", {"page": 1}), Document(None, "b"), Document("", "c"), Document("two")]


def test_request_is_built_in_three_ways():
    """Question with answer, documents with answer, and all three each give a full request."""
    assert EvaluationRequest("q", (), "a") == EvaluationRequest.from_question("q", "a")
    assert EvaluationRequest("", tuple(DOCUMENTS), "a") == EvaluationRequest.from_documents(DOCUMENTS, "a")
    assert tuple(DOCUMENTS) == EvaluationRequest("q", DOCUMENTS, "a").documents


def test_supporting_text_skips_documents_without_text():
    """The texts are joined by the line separator; documents without text leave no empty line."""
    assert "one\ntwo" == supporting_text(EvaluationRequest("", DOCUMENTS, ""))
    assert "" == supporting_text(EvaluationRequest("q", (), "a"))


def test_request_survives_json():
    """What is written as JSON is read as the same request."""
    request = EvaluationRequest("q", DOCUMENTS, "a \ud800 {x}")
    assert request == EvaluationRequest.from_json(json.loads(json.dumps(request.to_json())))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_response_survives_json(outcome):
    """Every outcome is written and read unchanged, and only `pass` passes."""
    response = EvaluationResponse(outcome, None if not outcome.judged else 0.25, "why", {"k": [1]})
    written = json.loads(json.dumps(response.to_json()))
    assert ["pass", "outcome", "score", "feedback", "metadata"] == list(written)
    assert (outcome is Outcome.PASS) == written["pass"]
    assert response == EvaluationResponse.from_json(written)


def test_response_without_outcome_is_read_by_its_pass():
    """JSON of a system that knows no outcome is read as pass or fail."""
    assert Outcome.PASS is EvaluationResponse.from_json({"pass": True}).outcome
    assert Outcome.FAIL is EvaluationResponse.from_json({"pass": False, "score": 0.0}).outcome


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"pass": True, "outcome": "fail"}, "contradicts|outcome is fail"),
        ({"pass": False, "outcome": "pass"}, "outcome is pass"),
        ({"pass": True, "score": 1.5}, "score"),
        ({"pass": True, "score": float("nan")}, "score"),
        ({"pass": "yes"}, "pass"),
        ({"passed": True}, "passed: unknown key"),
        ({}, "pass"),
        ({"pass": True, "outcome": "maybe"}, "outcome"),
    ],
)
def test_wrong_response_is_refused_by_name(value, part):
    """A wrong value raises an error that names the field."""
    with pytest.raises(BadInput, match=part):
        EvaluationResponse.from_json(value)


def test_values_cannot_be_changed():
    """A request is frozen and keeps its own tuple of documents."""
    documents = list(DOCUMENTS)
    request = EvaluationRequest("q", documents, "a")
    documents.clear()
    assert 4 == len(request.documents)
    with pytest.raises(AttributeError):
        request.response = "other"


@pytest.mark.parametrize(
    "build",
    [
        lambda: EvaluationRequest("q", ["text"], "a"),
        lambda: EvaluationRequest("q", "text", "a"),
        lambda: EvaluationRequest("q", [], None),
        lambda: EvaluationRequest(None, [], "a"),
        lambda: Document(5),
        lambda: Document("x", 5),
    ],
)
def test_wrong_types_are_refused_where_they_are_given(build):
    """A text that is no document, or a number that is no text, is bad input and breaks no batch later."""
    with pytest.raises(BadInput):
        build()
