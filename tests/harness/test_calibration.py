"""Asking a judge again, and what a calibration makes of its answers."""

import json
import random

import pytest

from minicheck_eval.contract import Document, EvaluationResponse, Outcome
from minicheck_eval.errors import BackendError, BadInput, CouldNotJudge, IntegrityError
from minicheck_eval.harness.calibration import calibration_of, examine, examine_run
from minicheck_eval.harness.calibration_answers import answer_of
from minicheck_eval.harness.calibration_rounds import UNRELATED, ask_rounds, compare_rounds

SOURCE = {"path": "cases.jsonl", "sha256": "c" * 64, "count": 3}


def responded(support, threshold=0.5, **metadata):
    outcome = Outcome.PASS if support > threshold else Outcome.FAIL
    return EvaluationResponse(outcome, support, "", metadata)


@pytest.fixture
def ask(fake_judge):
    """Ask cases in rounds and return them as a list."""

    def ask(cases, answer=None, **values):
        settings = {"repeats": 2, "probes": True, "batch_cases": 4, "seed": 0, "progress": lambda _: None}
        judge = fake_judge(answer)
        return judge, list(ask_rounds(cases, judge, **{**settings, **values}))

    return ask


@pytest.fixture
def cases(make_case):
    """Ten cases about five documents, half of them supported."""
    return [
        make_case(f"c{i}", documents=(Document(f"Paper {i // 2}."),), answer=f"Answer {i}.", label=i % 2 == 0)
        for i in range(10)
    ]


@pytest.fixture
def examined(ask, cases, make_identity):
    """Examine a judge that answers as it is told."""

    def examined(answer=None, given=None, **values):
        _, rounds = ask(given or cases, answer, **values)
        return examine(rounds, judge=make_identity().to_json(), cases=SOURCE, seed=0)

    return examined


def test_every_round_asks_every_case_once(ask, cases):
    """Repeats, other batches, another order and padding each ask all; answers are in the order of the cases."""
    judge, rounds = ask(cases)
    assert ["first", "repeat", "batch", "batch", "order", "padding", "padding"] == [one.kind for one in rounds]
    assert all([case.id for case in cases] == [answer.id for answer in one.answers] for one in rounds)
    assert 7 * len(cases) == len(judge.asked)
    sizes = [len(batch) for batch in judge.batches]
    assert [4, 4, 2, 4, 4, 2] + [1] * 10 + [5, 5] + [4, 4, 2] * 3 == sizes
    assert sorted(judge.asked[40:50]) == sorted(judge.asked[:10]) != judge.asked[40:50]


def test_each_way_of_asking_is_a_repetition_of_its_own(fake_judge, cases):
    """What records answers is told which round this is, and a round's number does not depend on how many there are."""

    class Recorded(fake_judge):
        def repetition(self, number):
            self.numbers = [*getattr(self, "numbers", []), number]

    def numbers(repeats):
        settings = {"repeats": repeats, "probes": True, "batch_cases": 4, "seed": 0, "progress": lambda _: None}
        judge = Recorded()
        return {one.name: judge.numbers[-1] for one in ask_rounds(cases, judge, **settings)}

    three, four = numbers(3), numbers(4)
    # Padded prompts are other prompts: nothing has to keep them apart.
    assert [0, 1, 2, 1001, 1005, 1000, 0, 0] == list(three.values())
    assert {name: number for name, number in four.items() if "of 4" not in name} == {
        name: number for name, number in three.items() if "of 3" not in name
    }


@pytest.mark.parametrize(("repeats", "probes", "expected"), [(1, False, 1), (3, False, 3), (1, True, 6)])
def test_rounds_can_be_left_out(ask, cases, repeats, probes, expected):
    """A judge that is dear is asked less."""
    assert expected == len(ask(cases, repeats=repeats, probes=probes)[1])


def test_padding_is_beside_the_document_and_nowhere_else(ask, cases):
    """Unrelated text comes before or after each document, and answers and questions stay."""
    seen = []

    def answer(request):
        seen.append(request)
        return responded(0.9)

    ask(cases[:1], answer)
    first, before, after = seen[0], seen[-2], seen[-1]
    assert (f"{UNRELATED}\n\nPaper 0.", f"Paper 0.\n\n{UNRELATED}") == (
        before.documents[0].text,
        after.documents[0].text,
    )
    assert {(first.user_text, first.response)} == {(one.user_text, one.response) for one in seen}


