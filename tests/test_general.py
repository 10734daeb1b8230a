"""General judges through the one door: models on servers, what they are asked, and who decides."""

import json
import re
import threading
import traceback

import pytest

from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.cli import main
from minicheck_eval.contract import Document, EvaluationRequest, Outcome
from minicheck_eval.errors import BackendError, BadInput, IntegrityError, MinicheckError, ModelUnavailable
from minicheck_eval.evaluators.yes_no import CriterionEvaluator
from minicheck_eval.judge import Fallback, identity_without_weights, open_judge, open_judges
from minicheck_eval.testing import FakeModel, FakeOllama, FakeOpenAI, Faults
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
        ("minicheck-nano", {"evaluator": "relevancy"}, BadInput, "cannot be asked"),
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


def test_a_finished_run_is_not_taken_for_that_of_another_model(ollama, tmp_path, capsys):
    """The same command on a server whose model was replaced is refused: no old verdict is shown as the new judge's."""
    (tmp_path / "cases.jsonl").write_text(
        json.dumps({"id": "1", "documents": [FERRY.text], "answer": "It takes an hour."})
    )
    command = ["run", str(tmp_path / "cases.jsonl"), "--judge", f"ollama:{ollama.url}#bespoke-minicheck"]
    codes = []
    for digest in (None, None, "f" * 64):
        if digest:
            ollama.swap("bespoke-minicheck", digest)
        with pytest.raises(SystemExit) as ended:
            main([*command, "--out", str(tmp_path / "out")])
        codes.append(ended.value.code)
    assert [0, 0, 2] == codes
    assert "holds another run" in capsys.readouterr().err


def test_a_prompt_that_is_cut_is_no_verdict_in_any_script():
    """A text without spaces that a server cuts in silence is found out by a second, slightly longer question."""
    document = "船は九時に出る。" + "乗り場は四番だ。" * 1500
    server = FakeOpenAI(lambda text: 0.9 if "九時" in text else 0.1, context=2048, faults=Faults(silent_cut=1.0))
    with server, open_judge(f"openai:{server.url}#judge", evaluator="relevancy", reading="first-token") as judge:
        response = judge.evaluate(request("九時です。", question="いつ？", documents=(Document(document),)))
    assert (Outcome.INVALID, "too_long") == (response.outcome, response.metadata["reason"])


@pytest.mark.parametrize("key", ["No", "logprob", "token", "1"])
def test_a_key_that_is_a_common_word_changes_nothing(monkeypatch, key):
    """What a server answers is read as it is; only what is shown has the key taken out."""
    monkeypatch.setenv("ODD_KEY", key)
    options = ServerOptions(api_key_env="ODD_KEY")
    server = FakeOpenAI(holds_claim, api_key=key)
    with server, open_judge(f"openai:{server.url}#judge", server=options) as judge:
        response = judge.evaluate(request("The ferry leaves at ten."))
    assert ("first-token", pytest.approx(0.1)) == (judge.identity.reading, response.score)


def test_a_fallback_is_asked_the_same_and_gets_no_key_of_the_first(monkeypatch):
    """Both grade by the same bar, and the first server's key is for the first server alone."""
    monkeypatch.setenv("FIRST_KEY", "sk-first-secret")
    first = FakeOpenAI(lambda _: "no grade", api_key="sk-first-secret")
    second = FakeOpenAI(lambda _: json.dumps({"reason": "Good.", "score": 4}))
    with first, second:
        with open_judge(
            f"openai:{first.url}#judge",
            evaluator="rubric",
            pass_score=5,
            server=ServerOptions(api_key_env="FIRST_KEY"),
            fallback=Fallback(f"openai:{second.url}#judge", ("invalid",)),
        ) as judge:
            response = judge.evaluate(request("At nine."))
        sent = {asked.headers.get("authorization") for asked in second.requests}
    assert (Outcome.FAIL, 0.8, {None}) == (response.outcome, response.score, sent)


def test_a_server_of_a_new_version_without_probabilities_is_read_from_words():
    """Whoever only speaks Ollama's interface may give none: then there is a hard yes or no, and not no judge."""
    answer = lambda text: "Yes" if holds_claim(text) > 0.5 else "No"  # noqa: E731
    server = FakeOllama(answer, faults=Faults(no_logprobs=1.0))
    with server, open_judge(f"ollama:{server.url}#bespoke-minicheck") as judge:
        response = judge.evaluate(request("The ferry leaves at nine."))
    assert ("words", Outcome.PASS) == (judge.identity.reading, response.outcome)


