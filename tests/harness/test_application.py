"""The application under test: how it is found and called, and what becomes of a case that it does not answer."""

import asyncio
import sys
import threading
import time

import pytest

from minicheck_eval import Document, Observation
from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput, CouldNotJudge, RunMismatch
from minicheck_eval.harness import application as module
from minicheck_eval.harness.application import App, Application, load_app


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(module, "LONGEST_WAIT_S", 0.002)


def sky(question):
    return Observation(f"The sky over {question} is blue.", [Document(f"The sky over {question} is blue.", "d1")])


@pytest.fixture
def ask():
    """Ask a function about cases."""

    def ask(function, cases, *, takes_case=False, **options):
        with Application(App("m:f", function, "", takes_case), **options) as application:
            return application.observe(cases)

    return ask


def test_an_app_is_asked_the_question(ask, make_case):
    """The answer and the evidence of a case are the app's, in the order of the cases; a label of the file is not."""
    cases = [make_case(name, label=True, answer=None, documents=()) for name in "cab"]
    observed = ask(sky, cases)
    assert [sky(name).answer for name in "cab"] == [one.case.answer for one in observed]
    assert ["d1"] == [document.id for document in observed[0].case.documents]
    assert [None] * 3 == [one.case.label for one in observed]


def test_an_app_with_a_parameter_case_gets_the_case(ask, make_case):
    """Then it knows all columns of the row."""
    (observed,) = ask(
        lambda case: sky(case.metadata["city"]), [make_case("a", metadata={"city": "Oslo"})], takes_case=True
    )
    assert "The sky over Oslo is blue." == observed.case.answer


def test_an_asynchronous_app_keeps_its_event_loop(ask, make_case):
    """Clients that belong to a loop live over all batches; calls go side by side, as many as are allowed."""
    loops, running, most = set(), [0], [0]

    async def app(question):
        loops.add(asyncio.get_running_loop())
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1
        return sky(question)

    with Application(App("m:f", app, "", takes_case=False), concurrency=3) as application:
        for _ in range(2):
            assert all(not one.failure for one in application.observe([make_case(f"c{i}") for i in range(7)]))
    assert (1, 3) == (len(loops), most[0])


def test_a_plain_function_is_called_side_by_side(ask, make_case):
    """As many calls as are allowed meet, each in a thread; a call that returns something to wait for is waited for."""
    together = threading.Barrier(3, timeout=10)

    def app(question):
        together.wait()

        async def answer():
            return sky(question)

        return answer()

    assert all(not one.failure for one in ask(app, [make_case(name) for name in "abc"], concurrency=3))


def test_an_app_that_raises_is_asked_again(ask, make_case):
    """A failure that goes away costs nothing but time; one that stays is told, and the others have their answers."""
    calls = []

    def app(question):
        calls.append(question)
        if question == "a" or (question == "b" and calls.count("b") < 3):
            raise ConnectionError("the index is away")
        return sky(question)

    broken, healed, good = ask(app, [make_case(name) for name in "abc"], retries=2)
    assert ("ConnectionError: the index is away", "", "") == (broken.failure, healed.failure, good.failure)
    assert [3, 3, 1] == [calls.count(name) for name in "abc"]


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_an_app_that_hangs_is_given_up(ask, make_case, kind):
    """A call has its time, and a thread that hangs does not hold up the end."""
    forever = threading.Event()

    async def sleeps(_):
        await asyncio.sleep(1000)

    started = time.monotonic()
    (observed,) = ask(
        sleeps if kind == "async" else lambda _: forever.wait(1000), [make_case("a")], retries=0, timeout_s=0.05
    )
    forever.set()
    assert "it gave no answer within 0.05 s" == observed.failure
    assert time.monotonic() - started < 100


