"""junit.xml."""

import io
from xml.etree import ElementTree as ET

import junitparser
import pytest

from minicheck_eval.harness.gates import GateRule
from minicheck_eval.reports.junit import JunitReport


@pytest.fixture
def report(view):
    """Write junit.xml and return its bytes."""

    def write(records, **options):
        found, stream = view(records, **options), io.BytesIO()
        writer = JunitReport(found, stream)
        for case, record in found.cases():
            writer.add(case, record)
        writer.finish()
        return stream.getvalue()

    return write


def results(xml: bytes) -> dict[tuple[str, str], list]:
    """Read the file as a consumer does: test → its results."""
    suites = junitparser.JUnitXml.fromstring(xml)
    return {(test.classname, test.name): list(test.result) for suite in suites for test in suite}


def test_a_gate_that_passes_holds_no_failure(report, record):
    """Cases that failed do not fail a test where the rate is enough: the file says what the exit code says."""
    xml = report([record(f"r{i}", "fail" if i < 2 else "pass") for i in range(20)], rule=GateRule(min_rate=0.8))
    suites = junitparser.JUnitXml.fromstring(xml)
    assert (0, 0) == (suites.failures, suites.errors)
    assert suites.tests > 0
    assert [[]] == list(results(xml).values())


def test_a_gate_that_fails_names_its_cases(report, record, claim):
    """The failure gives the arithmetic and the cases that did not pass, each with its worst claim."""
    xml = report([record("good", part="a"), record("bad", "fail", "b", claims=[claim("60 days.", 0.1)])])
    (failure,) = [result for found in results(xml).values() for result in found]
    assert isinstance(failure, junitparser.Failure)
    assert "0 of 1 passed" in failure.message
    assert "bad [b]: fail (0.100): 60 days." in failure.text
    assert "good" not in failure.text


def test_what_could_not_be_judged_is_an_error(report, record):
    """An invalid answer is no failure of what is tested."""
    xml = report([record("a"), record("b", "invalid")])
    kinds = {type(result) for found in results(xml).values() for result in found}
    assert {junitparser.Error} == kinds


def test_counts_agree_with_what_is_in_the_file(report, record):
    """The numbers of tests, failures and errors are those of the elements."""
    xml = report([record("a", "fail", "x"), record("b", "error", "y"), record("c", "pass", "z")])
    root = ET.fromstring(xml)
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        assert len(list(root.iter(tag))) == int(root.get(attribute))
        assert sum(int(suite.get(attribute)) for suite in root) == int(root.get(attribute))


def test_any_text_makes_valid_xml(report, record, hostile):
    """Control codes and lone surrogates, which no XML holds, are written as escapes."""
    xml = report([record(f"{i}{odd}", "fail", odd, answer=odd) for i, odd in enumerate(hostile)])
    assert len(hostile) <= xml.decode().count("fail")
    assert results(xml)


def test_each_slice_is_one_test(report, record):
    """A slice that is in order passes beside one that is not, and says its rate."""
    xml = report([record("a", part="x"), record("b", "fail", "y")])
    found = results(xml)
    name = "minicheck-eval.fact-checking"
    assert {(name, "x"): 0, (name, "y"): 1} == {test: len(result) for test, result in found.items()}
    assert "1 of 1 passed" in xml.decode()


def test_undecided_is_a_failure_unless_it_may_pass(report, record):
    """A slice with nothing judged fails the file where it fails the run, and is skipped where it does not."""
    records = [record("a"), record("b", "not_checkable", "y", in_scope=False)]
    kinds = []
    for place, passes in enumerate((False, True)):
        xml = report(records, rule=GateRule(undecided_passes=passes), name=f"run{place}")
        kinds += [type(result) for found in results(xml).values() for result in found]
    assert [junitparser.Failure, junitparser.Skipped] == kinds
