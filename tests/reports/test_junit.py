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
