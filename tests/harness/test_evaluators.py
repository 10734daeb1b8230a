"""Several evaluators in one run: one record a case with all verdicts, and none is asked what another was."""

import json

import pytest

from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.errors import BackendError, RunMismatch
from minicheck_eval.harness.gates import GateRule
from minicheck_eval.harness.run import finished_run


@pytest.fixture
def judge_with(judge_cases, make_identity):
    """Run cases with evaluators by name."""

    def judge(cases, evaluators, **values):
        identities = {name: make_identity(evaluator=name) for name in evaluators}
        return judge_cases(cases, evaluators=evaluators, identities=identities, **values)

    return judge


def outcomes(run):
    return {r["id"]: {name: v["outcome"] for name, v in r["verdicts"].items()} for r in run.records()}


def test_each_evaluator_gives_each_case_a_verdict(judge_with, make_case, fake_judge):
    """A record holds the verdicts of all evaluators; the header says who they are, and each has its rates."""
    strict = fake_judge(lambda request: EvaluationResponse(Outcome.FAIL, 0.2))
    run = judge_with(
        [make_case("a"), make_case("b", must_retrieve=("d1",))], {"fact-checking": fake_judge(), "rubric": strict}
    )
    assert {
        "a": {"fact-checking": "pass", "rubric": "fail"},
        "b": {"fact-checking": "pass", "rubric": "fail", "retrieval": "pass"},
    } == outcomes(run)
    assert ["fact-checking", "rubric"] == run.header["evaluators"]
    assert ["fact-checking", "rubric"] == [identity["evaluator"] for identity in run.header["judges"].values()]
    assert "fact-checking" == run.header["judge"]["evaluator"]
    assert {"fact-checking": 2, "rubric": 0, "retrieval": 1} == {
        e.name: e.overall.passed for e in run.summary.evaluators
    }
    assert "failed" == run.decision.status


def test_only_evaluators_that_need_evidence_fail_without_it(judge_with, make_case, fake_judge):
    """Without documents a fact check is a retrieval failure that nobody is asked about; a rubric is asked."""
    checker, rubric = fake_judge(), fake_judge(lambda request: EvaluationResponse(Outcome.PASS, 0.8))
    rubric.needs_evidence = False
    run = judge_with([make_case("a", documents=())], {"fact-checking": checker, "rubric": rubric})
    assert ([], ["a"]) == (checker.asked, rubric.asked)
    assert {"a": {"fact-checking": "fail", "rubric": "pass"}} == outcomes(run)


def test_one_evaluator_that_fails_leaves_the_others_verdicts(judge_with, make_case, fake_judge):
    """An error of one evaluator is a verdict of its own; the case is asked again as a whole when the run goes on."""

    def busy(request):
        raise BackendError("busy")

    cases = [make_case("a"), make_case("b")]
    run = judge_with(cases, {"fact-checking": fake_judge(), "relevancy": fake_judge(busy)})
    assert {"fact-checking": "pass", "relevancy": "error"} == outcomes(run)["a"]
    again = judge_with(cases, {"fact-checking": fake_judge(), "relevancy": fake_judge()})
    assert {"fact-checking": "pass", "relevancy": "pass"} == outcomes(again)["b"]
    assert "passed" == again.decision.status


def test_an_interrupted_run_of_several_goes_on(judge_with, make_case, fake_judge):
    """Batches that were recorded are asked of no evaluator again."""
    cases = [make_case(f"c{i}") for i in range(6)]

    def stops(request):
        if len(stopping.batches) == 3:
            raise KeyboardInterrupt
        return EvaluationResponse(Outcome.PASS, 0.9)

    stopping = fake_judge(stops)
    with pytest.raises(KeyboardInterrupt):
        judge_with(cases, {"fact-checking": fake_judge(), "relevancy": stopping}, batch_cases=2)
    first, second = fake_judge(), fake_judge()
    run = judge_with(cases, {"fact-checking": first, "relevancy": second}, batch_cases=2)
    assert first.batches == second.batches
    assert 1 == len(first.batches)
    assert [case.id for case in cases] == [record["id"] for record in run.records()]


@pytest.mark.parametrize("left", [{}, {"relevancy": {"outcome": "pass"}}])
def test_a_record_that_lacks_a_verdict_is_judged_again(judge_with, make_case, fake_judge, left):
    """A record must hold what every evaluator said: one that was cut short by hand counts for none."""
    cases, evaluators = [make_case("a"), make_case("b")], {"fact-checking": fake_judge(), "relevancy": fake_judge()}
    run = judge_with(cases, evaluators)
    path = run.directory / "results.jsonl"
    first, second = map(json.loads, path.read_text().splitlines())
    path.write_text("".join(json.dumps(record) + "\n" for record in (first, {**second, "verdicts": left})))
    again = judge_with(cases, evaluators)
    assert outcomes(run) == outcomes(again)
    assert ["a", "b", "b"] == evaluators["fact-checking"].asked
    assert [2, 2] == [one.overall.passed for one in again.summary.evaluators]


def test_every_evaluator_confirms_at_the_end(judge_with, make_case, fake_judge):
    """Each judge on a server must still be the one that was opened."""
    confirmed = []
    judges = {name: fake_judge() for name in ("fact-checking", "relevancy")}
    for name, judge in judges.items():
        judge.confirm = lambda name=name: confirmed.append(name)
    judge_with([make_case("a")], judges)
    assert ["fact-checking", "relevancy"] == confirmed


def test_other_evaluators_are_another_run(judge_with, make_case, fake_judge):
    """Verdicts of other evaluators are not mixed into a run."""
    judge_with([make_case("a")], {"fact-checking": fake_judge()})
    with pytest.raises(RunMismatch, match="evaluators is"):
        judge_with([make_case("a")], {"fact-checking": fake_judge(), "relevancy": fake_judge()})


def test_retrieval_alone_needs_no_judge(judge_with, make_case):
    """Cases that say what had to be found are checked; the others have no verdict, and the run has no judge."""
    run = judge_with([make_case("a", must_retrieve=("d1",)), make_case("b")], {})
    assert {"a": {"retrieval": "pass"}, "b": {}} == outcomes(run)
    assert ("no judge", ["retrieval"]) == (run.header["judge"]["judge"], run.header["evaluators"])
    assert "passed" == run.decision.status
    same = {"cases_digest": "c" * 64, "arguments": {"judge": "fake"}, "meta": {}, "rule": GateRule()}
    assert run.summary == finished_run(run.directory, identities={}, **same).summary