def test_a_steady_judge_has_no_flips(examined):
    """The same answers again are no change."""
    report = examined(lambda _: responded(0.9))
    assert all(0 == found.flipped.k and 0 == found.largest_change for found in report.rounds)
    assert (0, 0) == (report.noise, report.near)


def test_flips_are_told_case_by_case(examined):
    """A judge that wavers between repeats is found out, with both verdicts and supports."""
    wavering = iter([0.52, *[0.9] * 9, 0.48, *[0.9] * 9])
    found = examined(lambda _: responded(next(wavering)), repeats=2, probes=False).rounds[0]
    assert (1, 10) == (found.flipped.k, found.flipped.n)
    assert [("c0", Outcome.PASS, Outcome.FAIL, 0.52, 0.48)] == [tuple(flip) for flip in found.flips]
    assert (pytest.approx(0.04), pytest.approx(-0.004)) == (found.largest_change, found.mean_change)


def test_a_judge_that_depends_on_its_batch_is_found_out(fake_judge, cases, make_identity):
    """Flips of another batch size stand apart from those of repeats."""

    class Batchy(fake_judge):
        def evaluate_batch(self, requests):
            return [responded(0.4 if len(requests) == 1 else 0.6) for _ in requests]

    settings = {"repeats": 2, "probes": True, "batch_cases": 5, "seed": 0, "progress": lambda _: None}
    rounds = list(ask_rounds(cases, Batchy(), **settings))
    report = examine(rounds, judge=make_identity().to_json(), cases=SOURCE, seed=0)
    assert {"the same again, 2 of 2": 0, "batches of 1": 10, "another order": 0} == {
        found.name: found.flipped.k for found in report.rounds if found.kind != "padding"
    }
    assert (pytest.approx(0.2), 10) == (report.noise, report.near)


def test_padding_is_no_noise(examined):
    """What unrelated text does to a judge is told, and is not taken for its unsteadiness."""
    report = examined(lambda request: responded(0.1 if "otters" in request.documents[0].text else 0.9))
    assert 0 == report.noise
    assert [10, 10] == [found.flipped.k for found in report.rounds if found.kind == "padding"]


def test_replies_that_are_neither_are_counted(examined):
    """Claims to which the judge said neither yes nor no are counted, of all claims, with what it said."""

    def answer(request):
        claim = {"support": 0.9}
        unclear = {"support": None, "reason": "neither_yes_nor_no", "detail": "said 'Hm'"}
        if "3" in request.response:
            return EvaluationResponse(Outcome.INVALID, None, "", {"claims": [claim, unclear], "chunks": []})
        return responded(0.9, claims=[claim], chunks=[])

    report = examined(answer, repeats=1, probes=False)
    assert (1, 11) == (report.unclear.k, report.unclear.n)
    assert {"said 'Hm'": 1} == report.to_json()["unclear"]["said"]
    assert (9, 1) == (report.agreement.count, report.agreement.unjudged)


def test_a_support_that_is_not_fully_known_is_not_measured(make_case):
    """A failing answer with a claim without a score could have a lower support."""
    claims = [{"support": 0.3}, {"support": None, "reason": "too_long"}]
    verdict = EvaluationResponse(Outcome.FAIL, 0.3, "", {"claims": claims, "chunks": []}).to_json()
    assert None is answer_of(make_case("a", label=True).to_json(), verdict).support


def test_no_claim_can_pull_a_support_below_zero(make_case):
    """A plain no is fully known, whatever became of the other claims: answers that fail are not left out for that."""
    claims = [{"support": 0.0}, {"support": None, "reason": "neither_yes_nor_no"}]
    verdict = EvaluationResponse(Outcome.FAIL, 0.0, "", {"claims": claims, "chunks": []}).to_json()
    assert 0.0 == answer_of(make_case("a", label=True).to_json(), verdict).support


