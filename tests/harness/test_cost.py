"""What judging costs, for each judge, over all processes of a run."""

import json

import pytest

from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.errors import IntegrityError
from minicheck_eval.harness.cost import Meter
from minicheck_eval.scoring import Usage


def costly(fake_judge, **attributes):
    """A judge that spends a call and ten tokens on each answer, half a second on each batch."""

    class Costly(fake_judge):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.usages = {"fake": Usage(prompts=100)}

        def evaluate_batch(self, requests):
            more = {"prompts": len(requests), "asked_tokens": 10 * len(requests), "calls": len(requests)}
            self.usages["fake"] = self.usages["fake"].plus(seconds=0.5, **more)
            return super().evaluate_batch(requests)

    for name, value in attributes.items():
        setattr(Costly, name, value)
    return Costly()


def usage_of(run_or_folder):
    folder = getattr(run_or_folder, "directory", run_or_folder)
    return json.loads((folder / "run.json").read_text())["usage"]


def test_a_run_records_what_each_judge_spent_on_it(judge_cases, make_case, fake_judge):
    """The costs are those of this run, not what the judge had spent before."""
    run = judge_cases([make_case("a"), make_case("b")], costly(fake_judge))
    spent = {"prompts": 2, "asked_tokens": 20, "computed_tokens": 0, "reply_tokens": 0, "calls": 2, "seconds": 0.5}
    assert {"fact-checking": {"fake": spent}} == usage_of(run)


def test_costs_add_up_over_the_processes_of_a_run(judge_cases, make_case, fake_judge, tmp_path):
    """A run that was interrupted and goes on has cost what both parts cost."""
    cases = [make_case(name) for name in "abcd"]

    def one_then_stop(request):
        if len(stopped.batches) > 1:
            raise KeyboardInterrupt
        return EvaluationResponse(Outcome.PASS, 0.9, "", {})

    stopped = costly(fake_judge)
    stopped.answer = one_then_stop
    with pytest.raises(KeyboardInterrupt):
        judge_cases(cases, stopped, batch_cases=2)
    assert 4 == usage_of(tmp_path / "run")["fact-checking"]["fake"]["prompts"]
    run = judge_cases(cases, costly(fake_judge), batch_cases=2)
    assert 6 == usage_of(run)["fact-checking"]["fake"]["prompts"]
    assert 6 == usage_of(judge_cases(cases, costly(fake_judge)))["fact-checking"]["fake"]["prompts"]


def test_a_judge_that_does_not_say_has_no_costs(judge_cases, make_case, fake_judge):
    """Costs that are not known are not zero: they are not there."""
    assert {} == usage_of(judge_cases([make_case("a")]))
    assert Meter({"fact-checking": fake_judge()}).total is None


def test_a_run_ends_with_the_judge_that_it_began_with(judge_cases, make_case, fake_judge):
    """A judge that finds itself replaced at the end makes the run an error, not a result."""

    def confirm(self):
        raise IntegrityError("another model answers now")

    with pytest.raises(IntegrityError, match="another model"):
        judge_cases([make_case("a")], costly(fake_judge, confirm=confirm))


def test_a_judge_that_needs_no_evidence_is_asked_without(judge_cases, make_case, fake_judge):
    """Whether an answer answers its question can be judged without documents; an answer is needed all the same."""
    judge = costly(fake_judge, needs_evidence=False)
    judge_cases([make_case("a", documents=()), make_case("b", answer="")], judge)
    assert ["a"] == judge.asked


def test_evaluators_that_share_a_model_are_each_charged_for_their_own(
    judge_cases, make_case, fake_judge, make_identity
):
    """What one model spent on several evaluators is told apart, and adds up to the whole."""
    judge = costly(fake_judge)
    thrifty = costly(fake_judge, needs_evidence=False)
    thrifty.usages = judge.usages
    names = ("fact-checking", "rubric")
    run = judge_cases(
        [make_case("a", documents=()), make_case("b"), make_case("c")],
        evaluators=dict(zip(names, (judge, thrifty), strict=True)),
        identities={name: make_identity(evaluator=name) for name in names},
        batch_cases=2,
    )
    prompts = {name: judges["fake"]["prompts"] for name, judges in usage_of(run).items()}
    assert {"fact-checking": 2, "rubric": 3} == prompts
