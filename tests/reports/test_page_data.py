"""The cases that a page carries."""

import json

import pytest

from minicheck_eval.reports.case_view import case_result
from minicheck_eval.reports.page_data import PageData


@pytest.fixture
def kept():
    """Give records to a page and return the cases and documents that it keeps."""

    def keep(records, **limits):
        data = PageData(**limits)
        for record in records:
            data.add(case_result(record), record)
        cases = [json.loads(line) for line in data.cases()]
        documents = [json.loads(line) for line in data.documents]
        assert len(cases) == data.count
        assert len(records) == data.total
        data.close()
        return cases, documents

    return keep


def test_a_document_is_kept_once(kept, record):
    """Cases that share a document refer to the same one."""
    cases, documents = kept([record(f"r{i}") for i in range(5)])
    assert 1 == len(documents)
    assert [[0]] * 5 == [case["documents"] for case in cases]


def test_a_document_twice_in_a_case_is_one_too(kept, record):
    """The same text at two places of a case is kept once, and both places refer to it."""
    case = record("a")
    case["documents"] *= 2
    cases, documents = kept([case])
    assert [[0, 0]] == [case["documents"] for case in cases]
    assert 1 == len(documents)


def test_cases_with_trouble_are_kept_first(kept, record):
    """Where not all fit, those that passed are left out, however early they came."""
    records = [record(f"r{i}", "pass" if i < 50 else "fail") for i in range(60)]
    cases, _ = kept(records, most_cases=12)
    assert [f"r{i}" for i in range(50, 60)] == [case["id"] for case in cases if case["outcome"] == "fail"]
    assert 12 == len(cases)


def test_bytes_are_limited_too(kept, record):
    """A case that is too large for what is left is left out, and a smaller one still fits."""
    large, small = record("large", "fail", answer="x" * 10_000), record("small", "fail")
    cases, documents = kept([large, small], most_bytes=8000)
    assert ["small"] == [case["id"] for case in cases]
    assert [0] == cases[0]["documents"]
    assert 1 == len(documents)


def test_spans_are_counted_as_browsers_do(kept, record, claim):
    """Beyond the first 65,536 characters a browser counts two for one."""
    answer = "👩‍👩‍👧 and 𝒳. Then this."
    found = claim("Then this.", 0.9, answer.index("Then"))
    cases, _ = kept([record("a", answer=answer, claims=[found])])
    start, end = cases[0]["verdicts"]["fact-checking"]["claims"][0]["span"]
    assert "Then this." == answer.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def test_no_line_can_end_the_script_that_holds_it(record, hostile):
    """There is no < in the data, and each line is JSON."""
    data = PageData()
    for i, odd in enumerate(hostile):
        one = record(f"{i}{odd}", "fail", odd, answer=odd)
        one["documents"][0]["text"] = odd
        data.add(case_result(one), one)
    lines = [*data.cases(), *data.documents]
    assert not any("<" in line for line in lines)
    assert hostile == [json.loads(line)["answer"] for line in data.cases()]
    data.close()