def test_labels_beside_supports_that_are_not_known_are_no_agreement(examined, make_case):
    """Where labels are there and supports are not, the report does not say that labels are missing."""
    claims = [{"support": 0.3}, {"support": None, "reason": "too_long"}]
    report = examined(
        lambda _: EvaluationResponse(Outcome.FAIL, 0.3, "", {"claims": claims, "chunks": []}),
        [make_case("a", label=True)],
    )
    assert (None, True) == (report.agreement, "support is fully known" in report.no_agreement)


def test_without_a_support_to_compare_no_noise_is_known(examined):
    """Supports that could not be compared have not been found steady."""
    given = iter([0.9] + [None] * 19)

    def answer(_):
        support = next(given)
        return EvaluationResponse(Outcome.INVALID if support is None else Outcome.PASS, support, "", {})

    report = examined(answer, repeats=2, probes=False)
    assert (None, None) == (report.noise, report.near)


def test_progress_begins_before_the_first_answer(fake_judge, cases):
    """A judge that takes minutes for a batch has a bar from the beginning."""
    steps = []
    settings = {"repeats": 2, "probes": False, "batch_cases": 5, "seed": 0, "progress": steps.append}
    list(ask_rounds(cases, fake_judge(), **settings))
    assert [0, 5, 10, 15, 20] == [step.done for step in steps]
    assert {20} == {step.total for step in steps}


def test_confusion_and_disagreements(examined, cases):
    """The four counts, and the cases where judge and label differ, the most confident first."""
    supports = {"Answer 0.": 0.1, "Answer 1.": 0.99, "Answer 3.": 0.6}
    report = examined(lambda r: responded(supports.get(r.response, 0.9 if int(r.response[7]) % 2 == 0 else 0.2)))
    assert {
        "supported_passed": 4,
        "supported_failed": 1,
        "unsupported_passed": 2,
        "unsupported_failed": 3,
    } == report.agreement.confusion
    assert ["c1", "c0", "c3"] == [answer.id for answer in report.agreement.disagreements]
    assert 5 == report.agreement.documents


def test_groups_are_slices_and_what_judges_stumble_over(examined, make_case):
    """Every slice is measured, and traits where they differ; what all share is left out."""
    given = [
        make_case("a", slice="x", answer="It costs 5 euros.", label=True),
        make_case("b", slice="y", answer="It is free.", label=True),
    ]
    found = {(group.kind, group.name): group.count for group in examined(given=given).agreement.groups}
    assert {("slice", "x"): 1, ("slice", "y"): 1, ("numbers", "with"): 1, ("numbers", "without"): 1} == found


def test_labels_are_not_needed(examined, make_case):
    """Without labels there is still something to say about steadiness, and nothing can be fitted."""
    report = examined(given=[make_case("a"), make_case("b")])
    assert None is report.agreement
    assert report.rounds
    with pytest.raises(BadInput, match="no answer has a label"):
        calibration_of(report, "platt")


def test_no_verdict_at_all_is_no_calibration(examined):
    """A judge that cannot answer has not been calibrated."""
    with pytest.raises(CouldNotJudge, match="10 invalid"):
        examined(lambda _: EvaluationResponse(Outcome.INVALID, None, "", {}))


def test_one_poisoned_case_fails_alone(examined):
    """A batch that fails is asked one by one, and the other cases keep their verdicts."""

    def answer(request):
        if "7" in request.response:
            raise BackendError("gone")
        return responded(0.9)

    assert (9, 1) == (examined(answer).outcomes["pass"], examined(answer).outcomes["error"])


def test_what_no_retry_mends_ends_the_calibration(examined):
    """A judge that is not the one it should be is not asked on."""

    def answer(_):
        raise IntegrityError("other weights")

    with pytest.raises(IntegrityError):
        examined(answer)


def skilled(bias=0.0):
    """Supports that follow the labels of `cases`, with noise, and pulled to one side."""
    noise = random.Random(1)

    def answer(request):
        label = int(request.response.strip(".").split()[1]) % 2 == 0
        return responded(min(max((0.7 if label else 0.3) + noise.uniform(-0.15, 0.15) + bias, 0.0), 1.0))

    return answer


