"""One view of a run for all reports."""

import json

import pytest

from minicheck_eval.contract import Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.reports.case_view import case_result
from minicheck_eval.reports.view import open_view


def test_a_case_has_its_claims_with_their_evidence(record, claim):
    """Each claim stands with its place in the answer, its support, and the text of the best chunk."""
    case = case_result(record("a", "fail", claims=[claim("60 days.", 0.1, 4)]))
    (found,) = case.verdicts["fact-checking"].claims
    assert (4, 12, Outcome.FAIL, 0.1) == (found.start, found.end, found.outcome, found.support)
    assert "Goods may be returned within 30 days." == found.evidence.text
    assert "policy.md" == case.documents[found.evidence.place]


def test_documents_without_an_id_are_found_by_place(record, claim):
    """A number names the place of a document; one that is not there is no evidence."""
    documents = [{"id": None, "text": "Another."}, {"id": None, "text": "The one."}]
    claims = [claim("x", 0.1, document=1, chunk={"start": 0, "end": 8}), claim("y", 0.1, document=7)]
    case = case_result(record("a", "fail", documents=documents, claims=claims))
    first, second = case.verdicts["fact-checking"].claims
    assert "The one." == first.evidence.text
    assert None is second.evidence
    assert ("0", "1") == case.documents


def test_the_worst_verdict_stands_for_a_case(record):
    """An error outweighs a failure, and a failure what cannot be checked."""
    case = record("a")
    for outcome in ("not_checkable", "fail", "invalid", "error"):
        case["verdicts"][outcome] = {"outcome": outcome, "score": None, "feedback": "", "metadata": {}}
        assert outcome == case_result(case).outcome
    assert case_result(case).bad
    assert not case_result(record("b", "not_checkable")).bad


def test_a_claim_without_outcome_is_compared_with_the_threshold(record):
    """Claims in the documented shape are enough: text and support."""
    claims = [{"text": "x", "support": support} for support in (0.5, 0.6, None)]
    outcomes = [c.outcome for c in case_result(record("a", claims=claims)).verdicts["fact-checking"].claims]
    assert [Outcome.FAIL, Outcome.PASS, Outcome.INVALID] == outcomes


def test_the_head_repeats_what_was_decided(view, record):
    """Status, exit code, rates and reasons are those of run.json."""
    head = view([record("a"), record("b", "fail", "other")]).head
    assert ("failed", 1) == (head.decision.status, head.decision.exit_code)
    (evaluator,) = head.evaluators
    assert (1, 0) == tuple(evaluator.slices[name].passed for name in ("all", "other"))
    assert 0.5 == evaluator.overall.rate.value


@pytest.mark.parametrize("changes", [{"status": "started", "summary": None, "decision": None}])
def test_a_run_that_is_not_finished_is_refused(run_folder, record, changes):
    """A report over a part of the cases would pass for one over all."""
    folder = run_folder([record("a")], **changes)
    with pytest.raises(BadInput, match="not finished"):
        open_view(folder)


def test_a_folder_without_a_run_is_refused(tmp_path):
    """The error names the folder."""
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(BadInput, match="holds no run"):
            open_view(folder)


def test_records_survive_a_torn_end(view, record):
    """What a crash left unfinished is passed over."""
    found = view([record("a")])
    with (found.directory / "results.jsonl").open("ab") as stream:
        stream.write(json.dumps(record("b")).encode()[:50])
    assert ["a"] == [case.id for case, _ in found.cases()]


def test_where_answers_and_verdicts_come_from_is_told(view, record):
    """The application, the judges and the recordings of run.json are in the head; a run without them has none."""
    changes = {"app": {"name": "app:ask"}, "judges": {"x": {}}, "tapes": {"fake": {"mode": "replay-only"}}}
    with_them, without = view([record("a")], name="one", **changes).head, view([record("a")], name="two").head
    source = with_them.provenance
    assert changes == {"app": source.app, "judges": source.judges, "tapes": source.tapes}
    assert (None, {}, {}) == (without.provenance.app, without.provenance.judges, without.provenance.tapes)
