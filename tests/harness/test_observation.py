"""What applications return: of one's own, and in the shapes of LangChain, LlamaIndex and Haystack."""

from types import SimpleNamespace as Thing

import pytest

from minicheck_eval import Document, Observation
from minicheck_eval.errors import BadInput
from minicheck_eval.harness.observation import read_observation

TEXT = "The ferry leaves at nine."
LANGCHAIN = Thing(page_content=TEXT, metadata={"source": "a.pdf", "page": 3}, id=None, type="Document")
LLAMA_NODE = Thing(text=TEXT, node_id="n1", metadata={"page": 3})
HAYSTACK = Thing(content=TEXT, id="h1", meta={"page": 3}, score=0.8)
SHAPES = {
    "own dict": ({"answer": "At nine.", "documents": [{"id": "d", "text": TEXT}]}, "d"),
    "own dict with texts": ({"answer": "At nine.", "documents": [TEXT]}, None),
    "LangChain retrieval chain": ({"input": "When?", "context": [LANGCHAIN], "answer": "At nine."}, "a.pdf"),
    "LangChain RetrievalQA": ({"query": "When?", "result": "At nine.", "source_documents": [LANGCHAIN]}, "a.pdf"),
    "LangChain message": ({"context": [LANGCHAIN], "answer": Thing(content="At nine.", type="ai")}, "a.pdf"),
    "LangChain blocks": (
        {"context": [LANGCHAIN], "answer": Thing(content=[{"type": "text", "text": "At nine."}], text="At nine.")},
        "a.pdf",
    ),
    "LlamaIndex": (Thing(response="At nine.", source_nodes=[Thing(node=LLAMA_NODE, score=0.7)], metadata={}), "n1"),
    "Haystack answer": (Thing(data="At nine.", query="When?", documents=[HAYSTACK], meta={}), "h1"),
    "Haystack answer builder": (
        {"answer_builder": {"answers": [Thing(data="At nine.", documents=[HAYSTACK])]}, "llm": {"replies": ["No."]}},
        "h1",
    ),
    "Haystack replies": (
        {
            "retriever": {"documents": [HAYSTACK, HAYSTACK]},
            "ranker": {"documents": [HAYSTACK]},
            "llm": {"replies": ["At nine."]},
        },
        "h1",
    ),
    "Haystack chat replies": (
        {"retriever": {"documents": [HAYSTACK]}, "llm": {"replies": [Thing(text="At nine.")]}},
        "h1",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_results_of_common_frameworks_are_read(shape):
    """Answer, texts and ids come from where each framework puts them, without importing any."""
    value, name = SHAPES[shape]
    found = read_observation(value)
    assert ("At nine.", [(name, TEXT)]) == (found.answer, [(d.id, d.text) for d in found.documents])


def test_an_observation_is_taken_as_it_is():
    """It may hold texts in place of documents, and no documents at all."""
    seen = Observation("At nine.", [TEXT, Document("x", "d")])
    assert seen is read_observation(seen)
    assert (Document(TEXT), Document("x", "d")) == seen.documents
    assert () == read_observation({"answer": "I do not know.", "documents": []}).documents


def test_metadata_become_values_of_json():
    """What JSON has no value for is kept as text, so that a record can be written."""
    value = {
        "answer": "a",
        "documents": [Thing(page_content="t", metadata={"when": SHAPES.__class__, "x": float("nan")})],
    }
    (document,) = read_observation(value).documents
    assert {"when": "<class 'dict'>", "x": "NaN"} == document.metadata


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "returned nothing, without an answer"),
        ("At nine.", "returned a str, without an answer"),
        ({}, "a dict with nothing, without an answer"),
        ({"answer": "a"}, "a dict with answer, without documents"),
        ({"answer": None, "documents": []}, "without an answer"),
        ({"answer": 9, "documents": []}, "the answer of the application is a int"),
        ({"answer": "a", "documents": "one"}, "the documents of the application are a str"),
        ({"answer": "a", "documents": [9]}, "a document of the application is a int, without text"),
        ({"llm": {"replies": ["a"]}}, "without documents"),
        ({"llm": {"replies": []}}, "without an answer"),
    ],
)
def test_what_cannot_be_read_is_told(value, message):
    """The error says what was returned, and the hint what should have been."""
    with pytest.raises(BadInput, match=message) as caught:
        read_observation(value)
    assert "return" in caught.value.hint


@pytest.mark.parametrize(("answer", "documents"), [(None, []), ("a", "b"), ("a", [3])])
def test_an_observation_refuses_what_is_none(answer, documents):
    """An answer is a string, and documents are a list of documents or texts."""
    with pytest.raises(BadInput):
        Observation(answer, documents)
