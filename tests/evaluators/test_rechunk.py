import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval import Document, EvaluationRequest, Outcome
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.scoring import Failure, PromptTemplate

TEMPLATE = PromptTemplate("Document: {document}\nClaim:", " {claim}")
LOST = Failure("backend", "gone")


def evaluator(window, answer=None, **more):
    """Make an evaluator over a backend that believes in a large window and takes so many words."""

    def answered(prompt):
        document, claim = prompt.prefix[1].text, prompt.suffix[1].text
        if len(prompt.text.split()) > window:
            return Failure("too_long", f"more than {window} words")
        return answer(document) if answer else (0.9 if claim in document else 0.2)

    config = DecisionConfig(threshold=0.5)
    return FactCheckingEvaluator(
        FakeBackend(answered), template=TEMPLATE, chunk_tokens=500, decision=config, **{"rechunk": True, **more}
    )


def facts(count):
    return [f"Fact number {number} is true." for number in range(count)]


def request(document, answer):
    return EvaluationRequest.from_documents([Document(document, "d")], answer)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(12, 60), st.lists(st.integers(0, 60), min_size=1, max_size=3, unique=True))
def test_a_small_window_gives_the_verdict_of_a_large_one(count, window, claimed):
    """What was too long is asked in verbatim parts that fit and together are all of the document."""
    document = "  ".join(facts(count))
    asked = request(document, " ".join(f"Fact number {number} is true." for number in claimed))
    checker = evaluator(window)
    response, expected = checker.evaluate(asked), evaluator(1000).evaluate(asked)
    assert (expected.outcome, expected.score) == (response.outcome, response.score)
    assert expected.feedback.splitlines()[0] == response.feedback.splitlines()[0]
    assert expected.metadata["chunks"] == response.metadata["chunks"]
    for claim, whole in zip(response.metadata["claims"], expected.metadata["claims"], strict=True):
        assert whole["supports"] == claim["supports"]
        if "parts" in claim:
            texts = [document[part["start"] : part["end"]] for part in claim["parts"]]
            assert document.split() == " ".join(texts).split()
            assert claim["supports"] == [max(part["support"] for part in claim["parts"])]
            if claim["outcome"] == "pass":
                assert claim["text"] in document[claim["chunk"]["start"] : claim["chunk"]["end"]]
    prompts = [prompt for batch in checker.backend.batches for prompt in batch]
    assert len(prompts) == len(set(prompts))
    json.dumps(response.to_json())


def test_only_what_did_not_fit_is_cut():
    """Chunks that fit are asked once, and a claim for which all of them fit has no parts."""
    checker = evaluator(20)
    documents = [Document("Fact number 7 is true.", "short"), Document(" ".join(facts(4)), "long")]
    long_claim = "Fact number 1 is true, and so it has always been said to be by everybody."
    response = checker.evaluate(EvaluationRequest.from_documents(documents, f"Fact number 7 is true. {long_claim}"))
    first, second = response.metadata["claims"]
    assert ("short", 0.9, [0.9, 0.2]) == (first["document"], first["support"], first["supports"])
    assert [("short", 0), ("long", 0), ("long", 46)] == [(p["document"], p["start"]) for p in first["parts"]]
    assert ("fail", [0.2, 0.2]) == (second["outcome"], second["supports"])
    roomy = evaluator(30).evaluate(EvaluationRequest.from_documents(documents, "Fact number 7 is true."))
    assert "parts" not in roomy.metadata["claims"][0]


def test_what_cannot_be_cut_is_still_too_long():
    """A claim that is too long by itself has no verdict, and is not asked about every word of the document."""
    checker = evaluator(40)
    claim = " ".join(["word"] * 60)
    response = checker.evaluate(request(" ".join(facts(100)), claim))
    assert (Outcome.INVALID, None) == (response.outcome, response.score)
    (found,) = response.metadata["claims"]
    assert ("too_long", [None]) == (found["reason"], found["supports"])
    assert all(part["support"] is None for part in found["parts"])
    assert sum(map(len, checker.backend.batches)) < 250


@pytest.mark.parametrize("document", ["x", "x" * 900, "… x …", "a b"])
def test_any_document_comes_to_an_end(document):
    """Where nothing fits, cutting ends, with the reason."""
    response = evaluator(0).evaluate(request(document, "Dogs bark."))
    assert (Outcome.INVALID, "too_long") == (response.outcome, response.metadata["claims"][0]["reason"])


def test_a_part_without_a_score_is_no_no():
    """One part that was lost leaves its chunk without a support, and its claim an error unless another part passes."""
    document = " ".join(facts(8))
    lost = evaluator(30, lambda part: LOST if "number 0" in part else 0.2).evaluate(request(document, "Dogs bark."))
    assert Outcome.ERROR is lost.outcome
    assert [None] == lost.metadata["claims"][0]["supports"]
    found = evaluator(30, lambda part: LOST if "number 0" in part else 0.9).evaluate(request(document, "Dogs bark."))
    assert (Outcome.PASS, 0.9) == (found.outcome, found.score)


def test_cases_that_share_a_document_are_asked_about_the_same_parts():
    """Parts that requests of a batch have in common are asked once, and each response belongs to its request."""
    document = " ".join(facts(20))
    checker = evaluator(40)
    requests = [request(document, f"Fact number {n} is true.") for n in (3, 3, 50, 19)]
    found = [[r.outcome.value for r in batch] for batch in checker.evaluate_stream([requests, [], requests[:1]])]
    assert [["pass", "pass", "fail", "pass"], [], ["pass"]] == found
    prompts = [prompt for batch in checker.backend.batches[:4] for prompt in batch]
    assert len(prompts) == len(set(prompts))


def test_nothing_is_cut_unless_it_is_asked_for():
    """By default a chunk that is too long makes its answer invalid."""
    response = evaluator(20, rechunk=False).evaluate(request(" ".join(facts(20)), "Fact number 3 is true."))
    assert (Outcome.INVALID, None) == (response.outcome, response.score)
