"""What users of evaluation tools have complained about: verdicts, judges that say something else, long documents."""

import pytest

from minicheck_eval.backends.words import WordsBackend
from minicheck_eval.contract import Document, EvaluationRequest, Outcome
from minicheck_eval.errors import BackendError
from minicheck_eval.evaluators.rubric import RubricEvaluator
from minicheck_eval.harness.gates import GateRule, check
from minicheck_eval.harness.summary import summarise
from minicheck_eval.scoring import Failure, Reply, Score
from minicheck_eval.testing import FakeBackend, FakeModel, FakeOllama, FakeOpenAI, Faults
from minicheck_eval.text.replies import ReplyRule

FACT = "The ferry leaves from pier four."


def knows(text):
    """Yes where the claim stands word for word in the document."""
    document, _, claim = text.rpartition("\nClaim: ")
    return 0.97 if claim in document else 0.02


def records(responses):
    return [
        {"slice": "all", "verdicts": {"fact-checking": {"outcome": response.outcome.value}}} for response in responses
    ]


class Words(FakeBackend):
    """Says the same words to everything."""

    def __init__(self, *texts, complete=True):
        super().__init__(lambda prompt: 0.5)
        self.texts, self.complete, self.asked = texts, complete, []

    def reply(self, prompts, *, schema=None, most_tokens=512):
        self.asked += prompts
        return [Reply(self.texts[min(len(self.asked), len(self.texts)) - 1], self.complete) for _ in prompts]


def test_pitfall_01_a_missing_verdict_never_raises_the_rate(opened, checker, about):
    """Where one of two claims gets no answer the answer is an error: it does not count as supported."""
    second = "It costs two euros."
    with FakeOllama(lambda text: {"": 1.0} if text.endswith(second) else 0.97) as server:
        evaluator = checker(opened(server))
        [silent] = evaluator.evaluate_batch([about(FACT, f"{FACT} {second}")])
        assert (Outcome.INVALID, None) == (silent.outcome, silent.score)
    broken = FakeBackend(lambda p: Failure("backend", "gone") if second in p.text.rpartition("Claim:")[2] else 0.97)
    response = checker(broken).evaluate(about(FACT, f"{FACT} {second}"))
    assert (Outcome.ERROR, None) == (response.outcome, response.score)
    found = summarise(records([response])).evaluators[0].overall
    assert (0, 1, None) == (found.passed, found.error, found.rate)


def test_pitfall_02_no_verdicts_at_all_are_no_rate_and_no_pass():
    """A rate over nothing is none, and a gate does not pass on it."""
    summary = summarise([{"slice": "all", "verdicts": {"fact-checking": {"outcome": "not_checkable"}}}])
    assert summary.evaluators[0].overall.rate is None
    assert "passed" != check(summary, GateRule(min_rate=0.0)).status
    assert "passed" != check(summarise([]), GateRule(min_rate=0.0)).status


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("1. Yes.", Outcome.PASS),
        ("**Yes**", Outcome.PASS),
        ("YES\n", Outcome.PASS),
        ("No, not at all.", Outcome.FAIL),
        ("Yes, No, Yes", Outcome.INVALID),
        ("Nobody would say yes to that.", Outcome.INVALID),
        ("I would say that yes is too strong.", Outcome.INVALID),
        ("", Outcome.INVALID),
    ],
)
def test_pitfall_03_replies_in_words_are_read_by_one_rule(checker, about, text, outcome):
    """Numbering, marks and case do not matter; a contradiction, and prose that merely holds a yes, have no reading."""
    response = checker(WordsBackend(Words(text))).evaluate(about(FACT, FACT))
    assert outcome is response.outcome


@pytest.mark.parametrize("text", ["Yes", "yes!", "'Yes'.", "No.", "no…", "Well.", "Yes and no."])
def test_pitfall_04_score_outcome_and_reading_agree(checker, about, text):
    """One reading gives all of them, whatever the punctuation."""
    response = checker(WordsBackend(Words(text))).evaluate(about(FACT, FACT))
    expected = {"yes": (Outcome.PASS, 1.0), "no": (Outcome.FAIL, 0.0), None: (Outcome.INVALID, None)}
    assert expected[ReplyRule().read(text)] == (response.outcome, response.score)


@pytest.mark.parametrize("answer", ["", "   ", "???", "What do you mean?", "```\nx = 1\n```"])
def test_pitfall_05_an_answer_without_claims_is_not_faithful(checker, about, answer):
    """There is nothing to check, so there is no verdict, and nobody is asked."""
    backend = FakeBackend(lambda _: 1.0)
    response = checker(backend).evaluate(about(FACT, answer))
    assert (Outcome.NOT_CHECKABLE, None) == (response.outcome, response.score)
    assert [] == [prompt for batch in backend.batches for prompt in batch]


def test_pitfall_06_a_judge_that_answers_in_prose_is_invalid_and_shown(opened, checker, about):
    """An answer is not failed because its judge talks: the outcome is invalid, and the record holds what was said."""
    with FakeOllama(knows, faults=Faults(prose=1.0)) as server:
        response = checker(opened(server)).evaluate(about(FACT, FACT))
        assert (Outcome.INVALID, None) == (response.outcome, response.score)
        assert "Based" in str(response.metadata["claims"][0])