def test_an_app_that_blocks_its_event_loop_is_told(ask, make_case, monkeypatch):
    """An asynchronous function that does not await cannot be timed out: the run ends and says why."""
    monkeypatch.setattr(module, "LEAST_PATIENCE_S", 0.05)
    forever = threading.Event()

    async def blocks(_):
        forever.wait(20)

    try:
        with pytest.raises(CouldNotJudge, match="holds up its event loop") as caught:
            ask(blocks, [make_case("a")], timeout_s=0.05)
    finally:
        forever.set()
    assert caught.value.hint


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), asyncio.CancelledError()])
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_an_app_that_ends_itself_ends_only_its_call(ask, make_case, kind, error):
    """An exit, an interrupt and a cancellation are the error of their case, and the other cases are answered."""

    def app(question):
        if question == "a":
            raise error
        return sky(question)

    async def later(question):
        return app(question)

    found = []
    cases = [make_case("a"), make_case("b")]
    asking = threading.Thread(
        target=lambda: found.extend(ask(app if kind == "sync" else later, cases, retries=0)), daemon=True
    )
    asking.start()
    asking.join(20)
    broken, good = found
    assert "it " in broken.failure
    assert ("", "The sky over b is blue.") == (good.failure, good.case.answer)


def test_an_error_without_words_is_one(ask, make_case):
    """Where even the message of an error raises one the case has an error all the same."""

    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def app(_):
        raise Mute

    (observed,) = ask(app, [make_case("a")], retries=0)
    assert "Mute: without words" == observed.failure


def test_an_app_cannot_change_what_is_recorded(ask, make_case):
    """Neither the case that it was given nor metadata that it uses again for the next question reach another record."""
    shared = {}

    async def app(case):
        case.metadata["seen"] = True
        shared.clear()
        shared["of"] = case.id
        return Observation("It is blue.", [Document("It is blue.", case.id, shared)])

    observed = ask(app, [make_case(name, metadata={}) for name in "abc"], takes_case=True)
    assert [{}] * 3 == [one.case.metadata for one in observed]
    assert [{"of": name} for name in "abc"] == [one.case.documents[0].metadata for one in observed]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("only text", "returned a str, without an answer"),
        (Observation("a", [Document("t", "d", {"x": object()})]), "TypeError"),
        (Observation("a", [Document("t", "d", {"x": float("nan")})]), "ValueError"),
    ],
)
def test_what_cannot_be_used_is_an_error_of_its_case(ask, make_case, returned, message):
    """It is asked once, since it would return the same again."""
    calls = []
    (observed,) = ask(lambda _: calls.append(1) or returned, [make_case("a")])
    assert message in observed.failure
    assert 1 == len(calls)


def test_a_run_keeps_the_evidence_of_answer_time(judge_cases, make_case, fake_judge):
    """Records hold what the app answered and had; a case that it did not answer is an error of every evaluator."""

    def app(question):
        if question == "b":
            raise RuntimeError("no index")
        return sky(question)

    cases = [make_case(name, answer=None, documents=(), must_retrieve=("d1",)) for name in "abc"]
    judge = fake_judge()
    with Application(App("m:f", app, "e" * 64, takes_case=False), retries=0) as application:
        run = judge_cases(cases, judge, application=application)
    records = {record["id"]: record for record in run.records()}
    assert [{"id": "d1", "text": sky("a").answer, "metadata": {}}] == records["a"]["documents"]
    assert {"fact-checking": "pass", "retrieval": "pass"} == {
        k: v["outcome"] for k, v in records["a"]["verdicts"].items()
    }
    assert {"fact-checking": "error", "retrieval": "error"} == {
        k: v["outcome"] for k, v in records["b"]["verdicts"].items()
    }
    assert "The application failed: RuntimeError: no index" == records["b"]["verdicts"]["fact-checking"]["feedback"]
    assert {"a", "c"} == set(judge.asked)
    assert {"name": "m:f", "sha256": "e" * 64} == run.header["app"]
    assert "could_not_judge" == run.decision.status


