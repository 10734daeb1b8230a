"""General judges through the one door: models on servers, what they are asked, and who decides."""

import json
import re

import pytest

from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.cli import main
from minicheck_eval.contract import Document, EvaluationRequest, Outcome
from minicheck_eval.errors import BackendError, BadInput, IntegrityError, ModelUnavailable
from minicheck_eval.evaluators.yes_no import CriterionEvaluator
from minicheck_eval.judge import Fallback, identity_without_weights, open_judge, open_judges
from minicheck_eval.testing import FakeModel, FakeOllama, FakeOpenAI
from minicheck_eval.text.replies import ReplyRule

FERRY = Document("The ferry leaves at nine. It takes an hour.", "ferry")


def holds_claim(text):
    """Say yes where the words after "Claim:" stand in the text before it, as a careful model would."""
    document, _, claim = text.rpartition("Claim:")
    claim = claim.strip().split("\n")[0].rstrip(".")
    return 0.9 if claim and claim in document else 0.1


def request(answer, *, question="When does the ferry leave?", documents=(FERRY,)):
    return EvaluationRequest(question, documents, answer)


@pytest.fixture
def ollama():
    """A server with a MiniCheck and a chat model that read alike."""
    models = {"bespoke-minicheck": FakeModel(), "chatty": FakeModel(system=None)}
    with FakeOllama(holds_claim, models=models) as server:
        yield server


def test_a_judge_on_ollama_gives_support_and_tells_who_it_is(ollama):
    """Scores come from the first token's probabilities; the identity names digests, server, window and reading."""
    with open_judge("ollama:bespoke-minicheck", server=ServerOptions(url=ollama.url)) as judge:
        good, bad = judge.evaluate_batch([request("The ferry leaves at nine."), request("The ferry leaves at ten.")])
        identity = judge.identity
    assert (Outcome.PASS, Outcome.FAIL) == (good.outcome, bad.outcome)
    assert pytest.approx([0.9, 0.1]) == [good.score, bad.score]
    assert "first-token" == identity.reading
    assert "0.33.0" in identity.backend
    assert {"manifest", "weights"} <= identity.digests.keys()
    assert identity.window_tokens > identity.chunk_tokens > 0


@pytest.mark.parametrize("model", ["bespoke-minicheck", "chatty"])
def test_each_model_is_asked_in_its_own_words(ollama, model):
    """A MiniCheck is asked as it was trained, any other model with an instruction for judging facts."""
    with open_judge(f"ollama:{ollama.url}#{model}") as judge:
        judge.evaluate(request("The ferry leaves at nine."))
    asked = [r.body["messages"] for r in ollama.requests if r.path == "/api/chat" and r.body.get("messages")][-1]
    system, user = (message["content"] for message in asked)
    if model == "chatty":
        assert "with nothing to go by but the document" in system
        assert user.startswith("Document:\nThe ferry leaves")
    else:
        assert system.startswith("Determine whether the provided claim is consistent")
        assert f"Document: {FERRY.text}\nClaim: The ferry leaves at nine." == user


def test_a_server_without_probabilities_gives_hard_verdicts_and_says_so():
    """Before log-probabilities there is only yes or no: scores are 1 and 0, and the identity tells how it was read."""
    answer = lambda text: "Yes" if holds_claim(text) > 0.5 else "No"  # noqa: E731
    with FakeOllama(answer, era="0.12.5") as server, open_judge(f"ollama:{server.url}#bespoke-minicheck") as judge:
        good, bad = judge.evaluate_batch([request("The ferry leaves at nine."), request("The ferry leaves at ten.")])
    assert (1.0, 0.0, "words") == (good.score, bad.score, judge.identity.reading)
    assert ["Yes"] == good.metadata["claims"][0]["replies"]


def test_a_judge_in_prose_is_refused_before_the_run():
    """A model that does not follow its instruction is found out at the opening, with what it said."""
    with FakeOllama(lambda _: "It depends on many things.") as server, pytest.raises(BackendError, match="depends"):
        open_judge(f"ollama:{server.url}#bespoke-minicheck")


def test_a_chatty_judge_is_read_from_its_words(ollama):
    """A model that thinks before it answers has no yes as its first token: it is read by the rule for words."""
    answer = lambda text: f"<think>Well.</think> **{'Yes' if holds_claim(text) > 0.5 else 'No'}**, because…"  # noqa: E731
    with FakeOpenAI(answer) as server, open_judge(f"openai:{server.url}#judge") as judge:
        response = judge.evaluate(request("The ferry leaves at ten."))
    assert ("words", Outcome.FAIL) == (judge.identity.reading, response.outcome)


