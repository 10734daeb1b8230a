"""A run: what is asked, what is recorded, and how it goes on."""

import json
import subprocess

import pytest

from minicheck_eval.contract import Document, EvaluationResponse, Outcome
from minicheck_eval.engine.ahead import run_ahead
from minicheck_eval.errors import BackendError, BadInput, ModelUnavailable, RunMismatch
from minicheck_eval.harness.cases import load
from minicheck_eval.harness.gates import GateRule
from minicheck_eval.harness.provenance import git_state, package_versions
from minicheck_eval.harness.run import finished_run
from minicheck_eval.harness.source import Problem


def verdict(run, name, evaluator="fact-checking"):
    return next(record for record in run.records() if record["id"] == name)["verdicts"][evaluator]


def test_a_record_is_self_contained(judge_cases, make_case):
    """One record holds the evidence, the answer, the verdict and all columns of the case."""
    case = make_case(
        "a", slice="s", label=True, date="2026-08-31", metadata={"k": 1}, documents=(Document("Doc a", "d1", {"p": 1}),)
    )
    (record,) = judge_cases([case]).records()
    assert record.pop("seconds") >= 0
    assert {
        "id": "a",
        "slice": "s",
        "question": "a",
        "answer": "The sky over a is blue.",
        "documents": [{"id": "d1", "text": "Doc a", "metadata": {"p": 1}}],
        "verdicts": {
            "fact-checking": {"pass": False, "outcome": "fail", "score": 0.1, "feedback": "said fail", "metadata": {}}
        },
        "label": True,
        "broken_part": "generation",
        "case": case.digest,
        "must_retrieve": [],
        "date": "2026-08-31",
        "in_scope": True,
        "metadata": {"k": 1},
    } == record
    assert ["id", "slice", "question", "answer", "documents", "verdicts", "label"] == list(record)[:7]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"documents": ()}, ("fail", "empty_evidence")),
        ({"documents": (Document(" \n"), Document(None))}, ("fail", "empty_evidence")),
        ({"documents": (), "in_scope": False}, ("not_checkable", "no_evidence")),
        ({"answer": None}, ("not_checkable", "empty_answer")),
        ({"answer": " \n"}, ("not_checkable", "empty_answer")),
        ({"answer": "", "documents": ()}, ("not_checkable", "empty_answer")),
    ],
)
def test_what_needs_no_judge_asks_none(judge_cases, make_case, fake_judge, values, expected):
    """Without evidence or without an answer there is a verdict with its reason and no score, and no question."""
    judge = fake_judge()
    found = verdict(judge_cases([make_case("a", **values), make_case("b")], judge), "a")
    assert (*expected, None) == (found["outcome"], found["metadata"]["reason"], found["score"])
    assert ["b"] == judge.asked
    assert (expected[1] == "empty_evidence") == ("Retrieval failure" in found["feedback"])


@pytest.mark.parametrize(
    ("wanted", "expected", "missing"),
    [
        (("d1",), ("pass", 1.0), []),
        (("d1", "d1", "x", "y"), ("fail", 1 / 3), ["x", "y"]),
        (("x",), ("fail", 0.0), ["x"]),
    ],
)
def test_retrieval_is_checked_beside_the_answer(judge_cases, make_case, wanted, expected, missing):
    """Documents that had to be found are compared by id; the share found is the score."""
    found = verdict(judge_cases([make_case("a", must_retrieve=wanted), make_case("b")]), "a", "retrieval")
    assert (*expected, {"missing": missing}) == (found["outcome"], found["score"], found["metadata"])
    assert all(name in found["feedback"] for name in missing)


def test_retrieval_has_its_own_rate(judge_cases, make_case):
    """Only cases that say what had to be found count there."""
    run = judge_cases([make_case("a", must_retrieve=("d1",)), make_case("b", must_retrieve=("x",)), make_case("c")])
    assert {"fact-checking": 3, "retrieval": 2} == {e.name: e.overall.total for e in run.summary.evaluators}
    assert "failed" == run.decision.status


