"""report.json and its schema."""

import io
import json

import jsonschema
import pytest

from minicheck_eval.reports.json_report import JsonReport, report_schema


@pytest.fixture
def report(view):
    """Write report.json and read it."""

    def write(records, **options):
        found, stream = view(records, **options), io.BytesIO()
        writer = JsonReport(found, stream)
        for case, record in found.cases():
            writer.add(case, record)
        writer.finish()
        return json.loads(stream.getvalue())

    return write


def test_the_report_keeps_to_its_schema(report, record):
    """What is written is what the published schema describes, for every outcome."""
    outcomes = ("pass", "fail", "invalid", "error", "not_checkable")
    value = report([record(outcome, outcome) for outcome in outcomes])
    jsonschema.Draft202012Validator.check_schema(report_schema())
    jsonschema.validate(value, report_schema())
    assert 1 == value["version"]
    assert list(outcomes) == [case["verdicts"]["fact-checking"]["outcome"] for case in value["cases"]]


def test_the_schema_knows_every_field():
    """A field that the schema does not name is refused, at the top and within a claim."""
    schema = report_schema()
    assert False is schema["additionalProperties"]
    assert all(False is part["additionalProperties"] for part in schema["$defs"].values() if "properties" in part)


def test_a_run_without_cases_is_whole_too(report):
    """The list of cases may be empty."""
    value = report([])
    assert [] == value["cases"]
    assert "could_not_judge" == value["decision"]["status"]


def test_any_text_comes_back_as_it_was(report, record, hostile):
    """Lone surrogates, control codes and markup are kept."""
    value = report([record(f"{i}{odd}", "fail", odd, answer=odd) for i, odd in enumerate(hostile)])
    assert hostile == [case["answer"] for case in value["cases"]]
    jsonschema.validate(value, report_schema())


def test_a_baseline_stands_beside_the_run(report, record):
    """The comparison is part of the report, and keeps to the schema too."""
    value = report([record("a", "fail"), record("b")], baseline=[record("a"), record("b")])
    assert ["a"] == value["comparison"]["evaluators"]["fact-checking"]["newly_failing"]
    jsonschema.validate(value, report_schema())


def test_each_gate_is_told(report, record):
    """What each rule found stands with its arithmetic, that of the slices that passed too."""
    gates = report([record("a", part="x"), record("b", "fail", "y")])["decision"]["gates"]
    assert [("x", "passed"), ("y", "failed")] == [(gate["slice"], gate["status"]) for gate in gates]


def test_each_reason_is_that_of_a_gate(report, record):
    """A reason is told in the words of a gate, which says its status; what failed stands first."""
    records = [record("n", "not_checkable", "a"), record("e", "error", "b"), record("f", "fail", "c")]
    decision = report(records)["decision"]
    statuses = {gate["reason"]: gate["status"] for gate in decision["gates"]}
    expected = ["failed", "could_not_judge", "undecided", "undecided", "undecided"]
    assert expected == [statuses[reason] for reason in decision["reasons"]]