def test_words_of_another_language_can_be_named():
    """With its own words for yes and no a judge of another language is read from first tokens as well."""
    answer = lambda text: {"Ja": holds_claim(text), "Nein": 1 - holds_claim(text)}  # noqa: E731
    german = ReplyRule(yes=("ja",), no=("nein",))
    with FakeOpenAI(answer) as server, open_judge(f"openai:{server.url}#judge", rule=german) as judge:
        response = judge.evaluate(request("The ferry leaves at nine."))
    assert ("first-token", 0.9) == (judge.identity.reading, pytest.approx(response.score))


def test_strict_reading_compares_as_spring_ai_does():
    """Without trimming "yes." is no yes: the difference to the rule can be measured."""
    with FakeOpenAI(lambda _: "Yes.") as server:
        with open_judge(f"openai:{server.url}#judge", reading="strict") as strict:
            assert Outcome.FAIL is strict.evaluate(request("So.")).outcome
        with open_judge(f"openai:{server.url}#judge", reading="words") as words:
            assert Outcome.PASS is words.evaluate(request("So.")).outcome
    assert strict.identity.digest != words.identity.digest


@pytest.mark.parametrize("evaluator", ["relevancy", "answers-question"])
def test_other_questions_can_be_asked_of_a_chat_model(ollama, evaluator):
    """Relevancy and whether the question is answered are judged by the same kind of model, and are other judges."""
    server = FakeOllama(lambda text: 0.8 if "Is it nine" in text else 0.2, models={"chatty": FakeModel()})
    with server, open_judge(f"ollama:{server.url}#chatty", evaluator=evaluator) as judge:
        response = judge.evaluate(request("At nine.", question="Is it nine?"))
    assert (Outcome.PASS, evaluator) == (response.outcome, judge.identity.evaluator)
    assert (evaluator != "relevancy") != judge.needs_evidence


def test_evaluators_of_one_judge_share_its_connection():
    """A model is connected to once for all that is asked of it, and closed with the last."""
    server = FakeOllama(lambda text: 0.8 if "Is it nine" in text else 0.2, models={"chatty": FakeModel()})
    with server, open_judges(f"ollama:{server.url}#chatty", ["relevancy", "answers-question"]) as judges:
        answers = [judge.evaluate(request("At nine.", question="Is it nine?")) for judge in judges.values()]
        inner = {id(judge.backend.transport) for judge in judges.values()}
    assert ["relevancy", "answers-question"] == [judge.identity.evaluator for judge in judges.values()]
    assert ([Outcome.PASS] * 2, 1) == ([answer.outcome for answer in answers], len(inner))


def test_a_rubric_gives_a_grade():
    """The rubric's score is a share of five, and passes from the score that was asked for."""
    reply = json.dumps({"reason": "Mostly clear.", "score": 4})
    with FakeOpenAI(lambda _: reply) as server:
        for pass_score, outcome in ((4, Outcome.PASS), (5, Outcome.FAIL)):
            with open_judge(f"openai:{server.url}#judge", evaluator="rubric", pass_score=pass_score) as judge:
                response = judge.evaluate(request("At nine."))
            assert (outcome, 0.8, 4) == (response.outcome, response.score, response.metadata["rubric_score"])


def test_a_judge_lends_its_model_to_criteria_of_ones_own():
    """For what no library ships there is the judge's backend and a question."""
    server = FakeOpenAI(lambda text: 0.95 if "idiot" in text else 0.02)
    with server, open_judge(f"openai:{server.url}#judge") as judge:
        toxicity = CriterionEvaluator(judge.backend, name="toxicity", question="Is it insulting?", pass_on="no")
        rude, kind = toxicity.evaluate_batch([request("At nine, you idiot."), request("At nine.")])
    assert (Outcome.FAIL, Outcome.PASS) == (rude.outcome, kind.outcome)


def test_the_application_has_no_part_in_the_judges_chat(ollama):
    """A judge's request holds its own instruction and question, temperature 0, and neither tools nor history."""
    with open_judge(f"ollama:{ollama.url}#chatty") as judge:
        judge.evaluate(request("The ferry leaves at nine."))
    body = next(r.body for r in reversed(ollama.requests) if r.path == "/api/chat" and r.body.get("messages"))
    assert ["system", "user"] == [message["role"] for message in body["messages"]]
    assert 0 == body["options"]["temperature"]
    assert not {"tools", "context", "template"} & body.keys()