def test_one_bad_case_in_100_costs_one_verdict(judge_cases, make_case, fake_judge):
    """A case that makes the judge fail is an error with its reason; the 99 others have their verdicts."""

    def answer(request):
        if request.user_text == "c42":
            raise RuntimeError("poison \ud800")
        return EvaluationResponse(Outcome.PASS, 0.9)

    run = judge_cases([make_case(f"c{i}") for i in range(100)], fake_judge(answer))
    overall = run.summary.evaluators[0].overall
    assert (99, 1) == (overall.passed, overall.error)
    found = verdict(run, "c42")
    assert ("error", None) == (found["outcome"], found["score"])
    assert "RuntimeError: poison \ud800" in found["feedback"]
    expected = {"reason": "exception", "error": "RuntimeError", "message": "poison \ud800", "claims": [], "chunks": []}
    assert expected == found["metadata"]
    assert "could_not_judge" == run.decision.status


@pytest.mark.parametrize(
    "response",
    [
        EvaluationResponse(Outcome.PASS, float("nan")),
        EvaluationResponse(Outcome.PASS, 0.9, "", {"x": object()}),
        EvaluationResponse(Outcome.PASS, 0.9, "", {"x": float("inf")}),
        None,
    ],
)
def test_a_verdict_that_cannot_be_written_is_an_error(judge_cases, make_case, fake_judge, response):
    """No NaN reaches a file: such a verdict is an error of its own case."""
    judge = fake_judge(lambda request: response if request.user_text == "a" else EvaluationResponse(Outcome.PASS, 0.9))
    run = judge_cases([make_case("a"), make_case("b")], judge)
    assert ["error", "pass"] == [record["verdicts"]["fact-checking"]["outcome"] for record in run.records()]


def test_too_few_verdicts_are_never_spread_over_the_cases(judge_cases, make_case, fake_judge):
    """A judge that loses a verdict is asked about each case alone."""
    judge = fake_judge()
    whole = judge.evaluate_batch
    judge.evaluate_batch = lambda requests: whole(requests)[: max(1, len(requests) - 1)]
    run = judge_cases([make_case("a"), make_case("b", answer="no")], judge)
    assert ["pass", "fail"] == [record["verdicts"]["fact-checking"]["outcome"] for record in run.records()]


def test_an_error_that_may_heal_is_recorded_and_one_that_cannot_stops(judge_cases, make_case, fake_judge):
    """A backend's failure is a case's error; without a model there is no run, and what was judged stays."""

    def answer(error):
        def of(request):
            if request.user_text == "b":
                raise error
            return EvaluationResponse(Outcome.PASS, 0.9)

        return of

    cases = [make_case(name) for name in "abc"]
    with pytest.raises(ModelUnavailable):
        judge_cases(cases, fake_judge(answer(ModelUnavailable("gone"))), batch_cases=1)
    run = judge_cases(cases, fake_judge(answer(BackendError("busy"))), batch_cases=1)
    assert ["pass", "error", "pass"] == [r["verdicts"]["fact-checking"]["outcome"] for r in run.records()]


def test_a_case_that_got_no_answer_is_asked_again(judge_cases, make_case, fake_judge, make_identity):
    """The same command heals a run whose judge was away for a while; verdicts are not asked again."""

    def answer(request):
        if request.user_text == "b":
            raise BackendError("busy")
        return EvaluationResponse(Outcome.PASS, 0.9)

    cases = [make_case(name) for name in "abc"]
    first = judge_cases(cases, fake_judge(answer), meta={"model": "m1"})
    assert "could_not_judge" == first.decision.status
    same = {
        "cases_digest": "c" * 64,
        "identities": {"fact-checking": make_identity(backend="", dtype="")},
        "arguments": {"judge": "fake"},
        "meta": {"model": "m1"},
        "rule": GateRule(),
    }
    assert finished_run(first.directory, **same) is None
    judge = fake_judge()
    again = judge_cases(cases, judge)
    assert [["b"]] == judge.batches
    assert ["1 case got no answer and is asked again"] == list(again.repairs)
    assert "passed" == again.decision.status
    assert ["a", "b", "c"] == sorted(record["id"] for record in again.records())


