import json
from collections import Counter

import pytest

from minicheck_eval import Outcome, cli
from minicheck_eval import family as door
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.cli.demo import CASES
from minicheck_eval.harness.cases import load
from minicheck_eval.harness.deterministic import retrieval, without_judge
from minicheck_eval.manifest import load_manifest
from minicheck_eval.scoring import Failure

DEMO = load(CASES).cases
CANARIES = {canary.claim: canary.support for canary in load_manifest("minicheck-nano").manifest.canaries}
SMALL_CASES = {
    "false-in-the-world": Outcome.PASS,
    "true-but-absent": Outcome.FAIL,
    "no-evidence": Outcome.FAIL,
    "empty-answer": Outcome.NOT_CHECKABLE,
    "number-kept": Outcome.PASS,
    "number-changed": Outcome.FAIL,
    "second-of-three": Outcome.PASS,
    "second-claim-absent": Outcome.FAIL,
}
ASSISTANT = ("billing", "returns", "out-of-scope")
LEAST_AGREEMENT = 0.8


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["demo", *arguments])
    return stopped.value.code


@pytest.fixture
def model(monkeypatch):
    """The real door over a fake model that looks for the claim, word for word, in the document."""

    def answer(prompt):
        document, claim = prompt.prefix[1].text, prompt.suffix[1].text
        return CANARIES.get(claim, 0.9 if claim in document else 0.1)

    fake = FakeBackend(answer, window_tokens=2048)
    fake.dtype = "float32"
    monkeypatch.setattr(door, "_open_backend", lambda *_: fake)
    return fake


@pytest.fixture(scope="module")
def verdicts(nano):
    """What the embedded judge says, by id; it is asked only where the harness would ask it."""
    found = {case.id: response for case in DEMO if (response := without_judge(case)) is not None}
    asked = [case for case in DEMO if case.id not in found]
    responses = nano.evaluate_batch([case.to_request() for case in asked])
    return found | {case.id: response for case, response in zip(asked, responses, strict=True)}


def test_every_line_is_a_case():
    """The packaged file has no problem, three slices of 20, the small cases, and a date in 2026 for each."""
    expected = {"billing": 20, "returns": 20, "out-of-scope": 20, "small-cases": len(SMALL_CASES)}
    assert expected == Counter(case.slice for case in DEMO)
    assert len(DEMO) == len({case.id for case in DEMO})
    assert set(SMALL_CASES) == {case.id for case in DEMO if case.slice == "small-cases"}
    assert all(case.date.startswith("2026-") for case in DEMO)


def test_each_policy_passage_is_the_same_wherever_it_stands():
    """A document id names one text, and every document that should be retrieved is one of them."""
    texts = {}
    for document in (document for case in DEMO for document in case.documents):
        assert texts.setdefault(document.id, document.text) == document.text
    assert set(texts) >= {name for case in DEMO for name in case.must_retrieve}
    assert all(len(case.documents) == len({d.id for d in case.documents}) for case in DEMO)


@pytest.mark.parametrize("part", ["billing", "returns"])
def test_a_quarter_of_the_answers_from_policies_is_wrong(part):
    """15 answers are supported; 5 are not, and each says in what way."""
    cases = [case for case in DEMO if case.slice == part]
    assert {True: 15, False: 5} == Counter(case.label for case in cases)
    assert all("kind" in case.metadata for case in cases if case.label is False)
    assert len({case.metadata["kind"] for case in cases if case.label is False}) >= 4
    assert all(case.in_scope and case.documents and case.must_retrieve for case in cases)


def test_out_of_scope_answers_are_refusals_or_state_the_policy():
    """Without documents there is no label and nothing to check; with the policy one of six answers is invented."""
    cases = [case for case in DEMO if case.slice == "out-of-scope"]
    assert not any(case.in_scope for case in cases)
    assert {None: 14} == Counter(case.label for case in cases if not case.documents)
    assert {True: 5, False: 1} == Counter(case.label for case in cases if case.documents)
    assert {Outcome.NOT_CHECKABLE} == {without_judge(case).outcome for case in cases if not case.documents}