def test_a_run_stops_when_its_server_is_gone(tmp_path, capsys, monkeypatch):
    """A dead server ends the run with what it has, instead of failing every case after long waits."""
    monkeypatch.setattr("minicheck_eval.backends.servers.http.BACK_OFF", lambda _: 0.0)
    cases = [{"id": str(i), "documents": [f"{FERRY.text} {i}"], "answer": "It takes an hour."} for i in range(40)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    asked = []

    def answer(text):
        asked.append(text)
        if len(asked) == 12:
            threading.Thread(target=server.__exit__, args=(None, None, None)).start()
        return holds_claim(text)

    server = FakeOllama(answer)
    server.__enter__()
    name = f"ollama:{server.url}#bespoke-minicheck"
    with pytest.raises(SystemExit) as ended:
        main(
            ["run", str(tmp_path / "cases.jsonl"), "--judge", name, "--batch-cases", "4", "--out", str(tmp_path / "r")]
        )
    assert 3 == ended.value.code
    assert "error:" in capsys.readouterr().err
    assert 40 > len((tmp_path / "r/results.jsonl").read_text().splitlines())


@pytest.mark.parametrize(
    "name",
    ["ollama:http://[::1#m", "openai:http://host:abc/v1#m", "ollama:http://host:99999#m", "openai:http://a\tb/v1#m"],
)
def test_an_address_that_is_none_is_bad_input(no_network, name):
    """Whatever is wrong with an address is told in words."""
    with pytest.raises(BadInput, match="no address"):
        open_judge(name)


def test_the_flags_offer_what_there_is():
    """What the command line lets one choose is what the package knows."""
    from minicheck_eval.cli.check import check
    from minicheck_eval.evaluators.names import EVALUATORS, FALLBACK_ON, READINGS

    flags = {option.name: option for option in check.params}
    assert list(EVALUATORS) == list(flags["evaluator"].type.choices)
    assert list(READINGS) == list(flags["reading"].type.choices)
    assert ",".join(FALLBACK_ON) == flags["fallback_on"].default


def test_a_cut_is_found_where_the_window_is_not_told():
    """A server that lists a name and nothing else is tried with a longer prompt whenever one is longer than before."""

    class Quiet(FakeOpenAI):
        def respond(self, asked):
            answered = super().respond(asked)
            return answered.of({"data": [{"id": "judge"}]}) if asked.path == "/v1/models" else answered

    document = FERRY.text + " The sea is calm today." * 900
    server = Quiet(holds_claim, context=4096, faults=Faults(silent_cut=1.0))
    with server, open_judge(f"openai:{server.url}#judge") as judge:
        short = judge.evaluate(request("The ferry leaves at nine."))
        long = judge.evaluate(request("The ferry leaves at nine.", documents=(Document(document),)))
    # What was cut is cut smaller by this package, and asked again.
    assert (Outcome.PASS, Outcome.PASS) == (short.outcome, long.outcome)
    assert "parts" in long.metadata["claims"][0]


def test_a_key_that_a_server_repeats_is_not_shown(monkeypatch):
    """Whatever an Ollama server says of a key, the key is not in the error."""
    monkeypatch.setenv("ODD_KEY", "sk-very-secret")

    class Rude(FakeOllama):
        def respond(self, asked):
            return self.error(401, f"invalid key {asked.headers['authorization']}")

    with Rude(holds_claim) as server, pytest.raises(MinicheckError) as caught:
        open_judge(f"ollama:{server.url}#m", server=ServerOptions(api_key_env="ODD_KEY"))
    shown = "".join(traceback.format_exception(caught.value))
    assert "sk-very-secret" not in shown


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("", None, "empty"),
        ("openai:http://localhost:1/v1#m", "http://other", "another"),
        ("ollama:http://a#m", "http://b", "another"),
    ],
)
def test_a_name_and_an_address_must_fit(no_network, name, url, words):
    """Neither a name that is empty nor a second address is passed over in silence."""
    with pytest.raises(BadInput, match=words):
        open_judge(name, server=ServerOptions(url=url))