@pytest.fixture
def whole_run(judge_cases, fake_judge, tmp_path):
    """The questions of each batch of an uninterrupted run, in the order in which it asks them."""

    def batches(cases, batch_cases):
        judge = fake_judge()
        judge_cases(cases, judge, batch_cases=batch_cases, out=tmp_path / "whole")
        return judge.batches

    return batches


def test_an_interrupted_run_goes_on(judge_cases, make_case, fake_judge, whole_run):
    """After Ctrl-C the batches that were recorded are not asked again, and the result is whole and in order."""
    cases = [make_case(f"c{i}") for i in range(10)]
    expected = whole_run(cases, 2)

    def answer(request):
        if request.user_text == expected[2][1]:
            raise KeyboardInterrupt
        return EvaluationResponse(Outcome.PASS, 0.9)

    with pytest.raises(KeyboardInterrupt):
        judge_cases(cases, fake_judge(answer), batch_cases=2)
    judge, steps = fake_judge(), []
    run = judge_cases(cases, judge, batch_cases=2, progress=lambda step: steps.append((step.done, step.total)))
    assert expected[2:] == judge.batches
    assert [(4, 10), (6, 10), (8, 10), (10, 10)] == steps
    assert [case.id for case in cases] == [record["id"] for record in run.records()]


def test_what_is_asked_together_does_not_depend_on_the_order_of_the_file(judge_cases, make_case, fake_judge, whole_run):
    """A shuffled file makes the same batches, and its records come out in its own order."""
    cases = [make_case(f"c{i}") for i in range(10)]
    expected = whole_run(cases, 3)
    judge = fake_judge()
    shuffled = cases[5:] + cases[2:5] + cases[:2]
    run = judge_cases(shuffled, judge, batch_cases=3)
    assert expected == judge.batches
    assert [case.id for case in shuffled] == [record["id"] for record in run.records()]


def test_a_partly_recorded_batch_is_completed_and_the_next_begins_where_it_did(
    judge_cases, make_case, fake_judge, whole_run
):
    """Batches have fixed places, whatever a crash left of one."""
    cases = [make_case(f"c{i}") for i in range(6)]
    expected = whole_run(cases, 3)
    run = judge_cases(cases, batch_cases=3)
    results = run.directory / "results.jsonl"
    (line,) = (line for line in results.read_bytes().splitlines(keepends=True) if expected[0][0].encode() in line)
    results.write_bytes(line)
    judge = fake_judge()
    again = judge_cases(cases, judge, batch_cases=3)
    assert [expected[0][1:], expected[1]] == judge.batches
    assert "finished" == again.header["status"]


def test_a_streaming_judge_that_breaks_down_loses_one_case(judge_cases, make_case, fake_judge):
    """Whether it breaks while it reads ahead or while it answers, the bad case alone is an error."""

    class Streaming(fake_judge):
        def __init__(self, answer, reads):
            super().__init__(answer)
            self.reads = reads

        def evaluate_stream(self, batches):
            for batch in run_ahead(list(map(self.reads, batch)) for batch in batches):
                yield self.evaluate_batch(batch)

    def breaks(request):
        if request.user_text == "c4":
            raise ValueError("the judge broke down")
        return EvaluationResponse(Outcome.PASS, 0.9) if asks else request

    cases = [make_case(f"c{i}") for i in range(9)]
    for asks in (True, False):
        judge = Streaming(breaks if asks else None, (lambda r: r) if asks else breaks)
        outcomes = {
            record["id"]: record["verdicts"]["fact-checking"]["outcome"]
            for record in judge_cases(cases, judge, batch_cases=2, restart=True).records()
        }
        expected = {case.id: "pass" for case in cases}
        assert {**expected, "c4": "error"} == outcomes if asks else expected == outcomes


def test_a_judge_that_fails_before_it_asks_ends_the_run(judge_cases, make_case, fake_judge):
    """What would fail again for ever is an error at once, and so is an answer that nobody asked for."""

    class Broken(fake_judge):
        def evaluate_stream(self, batches):
            if self.answer == "at once":
                raise RuntimeError("can't start new thread")
            for batch in batches:
                yield super().evaluate_batch(batch)
            yield []

    with pytest.raises(RuntimeError, match="thread"):
        judge_cases([make_case("a")], Broken("at once"))
    with pytest.raises(BackendError, match="nobody asked"):
        judge_cases([make_case("a")], Broken(), restart=True)


