"""What judges on servers have done to those who relied on them, through the one door that opens judges."""

from contextlib import ExitStack

import pytest

from minicheck_eval import Document, EvaluationRequest, Outcome, open_judge
from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.errors import BackendError, IntegrityError
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.run import run_cases
from minicheck_eval.testing import FakeOllama, Faults

FACT = "The ferry leaves from pier four."


def says(text):
    """Yes where the claim stands word for word in the document."""
    document, _, claim = text.rpartition("\nClaim: ")
    return "Yes." if claim in document else "No."


def knows(text):
    return 0.97 if says(text) == "Yes." else 0.02


@pytest.fixture
def judge():
    """Open the judge on a fake server; a wait before a request is repeated takes no time."""
    with ExitStack() as stack:

        def open_one(fake, **options):
            opened = open_judge(f"ollama:{fake.url}#bespoke-minicheck", **options)
            for backend in opened.backends.values():
                backend.transport._sleep = lambda _: None
            stack.callback(opened.close)
            return opened

        yield open_one


def request(i, claim=FACT):
    return EvaluationRequest("", [Document(f"{FACT} It is ferry number {i}.")], claim)


@pytest.mark.parametrize(("reading", "text"), [("auto", "Well, it depends."), ("words", "Based on the text, yes.")])
def test_pitfall_06_a_judge_that_answers_in_prose_is_refused_before_the_run(judge, reading, text):
    """It is asked two questions when it is opened, and the error shows what it said."""
    with FakeOllama(lambda _: text) as server, pytest.raises(BackendError, match=text[:5]):
        judge(server, reading=reading)


def test_pitfall_03_strict_comparison_is_there_to_be_measured_against(judge):
    """A reply of "Yes." fails where it must equal yes, and passes by the rule: the identity says which one it was."""
    with FakeOllama(says) as server:
        outcomes = {}
        for reading in ("strict", "words"):
            opened = judge(server, reading=reading)
            assert reading == opened.identity.reading
            outcomes[reading] = opened.evaluate(request(1)).outcome
        assert {"strict": Outcome.FAIL, "words": Outcome.PASS} == outcomes


@pytest.mark.parametrize(("era", "reading"), [("0.12.10", "words"), ("0.12.11", "first-token")])
def test_pitfall_07_whether_scores_are_graded_is_recorded(judge, era, reading):
    """An era without probabilities is read from words, and the identity says so: its scores are 0 and 1."""
    with FakeOllama(knows, era=era) as server:
        opened = judge(server)
        assert reading == opened.identity.reading
        expected = 1.0 if reading == "words" else pytest.approx(0.97)
        assert expected == opened.evaluate(request(1)).score


def test_pitfall_26_other_weights_under_the_same_name_are_another_judge(judge):
    """The digest of the model is a part of the judge's identity."""
    with FakeOllama(knows) as server:
        first, same = judge(server).identity, judge(server).identity
        server.swap("bespoke-minicheck", "f" * 64)
        other = judge(server).identity
        assert first.digest == same.digest != other.digest
        assert ("f" * 64, other.judge) == (other.revision, first.judge)


def test_pitfall_06886_what_was_judged_before_a_swap_stands_and_nothing_after_it(judge):
    """A stream hands on the verdicts of the model that was opened, and then ends with an error."""
    with FakeOllama(knows) as server:
        stream = judge(server).evaluate_stream([[request(i)] for i in range(3)])
        assert next(stream)[0].passed
        server.swap("bespoke-minicheck", "f" * 64)
        with pytest.raises(IntegrityError, match="bespoke-minicheck"):
            list(stream)


def test_pitfall_29_a_judge_tells_what_it_cost(judge):
    """Prompts, tokens, requests and seconds, by the name of the judge."""
    with FakeOllama(knows, seconds_per_request=0.01) as server:
        opened = judge(server)
        [before] = opened.usages.values()
        opened.evaluate_batch([request(i) for i in range(5)])
        [used] = [usage.minus(before) for usage in opened.usages.values()]
        assert (5, True, True) == (used.prompts, used.asked_tokens > 5 * 50, used.seconds > 5 * 0.01)


def test_pitfall_16_two_thousand_cases_and_five_percent_of_every_fault(judge, tmp_path):
    """Each verdict given is the undisturbed one, the rest is error or invalid by its kind; coverage says how many."""
    kinds = ["burst_503", "reset", "half_json", "torn_body", "midstream_error", "slow", "hang"]
    lasting = {"no_logprobs": "error", "empty_reply": "invalid", "prose": "invalid", "hang": "error"}
    faults = Faults(**dict.fromkeys([*kinds, "no_logprobs", "empty_reply", "prose", "silent_cut"], 0.05), times=2)
    cases = [
        Case(id=str(i), documents=request(i).documents, answer=FACT if i % 2 else "It snows.") for i in range(2000)
    ]
    with FakeOllama(knows, slots=4) as server:
        opened = judge(server, server=ServerOptions(concurrency=32, timeout_s=1.0))
        server.faults = faults
        run = run_cases(
            cases,
            evaluators={"fact-checking": opened},
            identities={"fact-checking": opened.identity},
            out=tmp_path / "run",
            arguments={},
            meta={},
            cases_path=tmp_path / "cases.jsonl",
            cases_digest="c" * 64,
            batch_cases=500,
        )
        chats = [body["messages"] for body in server.asked_for("/api/chat")]
        met = {messages[-1]["content"]: faults.of(server.written(messages)) for messages in chats}

    asked = [f"Document: {case.documents[0].text}\nClaim: {case.answer}" for case in cases]
    expected = {str(i): lasting.get(met[text], "pass" if i % 2 else "fail") for i, text in enumerate(asked)}
    found = {record["id"]: record["verdicts"]["fact-checking"]["outcome"] for record in run.records()}
    assert expected == found
    overall = run.summary.evaluators[0].overall
    judged = sum(outcome in ("pass", "fail") for outcome in expected.values())
    assert (judged, judged / 2000) == (overall.judged, overall.coverage)
    assert (1400, True) < (judged, judged < 1700)
    assert {"hang", "reset", "prose", "no_logprobs"} <= set(met.values())