def test_an_app_that_fails_is_seen_where_nothing_else_is_asked(judge_cases, make_case):
    """With retrieval alone, a case that its application did not answer is an error, whatever had to be retrieved."""

    def app(question):
        if question == "b":
            raise RuntimeError("no index")
        return sky(question)

    cases = [make_case("a", must_retrieve=("d1",)), make_case("b")]
    with Application(App("m:f", app, "", takes_case=False), retries=0) as application:
        run = judge_cases(cases, evaluators={}, identities={}, application=application)
    assert ["pass", "error"] == [record["verdicts"]["retrieval"]["outcome"] for record in run.records()]
    assert "could_not_judge" == run.decision.status


def test_a_run_with_an_app_goes_on(judge_cases, make_case, fake_judge):
    """After an interruption the app is asked about those cases only that have no record, or got no answer."""
    cases, calls = [make_case(name, answer=None) for name in "abcd"], []
    failing = {"b"}

    def app(question):
        calls.append(question)
        if question in failing:
            raise RuntimeError("no index")
        return sky(question)

    def stops(request):
        if len(stopping.batches) == 3:
            raise KeyboardInterrupt
        return EvaluationResponse(Outcome.PASS, 0.9)

    stopping = fake_judge(stops)
    with Application(App("m:f", app, "", takes_case=False), retries=0) as application:
        with pytest.raises(KeyboardInterrupt):
            judge_cases(cases, stopping, application=application, batch_cases=1)
        answered = set(calls) - failing - {stopping.asked[-1]}
        calls.clear()
        failing.clear()
        run = judge_cases(cases, application=application, batch_cases=1)
    assert set("abcd") - answered == set(calls)
    assert ["pass"] * 4 == [record["verdicts"]["fact-checking"]["outcome"] for record in run.records()]


@pytest.mark.parametrize(
    "other", [App("m:f", sky, "2", takes_case=False), App("m:g", sky, "1", takes_case=False), None]
)
def test_another_app_is_another_run(judge_cases, make_case, other):
    """A changed file, another function or none is refused, and the difference named."""
    cases = [make_case("a")]
    with Application(App("m:f", sky, "1", takes_case=False)) as application:
        judge_cases(cases, application=application)
    application = None if other is None else Application(other)
    with pytest.raises(RunMismatch, match=r"app\."):
        judge_cases(cases, application=application)
    if application is not None:
        application.close()


def test_failing_cases_say_what_broke(judge_cases, make_case):
    """Missing documents are a failure of retrieval, an answer against its evidence is one of generation."""
    cases = [
        make_case("good"),
        make_case("no evidence", documents=()),
        make_case("not found", must_retrieve=("d2",)),
        make_case("found", must_retrieve=("d1",), answer="The sky is green."),
        make_case("unknown", answer="The sky is green."),
    ]
    assert {
        "good": None,
        "no evidence": "retrieval",
        "not found": "retrieval",
        "found": "generation",
        "unknown": "generation",
    } == {record["id"]: record["broken_part"] for record in judge_cases(cases).records()}


@pytest.fixture
def apps(tmp_path, monkeypatch):
    """A module with applications in the working directory."""
    (tmp_path / "their_app.py").write_text(
        "def answer(question): ...\ndef whole(case): ...\nclass Box:\n  run = answer\nN = 3\n"
    )
    (tmp_path / "their_broken_app.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield tmp_path
    for name in ("their_app", "their_broken_app"):
        sys.modules.pop(name, None)


def test_an_app_is_found_in_the_working_directory(apps):
    """Its name leads to it, and the digest of its file tells when it has changed."""
    found = load_app("their_app:answer")
    assert ("their_app:answer", 64, False) == (found.name, len(found.digest), found.takes_case)
    assert load_app("their_app:whole").takes_case
    assert load_app("their_app:Box.run").function is found.function


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("their_app", "has no module and function"),
        ("their_app:", "has no module and function"),
        ("their_app:none", "their_app has no 'none'"),
        ("their_app:N", "is a int"),
        ("no_such_app:f", "ModuleNotFoundError"),
        ("their_broken_app:f", "ZeroDivisionError"),
    ],
)
def test_an_app_that_cannot_be_used_is_told(apps, name, message):
    """The error says what is wrong with the name, or what its module raised."""
    with pytest.raises(BadInput, match=message):
        load_app(name)