def test_the_retriever_missed_three_passages():
    """Three cases of the assistant fail the check of retrieval."""
    found = {case.id: retrieval(case) for case in DEMO if case.slice in ASSISTANT and case.must_retrieve}
    assert {"billing-19", "returns-19", "returns-20"} == {i for i, r in found.items() if r.outcome is Outcome.FAIL}


def test_small_cases_are_what_they_say():
    """Each kind of small case is there once; the pair about a number differs in one digit."""
    cases = {case.id: case for case in DEMO if case.slice == "small-cases"}
    assert len(cases) == len({case.metadata["kind"] for case in cases.values()})
    assert "Pairs is the capital of Germany." == cases["false-in-the-world"].answer
    assert "" == cases["empty-answer"].answer
    assert () == cases["no-evidence"].documents
    kept, changed = cases["number-kept"], cases["number-changed"]
    assert kept.documents == changed.documents
    assert 1 == sum(a != b for a, b in zip(kept.answer, changed.answer, strict=True))
    assert "repair-workshop" == cases["second-of-three"].documents[1].id


def test_the_report_comes_with_a_word_about_its_failures(model, tmp_path, capsys):
    """The demo ends with exit code 0, says that failures are expected, and keeps the log that --out names."""
    assert 0 == run("--out", str(tmp_path / "kept"))
    captured = capsys.readouterr()
    assert all(part in captured.out for part in (*ASSISTANT, "small-cases", "wrong on purpose", "minicheck-eval run"))
    labelled = sum(case.label is not None for case in DEMO)
    assert f"of {labelled} verdicts of the judge agree with the labels" in captured.out
    records = [json.loads(line) for line in (tmp_path / "kept" / "results.jsonl").read_text().splitlines()]
    assert [case.id for case in DEMO] == [record["id"] for record in records]
    assert "temporary" not in captured.err


def test_without_a_folder_nothing_is_left(model, monkeypatch, tmp_path, capsys):
    """The log goes to a temporary folder that is removed, and stderr says how to keep it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert 0 == run()
    assert [] == list(tmp_path.iterdir())
    assert "--out DIR" in capsys.readouterr().err


def test_the_judge_is_not_asked_without_evidence(model):
    """Neither an empty answer nor an answer without documents reaches the model."""
    run()
    asked = {prompt.suffix[1].text for batch in model.batches for prompt in batch}
    assert "Unused items can be returned within 30 days of delivery." in asked  # returns-01, with its document
    assert not any("I am sorry" in claim for claim in asked)


def test_a_judge_that_fails_is_exit_code_3(model, capsys):
    """Without verdicts the demo says so, and tells of no agreement."""
    model.answer = lambda prompt: CANARIES.get(prompt.suffix[1].text, Failure("out_of_memory", "gone"))
    assert 3 == run()
    printed = capsys.readouterr().out
    assert "COULD NOT JUDGE" in printed
    assert "agree with the labels" not in printed


def test_an_unknown_judge_is_bad_input(capsys):
    """A judge that does not exist ends with exit code 2 and a line on stderr."""
    assert 2 == run("--judge", "none-such")
    assert "none-such" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "outcome"), SMALL_CASES.items())
def test_verdicts_on_small_cases_are_right(verdicts, name, outcome):
    """The embedded judge is right on every small case."""
    assert outcome is verdicts[name].outcome, verdicts[name].feedback


def test_small_cases_are_right_for_the_right_reason(verdicts):
    """The claim and the document that decide are those that the case was written for."""
    assert "empty_evidence" == verdicts["no-evidence"].metadata["reason"]
    assert "empty_answer" == verdicts["empty-answer"].metadata["reason"]
    assert "repair-workshop" == verdicts["second-of-three"].metadata["claims"][0]["document"]
    claims = verdicts["second-claim-absent"].metadata["claims"]
    assert ["pass", "fail"] == [claim["outcome"] for claim in claims]


def test_verdicts_on_policies_agree_with_their_labels(verdicts):
    """At least 80 % of the labelled billing and returns cases get the verdict of their label."""
    cases = [case for case in DEMO if case.slice in ("billing", "returns") and case.label is not None]
    wrong = [case.id for case in cases if verdicts[case.id].passed != case.label]
    assert len(cases) * LEAST_AGREEMENT <= len(cases) - len(wrong), wrong