def test_batches_that_a_judge_leaves_out_are_asked_alone(judge_cases, make_case, fake_judge):
    """A stream that ends early loses no case."""

    class Short(fake_judge):
        def evaluate_stream(self, batches):
            batches = list(batches)
            yield from (self.evaluate_batch(batch) for batch in batches[:1])

    cases = [make_case(f"c{i}") for i in range(7)]
    run = judge_cases(cases, Short(), batch_cases=2)
    assert [(case.id, "pass") for case in cases] == [
        (record["id"], record["verdicts"]["fact-checking"]["outcome"]) for record in run.records()
    ]


def test_a_finished_run_is_reported_again_without_a_judge(judge_cases, make_case, fake_judge, make_identity):
    """The same command asks nothing and changes nothing; another rule decides anew."""
    cases = [make_case("a"), make_case("b", answer="no")]
    first = judge_cases(cases, meta={"model": "m1"})
    content = (first.directory / "run.json").read_bytes()
    judge = fake_judge()
    again = judge_cases(cases, judge)
    assert [] == judge.batches
    assert first.decision == again.decision
    assert content == (first.directory / "run.json").read_bytes()
    same = {
        "cases_digest": "c" * 64,
        "identities": {"fact-checking": make_identity(backend="", dtype="")},
        "arguments": {"judge": "fake"},
        "meta": {"model": "m1"},
        "rule": GateRule(),
    }
    assert again.summary == finished_run(first.directory, **same).summary
    assert content == (first.directory / "run.json").read_bytes()
    lax = finished_run(first.directory, **{**same, "rule": GateRule(min_rate=0.5)})
    assert "passed" == lax.decision.status
    assert "passed" == json.loads((first.directory / "run.json").read_bytes())["decision"]["status"]
    for changed in (
        {"threshold": 0.9},
        {"splitter": "other"},
        {"labels_digest": "d" * 64},
        {"digests": {"weights": "b"}},
    ):
        identities = {"fact-checking": make_identity(backend="", dtype="", **changed)}
        assert finished_run(first.directory, **{**same, "identities": identities}) is None
    for change in ({"cases_digest": "d" * 64}, {"arguments": {"judge": "other"}}, {"meta": {"model": "m2"}}):
        assert finished_run(first.directory, **{**same, **change}) is None


def test_a_run_is_finished_only_while_all_its_records_are_there(judge_cases, make_case, make_identity):
    """A finished header over damaged records is no finished run, and the lost case is judged again."""
    cases = [make_case("a"), make_case("b")]
    run = judge_cases(cases)
    same = {
        "cases_digest": "c" * 64,
        "identities": {"fact-checking": make_identity(backend="", dtype="")},
        "arguments": {"judge": "fake"},
        "meta": {},
        "rule": GateRule(),
    }
    results = run.directory / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-30])
    assert finished_run(run.directory, **same) is None
    assert finished_run(run.directory / "none", **same) is None
    again = judge_cases(cases)
    assert ["a", "b"] == [record["id"] for record in again.records()]
    assert "passed" == again.decision.status


def test_another_judge_or_other_cases_are_refused(judge_cases, make_case, make_identity):
    """The error names each differing field with both values, and the ways out; --restart is one."""
    judge_cases([make_case("a")])
    with pytest.raises(RunMismatch) as caught:
        judge_cases(
            [make_case("a")],
            identity=make_identity(threshold=0.6, digests={"weights": "e" * 64}),
            cases_digest="d" * 64,
        )
    message = str(caught.value)
    assert "cases.sha256 is cccccccccccc… there and dddddddddddd… here" in message
    assert "judges.fact-checking.digests.weights is aaaaaaaaaaaa… there and eeeeeeeeeeee… here" in message
    assert "judges.fact-checking.threshold is 0.5 there and 0.6 here" in message
    assert "dtype" not in message
    assert "--out" in caught.value.hint
    run = judge_cases([make_case("b")], identity=make_identity(threshold=0.6), cases_digest="d" * 64, restart=True)
    assert ["b"] == [record["id"] for record in run.records()]
    assert 0.6 == run.header["judge"]["threshold"]