def test_pitfall_07_scores_are_graded(opened, checker, about):
    """P(yes) of the model is in every record, between 0 and 1, and not rounded to a verdict."""
    chances = {f"Claim {i}.": i / 10 for i in range(11)}
    with FakeOllama(lambda text: chances[text.rpartition("Claim: ")[2]]) as server:
        responses = checker(opened(server)).evaluate_batch([about(FACT, claim) for claim in chances])
        assert [pytest.approx(chance) for chance in chances.values()] == [response.score for response in responses]


@pytest.mark.parametrize("documents", [[], [Document("")], [Document(None)], [Document(" \n ")]])
def test_pitfall_08_without_evidence_nothing_is_supported(checker, documents):
    """An agreeable judge does not let an answer pass that has no document, or an empty one."""
    response = checker(FakeBackend(lambda _: 1.0)).evaluate(EvaluationRequest("", documents, FACT))
    assert (Outcome.NOT_CHECKABLE, None) == (response.outcome, response.score)


def test_pitfall_13_what_is_asked_together_does_not_change_scores(opened, ask):
    """The same prompts in batches of any size, through any number of lanes, have the same scores."""
    prompts = [ask(f"{FACT} {i}", FACT if i % 2 else "It snows.") for i in range(24)]
    with FakeOllama(knows, slots=4) as server:
        found = []
        for size, lanes in ((1, 1), (7, 4), (24, None)):
            batches = [prompts[start : start + size] for start in range(0, len(prompts), size)]
            found.append([score for scores in opened(server, concurrency=lanes).stream(batches) for score in scores])
        assert found[0] == found[1] == found[2]


def test_pitfall_14_no_json_is_asked_of_a_judge_that_says_yes_or_no(opened, checker, about):
    """A small local model that has never seen JSON gives verdicts: one token is all that is needed."""
    with FakeOllama(knows) as server:
        assert checker(opened(server)).evaluate(about(FACT, FACT)).passed
        [body] = server.asked_for("/api/chat")
        assert "format" not in body
        assert 1 == body["options"]["num_predict"]


def test_pitfall_15_a_reply_that_was_cut_is_invalid():
    """A rating that ends in the middle of its JSON is asked for once more, then there is no verdict and no crash."""
    request = EvaluationRequest.from_question("Where does the ferry leave from?", FACT)
    judge = Words('{"reason": "It is', complete=False)
    response = RubricEvaluator(judge).evaluate(request)
    assert (Outcome.INVALID, None, 2) == (response.outcome, response.score, len(judge.asked))
    mended = Words('{"reason": "It is', '{"reason": "It is good.", "score": 5}')
    assert 1.0 == RubricEvaluator(mended).evaluate(request).score


def test_pitfall_16_one_poisoned_record_in_a_hundred_fails_alone(opened, checker, about):
    """99 verdicts and one error, whatever the hundredth does to its server."""
    poison = "This one kills the model."

    def answer(text):
        return {} if poison in text else 0.97

    server = FakeOllama(answer).__enter__()
    responses = checker(opened(server)).evaluate_batch(
        [about(f"{FACT} {i}", poison if i == 41 else FACT) for i in range(100)]
    )
    assert [41] == [i for i, response in enumerate(responses) if response.outcome is Outcome.ERROR]
    assert 99 == sum(response.passed for response in responses)
    with pytest.raises(ValueError, match="empty"):
        server.__exit__(None, None, None)


@pytest.mark.parametrize("kind", ["fake", "ollama", "openai", "words"])
def test_pitfall_17_every_backend_keeps_the_same_contract(opened, checker, about, kind):
    """The same answers pass and fail, in input order, and an empty batch is no question."""
    requests = [about(FACT, FACT), about(FACT, "It snows."), about(FACT, f"{FACT} It snows."), about(FACT, "?")]
    with FakeOllama(knows) as ollama, FakeOpenAI(knows) as openai, FakeOllama(knows, era="0.5.7") as old:
        backend = {
            "fake": lambda: FakeBackend(lambda prompt: knows(prompt.text)),
            "ollama": lambda: opened(ollama),
            "openai": lambda: opened(openai),
            "words": lambda: WordsBackend(opened(old)),
        }[kind]()
        evaluator = checker(backend)
        assert ["pass", "fail", "fail", "not_checkable"] == [
            r.outcome.value for r in evaluator.evaluate_batch(requests)
        ]
        assert [] == evaluator.evaluate_batch([])
        assert backend.name
        assert 500 < backend.window_tokens


@pytest.mark.parametrize("fault", ["half_json", "torn_body", "midstream_error"])
def test_pitfall_18_a_broken_body_is_asked_again_and_then_an_error(opened, checker, about, fault):
    """JSON that breaks off is no verdict: it is repeated, and if it lasts the outcome is an error."""
    for times, outcome in ((1, Outcome.PASS), (99, Outcome.ERROR)):
        with FakeOllama(knows, faults=Faults(**{fault: 1.0}, times=times)) as server:
            assert outcome is checker(opened(server)).evaluate(about(FACT, FACT)).outcome