@pytest.fixture
def many(make_case):
    """A hundred cases about fifty documents."""
    return [
        make_case(f"c{i}", documents=(Document(f"Paper {i // 2}."),), answer=f"Answer {i}.", label=i % 2 == 0)
        for i in range(100)
    ]


def test_a_judge_that_is_good_as_it_is_gets_nothing_new(examined, many):
    """Where no threshold is better beyond noise and no map is wanted there is no calibration."""
    assert None is calibration_of(examined(skilled(), many, repeats=1, probes=False), None)


def test_a_map_that_may_be_noise_is_not_kept(examined, many):
    """Supports that are as often right as they say gain nothing by a map, be it asked for."""

    def answer(request):
        number = int(request.response.strip(".").split()[1])
        label, told = number % 2 == 0, (number // 2) % 5 != 0
        return responded(0.8 if label == told else 0.2)

    report = examined(answer, many, repeats=1, probes=False)
    assert not any(found.is_better for found in report.agreement.maps.values() if found is not None)
    assert (None, None) == (calibration_of(report, "platt"), calibration_of(report, "isotonic"))


def test_a_better_threshold_is_kept(examined, many):
    """A judge that passes all of it gets the threshold between, bound to its identity."""
    report = examined(skilled(bias=0.25), many, repeats=1, probes=False)
    found = calibration_of(report, None)
    assert 0.6 < found.threshold < 0.9
    assert ("fake", None, 100, 50) == (
        found.judge["judge"],
        found.map,
        found.cases["measured"],
        found.cases["documents"],
    )


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_map_does_not_change_a_good_threshold_s_verdicts(examined, many, kind):
    """Mapped supports above the mapped threshold are those above the judge's own."""
    report = examined(skilled(), many, repeats=1, probes=False)
    found = calibration_of(report, kind)
    assert [a.outcome is Outcome.PASS for a in report.answers] == [
        found.map(a.support) > found.threshold for a in report.answers
    ]


def test_a_calibrated_judge_is_measured_and_not_calibrated_again(ask, many, make_identity):
    """A map over mapped supports would fit no judge."""
    _, rounds = ask(many, skilled(), repeats=1, probes=False)
    report = examine(rounds, judge=make_identity(calibration="d" * 64).to_json(), cases=SOURCE, seed=0)
    assert report.agreement
    with pytest.raises(BadInput, match="has a calibration"):
        calibration_of(report, None)


def test_verdicts_that_follow_no_one_threshold_get_none(examined, many):
    """Where a score does not decide, as with two judges, no threshold is looked for."""
    report = examined(lambda _: EvaluationResponse(Outcome.PASS, 0.1, "", {}), many, repeats=1, probes=False)
    assert None is report.agreement.threshold
    with pytest.raises(BadInput, match="one threshold"):
        calibration_of(report, None)


def test_a_run_is_examined_without_a_judge(judge_cases, cases, examined):
    """The records of a run give the same numbers as asking."""
    run = judge_cases(cases)
    from_run = examine_run(run.directory, "fact-checking", seed=0)
    asked = examined(repeats=1, probes=False)
    assert asked.agreement.to_json() == from_run.agreement.to_json()
    assert asked.outcomes == from_run.outcomes
    with pytest.raises(BadInput, match="no verdicts of relevancy"):
        examine_run(run.directory, "relevancy", seed=0)


def test_a_folder_without_a_run_is_refused(tmp_path):
    """A folder that holds no run is bad input."""
    with pytest.raises(BadInput, match=r"run\.json"):
        examine_run(tmp_path, "fact-checking", seed=0)


def test_a_report_is_json(examined):
    """No NaN is in it, and the same answers give the same bytes."""
    one, other = (json.dumps(examined().to_json(), allow_nan=False) for _ in range(2))
    assert one == other


def test_nothing_to_check_is_no_flip(ask, make_case):
    """A case with nothing to check does not thin out the share of flips."""
    given = [make_case("a"), make_case("b", answer="")]
    _, rounds = ask(given, lambda r: responded(0.9) if r.response else EvaluationResponse(Outcome.NOT_CHECKABLE))
    assert 1 == compare_rounds(rounds[0], rounds[1]).flipped.n
