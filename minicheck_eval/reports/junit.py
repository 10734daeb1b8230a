"""junit.xml: a run for whatever shows test results: each gate is a test, and no single case is one.

A run whose gates pass holds no failure, whatever its cases did: a program that reads the file decides as the exit code
does.  What could not be judged is an error, not a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, BinaryIO
from xml.etree import ElementTree as ET

from minicheck_eval.harness.gates import BEST_FIRST, explaining, in_words
from minicheck_eval.reports.case_view import CaseResult
from minicheck_eval.reports.failures import Failure, Failures
from minicheck_eval.reports.plain import plain
from minicheck_eval.reports.view import GateView, Head, View
from minicheck_eval.reports.writer import Writer

__all__ = ["JunitReport"]

NAME = "minicheck-eval"
MOST_CASES = 50
LINE = 300
ELEMENTS = {"failed": "failure", "undecided": "failure", "could_not_judge": "error"}


class JunitReport(Writer):
    """Writes junit.xml: a suite for each evaluator, a test for each gate."""

    def __init__(self, view: View, stream: BinaryIO) -> None:
        super().__init__(view, stream)
        self._failures = Failures(most=MOST_CASES)

    def add(self, case: CaseResult, record: Mapping[str, Any]) -> None:  # noqa: ARG002 - a case is enough
        """Take a case."""
        self._failures.add(case)

    def finish(self) -> None:
        """Write the file."""
        lines: dict[str, list[tuple[str, str]]] = {}
        for group in self._failures.groups:
            found = [(failure.case.slice, _case_line(failure)) for failure in group.first]
            lines.setdefault(group.evaluator, []).extend(found)
        suites = ET.Element("testsuites", name=NAME)
        gates = sorted(self._head.decision.gates, key=lambda gate: gate.evaluator)
        for name, own in groupby(gates, key=lambda gate: gate.evaluator):
            suites.append(_suite(self._head, name or "run", list(own), lines.get(name, ())))
        # Not those that are skipped: Jenkins' xUnit plugin refuses a file that counts them here.
        for key in ("tests", "failures", "errors"):
            suites.set(key, str(sum(int(suite.get(key, 0)) for suite in suites)))
        ET.indent(suites)
        self._stream.write(ET.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n")


def _suite(head: Head, name: str, gates: Sequence[GateView], lines: Iterable[tuple[str, str]]) -> ET.Element:
    suite = ET.Element("testsuite", name=plain(name), timestamp=head.provenance.finished_at.removesuffix("+00:00"))
    properties = ET.SubElement(suite, "properties")
    source = head.provenance
    for key, value in (
        ("judge", head.judge),
        ("judge_digest", source.judge_digest),
        ("cases", head.data.path),
        ("cases_sha256", head.data.sha256),
    ):
        ET.SubElement(properties, "property", name=key, value=plain(value))
    tags = Counter[str]()
    parts: dict[str, list[GateView]] = {}
    for gate in gates:
        parts.setdefault(gate.slice, []).append(gate)
    for (part, own), called in zip(parts.items(), _names(parts), strict=True):
        about = [line for other, line in lines if part in (other, "")]
        test, tag = _test(called, own, head.decision.exit_code, about)
        test.set("classname", f"{NAME}.{plain(name)}")
        tags[tag] += 1
        suite.append(test)
    counts = {"failures": tags["failure"], "errors": tags["error"], "skipped": tags["skipped"]}
    for key, count in {"tests": len(parts), **counts}.items():
        suite.set(key, str(count))
    suite.set("time", "0")
    return suite


def _names(parts: Iterable[str]) -> Iterator[str]:
    """Name the tests of slices, no two alike: of those that are, consumers show one."""
    used: set[str] = set()
    for part in parts:
        name = wanted = plain(part) or "all slices"
        number = 1
        while name in used:
            number += 1
            name = f"{wanted} ({number})"
        used.add(name)
        yield name


def _test(name: str, gates: Sequence[GateView], exit_code: int, about: Sequence[str]) -> tuple[ET.Element, str]:
    """Make one test of all that is asked of a slice; the worst of it is its result."""
    worst = max((gate.status for gate in gates), key=BEST_FIRST.index)
    reasons = explaining(gates)
    told = {gate: f"{in_words(gate.status)}: {plain(gate.reason)}" for alike in reasons.values() for gate in alike}
    test = ET.Element("testcase", name=name, time="0")
    if worst == "passed":
        ET.SubElement(test, "system-out").text = "\n".join(told.values())
        return test, ""
    # Whoever ran it may have said that undecided is good enough.
    tag = "skipped" if worst == "undecided" and exit_code == 0 else ELEMENTS[worst]
    found = ET.SubElement(test, tag, message=told[reasons[worst][0]], type=worst)
    found.text = "\n".join([*told.values(), *(() if tag == "skipped" else about)])
    return test, tag


def _case_line(failure: Failure) -> str:
    case, verdict = failure.case, failure.verdict
    score = "" if verdict.score is None else f" ({verdict.score:.3f})"
    worst = min(failure.claims, key=lambda claim: claim.support or 0, default=None)
    name, part, said = (
        plain(text, most=LINE) for text in (case.id, case.slice, verdict.feedback if worst is None else worst.text)
    )
    broken = "" if failure.broken_part is None else f", {plain(failure.broken_part)} broke"
    return f"{name} [{part}]: {verdict.outcome}{score}{broken}: {said}"
