"""junit.xml: a run for whatever shows test results: each gate is a test, and no single case is one.

A run whose gates pass holds no failure, whatever its cases did: a program that reads the file decides as the exit code
does.  What could not be judged is an error, not a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import BinaryIO
from xml.etree import ElementTree as Tree

from minicheck_eval.reports.case_view import CaseResult
from minicheck_eval.reports.failures import Failure, Failures
from minicheck_eval.reports.plain import plain
from minicheck_eval.reports.view import GateView, Head, View

__all__ = ["JunitReport"]

NAME = "minicheck-eval"
MOST_CASES = 50
LINE = 300
ELEMENTS = {"failed": "failure", "undecided": "failure", "could_not_judge": "error"}


class JunitReport:
    """Writes junit.xml: a suite for each evaluator, a test for each gate."""

    def __init__(self, view: View, stream: BinaryIO) -> None:
        self._head = view.head
        self._stream = stream
        self._failures = Failures(most=MOST_CASES)

    def add(self, case: CaseResult, _: object) -> None:
        """Take a case."""
        self._failures.add(case)

    def close(self) -> None:
        """Write the file."""
        lines: dict[str, list[tuple[str, str]]] = {}
        for group in self._failures.groups:
            found = [(failure.case.slice, _case_line(failure)) for failure in group.first]
            lines.setdefault(group.evaluator, []).extend(found)
        suites = Tree.Element("testsuites", name=NAME)
        gates = sorted(self._head.decision.gates, key=lambda gate: gate.evaluator)
        for name, own in groupby(gates, key=lambda gate: gate.evaluator):
            suites.append(_suite(self._head, name or "run", list(own), lines.get(name, ())))
        for key in ("tests", "failures", "errors", "skipped"):
            suites.set(key, str(sum(int(suite.get(key, 0)) for suite in suites)))
        Tree.indent(suites)
        self._stream.write(Tree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n")


def _suite(head: Head, name: str, gates: Sequence[GateView], lines: Iterable[tuple[str, str]]) -> Tree.Element:
    suite = Tree.Element("testsuite", name=plain(name), timestamp=head.provenance.finished_at.removesuffix("+00:00"))
    properties = Tree.SubElement(suite, "properties")
    source = head.provenance
    for key, value in (
        ("judge", head.judge),
        ("judge_digest", source.judge_digest),
        ("cases", head.data.path),
        ("cases_sha256", head.data.sha256),
    ):
        Tree.SubElement(properties, "property", name=key, value=plain(value))
    tags = Counter[str]()
    for gate in gates:
        test = Tree.SubElement(suite, "testcase", classname=f"{NAME}.{plain(name)}", name=plain(gate.title), time="0")
        tag = _tag(gate, head.decision.exit_code)
        tags[tag] += 1
        about = [line for part, line in lines if gate.slice in (part, "")] if tag in ("failure", "error") else []
        if tag:
            found = Tree.SubElement(test, tag, message=plain(gate.reason))
            if tag != "skipped":
                found.set("type", gate.status)
                found.text = "\n".join([plain(gate.reason), *about])
        else:
            Tree.SubElement(test, "system-out").text = plain(gate.reason)
    counts = {"failures": tags["failure"], "errors": tags["error"], "skipped": tags["skipped"]}
    for key, count in {"tests": len(gates), **counts}.items():
        suite.set(key, str(count))
    suite.set("time", "0")
    return suite


def _tag(gate: GateView, exit_code: int) -> str:
    if gate.status == "undecided" and exit_code == 0:
        # Whoever ran it said that undecided is good enough.
        return "skipped"
    return ELEMENTS.get(gate.status, "")


def _case_line(failure: Failure) -> str:
    case, verdict = failure.case, failure.verdict
    score = "" if verdict.score is None else f" ({verdict.score:.3f})"
    worst = min(failure.claims, key=lambda claim: claim.support or 0, default=None)
    said = verdict.feedback if worst is None else worst.text
    return f"{plain(case.id, most=LINE)} [{plain(case.slice, most=LINE)}] {verdict.outcome}{score}: {plain(said, most=LINE)}"