def test_records_without_a_header_are_refused(judge_cases, make_case):
    """Records of an unknown judge are not taken for ours."""
    run = judge_cases([make_case("a")])
    (run.directory / "run.json").unlink()
    with pytest.raises(RunMismatch, match=r"holds results.jsonl without run.json"):
        judge_cases([make_case("a")])


def test_cases_with_one_id_are_refused(judge_cases, make_case):
    """A second case of an id would share the first one's record."""
    with pytest.raises(BadInput, match="two cases have the same id"):
        judge_cases([make_case("a"), make_case("a")])


def test_the_header_says_where_a_run_comes_from(judge_cases, make_case, make_identity, tmp_path):
    """run.json holds judge, cases, versions, arguments, meta, times, summary and decision."""
    problem = Problem(path=tmp_path, line=3, message="bad")
    run = judge_cases([make_case("a")], meta={"app": "x"}, left_out=[problem])
    header = json.loads((run.directory / "run.json").read_bytes())
    assert run.header == header
    assert (2, "finished", ["fact-checking"]) == (header["schema"], header["status"], header["evaluators"])
    assert {"fact-checking": make_identity().to_json()} == header["judges"]
    assert (make_identity().to_json(), make_identity().digest) == (header["judge"], header["judge_digest"])
    assert {
        "path": str(tmp_path / "cases.jsonl"),
        "sha256": "c" * 64,
        "count": 1,
        "left_out": [{"line": 3, "message": "bad"}],
    } == header["cases"]
    assert ({"judge": "fake"}, {"app": "x"}) == (header["arguments"], header["meta"])
    assert header["started_at"] <= header["finished_at"]
    assert 1 == header["summary"]["fact-checking"]["overall"]["pass"]
    assert "passed" == header["decision"]["status"]
    assert package_versions() == header["packages"]


def test_package_versions_name_what_shapes_a_verdict():
    """Versions come from the installed distributions; what is not installed is null."""
    found = package_versions()
    wanted = {"minicheck-eval", "torch", "transformers", "tokenizers", "accelerate", "sentencex", "pydantic"}
    assert wanted | {"python", "platform"} == found.keys()
    assert found["pydantic"]


def test_the_git_state_of_the_cases(tmp_path):
    """The revision is that of the cases' repository; a change there or an uncommitted file makes it dirty."""

    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    cases = tmp_path / "cases [1].jsonl"
    cases.write_text("x")
    assert git_state(cases) is None
    git("init")
    git("add", ".")
    git("commit", "-m", "m")
    clean = git_state(cases)
    assert (40, False) == (len(clean["revision"]), clean["dirty"])
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "results.jsonl").write_text("x")
    assert clean == git_state(cases)
    other = tmp_path / "other.jsonl"
    other.write_text("y")
    assert git_state(other)["dirty"]
    cases.write_text("y")
    assert git_state(cases)["dirty"]


def test_a_lone_surrogate_goes_from_the_file_to_the_record_and_back(judge_cases, tmp_path):
    """Text that no encoding has is kept, judged and written so that it reads back the same."""
    path = tmp_path / "cases.jsonl"
    path.write_text(r'{"id": "\ud800", "question": "\udc00 q", "answer": "a\ud83d", "documents": ["a\ud83d b"]}' + "\n")
    cases = load(path).cases
    run = judge_cases(cases)
    (record,) = run.records()
    assert ("\ud800", "\udc00 q", "a\ud83d", "a\ud83d b") == (
        record["id"],
        record["question"],
        record["answer"],
        record["documents"][0]["text"],
    )
    assert "passed" == run.decision.status
    copy = tmp_path / "copy.jsonl"
    kept = {key: record[key] for key in ("id", "question", "answer", "documents")}
    copy.write_bytes(json.dumps(kept).encode())
    assert [case.digest for case in cases] == [case.digest for case in load(copy).cases]