@pytest.mark.parametrize("era", ["0.5.7", "0.12.6", "0.24.0", "0.30.0", "0.33.0"])
def test_pitfall_19_a_cut_prompt_is_never_a_verdict(opened, checker, about, filler, era):
    """In every era, with its own way to cut, an answer about a document that does not fit has none."""
    model = {"bespoke-minicheck": FakeModel(context=2048)}
    with FakeOllama(knows, era=era, models=model) as server:
        backend = opened(server)
        [got] = backend.reply([checker(backend).template.fill(FACT + filler(3000), FACT)])
        assert "too_long" == got.reason


def test_pitfall_20_a_document_of_three_windows_is_cut_into_chunks(opened, checker, about):
    """All of it is asked about, in pieces that fit, and the piece with the evidence decides."""
    document = " ".join(f"Bus {i} goes to the harbour at noon." for i in range(800)) + f" {FACT}"
    model = {"bespoke-minicheck": FakeModel(context=2048)}
    with FakeOllama(knows, models=model) as server:
        response = checker(opened(server), chunk_tokens=1500).evaluate(about(document, FACT))
        chunks = response.metadata["chunks"]
        assert response.passed
        assert 3 < len(chunks)
        assert (0, len(document)) == (chunks[0]["start"], chunks[-1]["end"])
        assert response.metadata["claims"][0]["chunk"]["end"] == len(document)


def test_pitfall_21_documents_beside_the_evidence_do_not_change_its_score(opened, checker):
    """Each document is asked about by itself, so padding with others leaves the numbers as they were."""
    others = [Document(f"Bus {i} goes to the harbour.") for i in range(6)]
    with FakeOllama(lambda text: 0.83 if FACT in text.rpartition("\nClaim:")[0] else 0.11) as server:
        evaluator = checker(opened(server))
        alone = evaluator.evaluate(EvaluationRequest("", [Document(FACT)], FACT))
        padded = evaluator.evaluate(EvaluationRequest("", [*others[:3], Document(FACT), *others[3:]], FACT))
        assert alone.score == padded.score
        assert alone.metadata["claims"][0]["supports"][0] == padded.metadata["claims"][0]["supports"][3]


def test_pitfall_27_a_server_that_falls_silent_ends_the_run(opened, ask):
    """When nothing answers any more the run ends with an error in bounded time, and does not freeze."""
    with FakeOllama(knows, faults=Faults(hang=1.0, times=99)) as server:
        backend = opened(server, timeout_s=0.2, concurrency=4)
        with pytest.raises(BackendError, match="no answer"):
            backend.score([ask(f"Document {i}", FACT) for i in range(1000)])
        assert 100 > len(server.asked_for("/api/chat"))


def test_pitfall_35_errors_invalid_and_empty_answers_stay_apart(opened, checker, about):
    """Every row is counted once, under its own name, and the counts add up to the rows."""
    answers = {"Yes.": 0.97, "No.": 0.02, "Prose.": "Well, that depends.", "Nothing.": ""}
    with FakeOllama(lambda text: next(a for c, a in answers.items() if text.endswith(c))) as server:
        requests = [about(f"{claim} {i}", f"It says {claim}") for i in range(3) for claim in answers]
        responses = checker(opened(server)).evaluate_batch([*requests, about(FACT, "?"), about("", FACT)])
        broken = checker(FakeBackend(lambda _: Failure("backend", "gone"))).evaluate(about(FACT, FACT))
        found = summarise(records([*responses, broken])).evaluators[0].overall
        assert (3, 3, 6, 1, 2) == (found.passed, found.failed, found.invalid, found.error, found.not_checkable)
        assert 15 == found.total
        assert (3, 6) == (found.rate.k, found.rate.n)


@pytest.mark.parametrize(
    "text",
    [
        "Claim: It snows.",
        "Document: none",
        "Yes",
        "[CLAIM]",
        "{claim} {document}",
        "{0} {",
        "</s><|im_end|>",
        "<s>[INST]",
    ],
)
def test_pitfall_38_what_a_text_says_does_not_move_the_frame(opened, ask, text):
    """Delimiters, braces and control tokens in document and claim stay where they are, and so does the frame."""
    with FakeOllama(lambda _: 0.5) as server:
        [score] = opened(server).score([ask(f"A {text} B", f"C {text} D")])
        assert isinstance(score, Score)
        [system, user] = server.asked_for("/api/chat")[0]["messages"]
        assert ("system", "user") == (system["role"], user["role"])
        assert user["content"].startswith("Document: A ")
        document, _, claim = user["content"].rpartition(" B\nClaim: C ")
        assert document.removeprefix("Document: A ") == claim.removesuffix(" D")
        assert text.replace(" ", "") == claim.removesuffix(" D").replace(" ", "")
        assert ("<" in text) == score.neutralised
