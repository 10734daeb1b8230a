"""junit.xml."""

import io
import re
from collections import Counter
from datetime import datetime
from xml.etree import ElementTree as ET

import junit2htmlreport.parser
import junitparser
import pytest

from minicheck_eval.harness.gates import GateRule, check
from minicheck_eval.harness.summary import summarise
from minicheck_eval.reports.junit import JunitReport
from minicheck_eval.reports.view import open_view
from minicheck_eval.reports.writing import write_reports

PLACED = {
    "testsuites": (set(), {"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package", "group", "file", "log", "url"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name", "classname"},
        {"time", "group"},
        {"skipped", "failure", "error", "system-out", "system-err"},
    ),
    **dict.fromkeys(("skipped", "failure", "error"), (set(), {"type", "message"}, set())),
    **dict.fromkeys(("system-out", "system-err"), (set(), set(), set())),
}
"""Element → the attributes that it must have, those that it may have, and its children: what Jenkins' xUnit plugin
takes, with the class that GitLab needs."""
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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


def test_each_reason_stands_beside_its_status(run_folder, record, tmp_path):
    """The message is what decides, and the text tells each gate of the slice with what it found."""
    findings = [
        {"status": "undecided", "words": "a: too few", "evaluator": "fact-checking", "slice": "a"},
        {"status": "passed", "words": "a: enough", "evaluator": "fact-checking", "slice": "a"},
        {"status": "failed", "words": "a: too low", "evaluator": "fact-checking", "slice": "a"},
    ]
    decision = {"status": "failed", "exit_code": 1, "reasons": [], "findings": findings, "rule": {}}
    write_reports(open_view(run_folder([record("c", part="a")], decision=decision)), {"junit": tmp_path / "junit.xml"})
    ((failure,),) = results((tmp_path / "junit.xml").read_bytes()).values()
    assert "failed: a: too low" == failure.message
    assert ["failed: a: too low", "undecided: a: too few"] == failure.text.splitlines()


RUNS = {
    "passed": ([("a", "pass", "x"), ("b", "pass", "y")], {}),
    "failed": ([("a", "fail", "x"), ("b", "pass", "y")], {}),
    "not judged": ([("a", "error", "x"), ("b", "invalid", "y"), ("c", "fail", "z")], {}),
    "undecided": ([("a", "pass", "x"), ("b", "not_checkable", "y")], {}),
    "let through": ([("a", "pass", "x"), ("b", "not_checkable", "y")], {"undecided_passes": True, "max_unjudged": 1}),
    "alike": (
        [(str(i), "fail", part) for i, part in enumerate(["a", " a", "a\n", "a (2)", "all slices", "\u200b"])],
        {},
    ),
    "empty": ([], {}),
}


@pytest.fixture(params=[*RUNS, "hostile", "two evaluators"])
def written(request, report, record, hostile):
    """Write junit.xml of runs that end in every way; return it with the run's exit code."""
    made, rule = RUNS.get(request.param, ([("a", "pass", "x")], {}))
    records = [record(*values) for values in made]
    if request.param == "hostile":
        records = [record(f"{i}{odd}", "fail", odd, answer=odd) for i, odd in enumerate(hostile)]
    elif request.param == "two evaluators":
        records[0]["verdicts"]["rubric"] = record("a", "fail")["verdicts"]["fact-checking"]
    return report(records, rule=GateRule(**rule)), check(summarise(records), GateRule(**rule)).exit_code


def test_each_element_is_where_consumers_expect_it(written):
    """No element or attribute is missing, and none is there that the strictest consumer refuses."""
    root = ET.fromstring(written[0])
    assert "testsuites" == root.tag
    for element in root.iter():
        needed, known, children = PLACED[element.tag]
        assert needed <= set(element.keys()) <= needed | known
        assert {child.tag for child in element} <= children


def test_every_test_can_be_told_from_the_others(written):
    """Consumers keep one test of those with the same class and name, so each has its own; none is empty."""
    names = [(test.get("classname"), test.get("name")) for test in ET.fromstring(written[0]).iter("testcase")]
    assert names
    assert len(names) == len(set(names))
    assert all(part and part == part.strip() for name in names for part in name)


def test_values_are_what_consumers_can_read(written):
    """Counts are those of the elements, durations are numbers, times are ISO 8601, and all text is XML 1.0."""
    root = ET.fromstring(written[0])
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for element in root.iter():
        assert not NO_XML.search("".join([element.text or "", *element.attrib.values()]))
        for name, value in element.items():
            if name in tags:
                assert str(len(list(element.iter(tags[name])))) == value
            elif name == "time":
                assert re.fullmatch(r"[0-9]{1,3}(\.[0-9]+)?", value)
            elif name == "timestamp":
                assert datetime.fromisoformat(value).tzinfo is None


def by_junitparser(xml):
    kinds = {junitparser.Failure: "failure", junitparser.Error: "error", junitparser.Skipped: "skipped"}
    for suite in junitparser.JUnitXml.fromstring(xml):
        yield from ((test.classname, test.name, *(kinds[type(found)] for found in test.result)) for test in suite)


def by_junit2html(xml):
    for suite in junit2htmlreport.parser.Junit(xmlstring=xml.decode()):
        for test in suite.all():
            found = "skipped" if test.skipped else "failure" if test.failed() else None
            yield (test.testclass.name, test.name, *filter(None, [found]))


def test_independent_readers_find_the_same(written):
    """Every test and its result comes back, and something is red exactly where the exit code is not 0."""
    xml, exit_code = written
    tests = list(ET.fromstring(xml).iter("testcase"))
    expected = Counter(
        (test.get("classname"), test.get("name"), *(child.tag for child in test if child.tag != "system-out"))
        for test in tests
    )
    assert expected == Counter(by_junitparser(xml))
    # This one tells no error from a failure.
    merged = Counter(tuple("failure" if part == "error" else part for part in test) for test in expected.elements())
    assert merged == Counter(by_junit2html(xml))
    assert (exit_code != 0) == any(test[2:] in (("failure",), ("error",)) for test in expected)
    assert all(test.find("skipped").text for test in tests if test.find("skipped") is not None)