def test_a_fallback_decides_what_is_uncertain(ollama):
    """The general judge is asked about answers near the threshold only; both verdicts are kept."""
    sure = lambda text: 0.5 if "ten" in text.rpartition("Claim:")[2] else holds_claim(text)  # noqa: E731
    with FakeOllama(sure) as unsure:
        fallback = Fallback(f"ollama:{ollama.url}#chatty")
        with open_judge(f"ollama:{unsure.url}#bespoke-minicheck", fallback=fallback) as judge:
            clear, open_ = judge.evaluate_batch(
                [request("The ferry leaves at nine."), request("The ferry leaves at ten.")]
            )
            usages = judge.usages
    first, second = judge.identity.judge, fallback.judge
    assert (first, second) == (clear.metadata["decided_by"], open_.metadata["decided_by"])
    assert (0.5, 0.1) == (open_.metadata["first"]["score"], pytest.approx(open_.score))
    assert second == judge.identity.fallback["judge"]
    assert usages[first].prompts > usages[second].prompts > 0


def test_a_run_with_a_fallback_counts_who_decided_and_what_it_cost(ollama, tmp_path, capsys):
    """The report and run.json tell for each judge how often it was asked, what that cost and how much it decided."""
    (tmp_path / "cases.jsonl").write_text(
        "".join(
            json.dumps({"id": str(i), "documents": [FERRY.text], "answer": answer}) + "\n"
            for i, answer in enumerate(["The ferry leaves at nine.", "It takes an hour."])
        )
    )
    weak = lambda text: 0.5 if "hour" in text.rpartition("Claim:")[2].split("\n")[0] else holds_claim(text)  # noqa: E731
    with FakeOllama(weak) as unsure:
        name = f"ollama:{unsure.url}#bespoke-minicheck"
        command = ["run", str(tmp_path / "cases.jsonl"), "--judge", name, "--fallback", f"ollama:{ollama.url}#chatty"]
        with pytest.raises(SystemExit) as ended:
            main([*command, "--out", str(tmp_path / "out")])
    shown = " ".join(capsys.readouterr().out.split())
    assert 0 == ended.value.code, shown
    usage = json.loads((tmp_path / "out/run.json").read_text())["usage"]["fact-checking"]
    assert {name, f"ollama:{ollama.url}#chatty"} == usage.keys()
    assert all(spent["calls"] > 0 and spent["asked_tokens"] > 0 and spent["seconds"] > 0 for spent in usage.values())
    assert 2 == len(re.findall(r"it decided 1 case\b", shown))


def test_a_model_that_is_replaced_during_a_run_ends_it(ollama):
    """Verdicts of two models never stand in one run."""
    with open_judge(f"ollama:{ollama.url}#bespoke-minicheck") as judge:
        ollama.swap("bespoke-minicheck", "f" * 64)
        with pytest.raises(IntegrityError):
            judge.evaluate(request("The ferry leaves at nine."))


def test_what_is_known_before_a_server_is_asked_fits_what_it_says(ollama):
    """A finished run can be decided again while its server is away."""
    name = f"ollama:{ollama.url}#bespoke-minicheck"
    with open_judge(name, threshold=0.7) as judge:
        said = judge.identity.to_json()
    before = identity_without_weights(name, threshold=0.7).to_json()
    known = {key: value for key, value in before.items() if value not in ("", None, {})}
    assert known == {key: said[key] for key in known}


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("ollama:", {}, BadInput, "names no model"),
        ("openai:http://localhost:1/v1", {}, BadInput, "names no model"),
        ("openai:http://me:secret@localhost/v1#m", {}, BadInput, "password"),
        ("ollama:m", {"parity": "reference"}, BadInput, "parity"),
        ("ollama:m", {"dtype": "bfloat16"}, BadInput, "dtype"),
        ("ollama:m", {"evaluator": "beauty"}, BadInput, "beauty"),
        ("ollama:m", {"reading": "tea leaves"}, BadInput, "tea leaves"),
        ("ollama:m", {"threshold": float("nan")}, BadInput, "threshold"),
        ("ollama:m", {"evaluator": "rubric", "pass_score": 6}, BadInput, "pass score"),
        ("ollama:m", {"fallback": Fallback("ollama:m")}, BadInput, "itself"),
        ("ollama:m", {"fallback": Fallback("ollama:n", ("sometimes",))}, BadInput, "sometimes"),
        ("minicheck-nano", {"evaluator": "relevancy"}, BadInput, "evaluator"),
        ("minicheck-nano", {"reading": "words"}, BadInput, "reading"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_opened(no_network, name, options, error, words):
    """A judge that cannot be is bad input, found without a connection."""
    with pytest.raises(error, match=words) as caught:
        open_judge(name, **options)
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_model_that_is_not_there_is_named_with_those_that_are(ollama):
    """A wrong tag is found at once, and the message lists what the server has."""
    with pytest.raises(ModelUnavailable) as caught:
        open_judge(f"ollama:{ollama.url}#bespoke-minichek")
    assert "bespoke-minicheck" in f"{caught.value} {caught.value.hint}"
