"""report.md: a run for a comment on a pull request or a job's summary, short enough for both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from minicheck_eval.counts import counted
from minicheck_eval.harness.gates import percent
from minicheck_eval.reports.case_view import CaseResult
from minicheck_eval.reports.failures import Failure, Failures, Group
from minicheck_eval.reports.plain import plain
from minicheck_eval.reports.view import Counts, EvaluatorView, Head, View
from minicheck_eval.reports.writer import Writer

__all__ = ["MarkdownReport"]

TITLES = {
    "passed": "✅ Passed",
    "failed": "❌ Failed",
    "undecided": "❔ Undecided",
    "could_not_judge": "⚠️ Could not judge",
}
MOST_CHARACTERS = 60_000
"""A comment holds 65,536."""
MOST_REASONS = 20
MOST_SLICES = 50
MOST_CASES = 20
MOST_CLAIMS = 3
MOST_IDS = 20
LINE = 300
COLUMNS = ("slice", "passed", "rate", "95 % interval", "coverage", "invalid", "error", "not checkable")
SHORT_DIGEST = 12


class MarkdownReport(Writer):
    """Writes report.md: the decision, the rates, and the first cases that did not pass."""

    def __init__(self, view: View, stream: BinaryIO) -> None:
        super().__init__(view, stream)
        self._failures = Failures(most=MOST_CASES)

    def add(self, case: CaseResult, record: Mapping[str, Any]) -> None:  # noqa: ARG002 - a case is enough
        """Take a case."""
        self._failures.add(case)

    def finish(self) -> None:
        """Write the report."""
        text = "\n".join(_head(self._head)) + "\n"
        foot = "\n".join(["", *_provenance(self._head)]) + "\n"
        for group in self._failures.groups:
            text += _group(group, MOST_CHARACTERS - len(text) - len(foot))
        self._stream.write((text + foot).encode("utf-8", "backslashreplace"))


def code(text: str, most: int = LINE) -> str:
    """Write a text from outside as one span of code: nothing in it is markup, a mention or a link."""
    line = plain(text, most=most) or " "
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    # A space on both sides is taken off again, and keeps a backtick at an edge apart from ours.
    return f"{ticks} {line} {ticks}" if "`" in line else f"{ticks}{line}{ticks}"


def _cell(text: str) -> str:
    # In a table a bar ends the cell even within code.
    return code(text, 80).replace("|", "\\|")


def _head(head: Head) -> Iterator[str]:
    yield f"## {TITLES[head.decision.status]}"
    yield ""
    app = f", answered by {code(str(head.provenance.app.get('name', '')))}" if head.provenance.app else ""
    yield f"{code(head.judge)} on {counted(head.data.count, 'case')} of {code(head.data.path)}{app}"
    yield ""
    reasons = head.decision.reasons
    yield from (f"- {code(reason)}" for reason in reasons[:MOST_REASONS])
    if len(reasons) > MOST_REASONS:
        yield f"- and {len(reasons) - MOST_REASONS} more, in run.json"
    if head.data.left_out:
        yield ""
        yield f"**{counted(len(head.data.left_out), 'bad row was', 'bad rows were')} left out**: see run.json."
    found = head.comparison["evaluators"] if head.comparison else {}
    for evaluator in head.evaluators:
        yield ""
        yield from _table(evaluator, found.get(evaluator.name))
    if head.comparison:
        yield ""
        yield from _comparison(head.comparison)


def _table(evaluator: EvaluatorView, compared: Mapping[str, Any] | None) -> Iterator[str]:
    columns = [*COLUMNS, *(["baseline", "difference, points"] if compared else [])]
    yield f"### {code(evaluator.name)}"
    yield ""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join(['---', *['---:'] * (len(columns) - 1)])}|"
    for name, counts in list(evaluator.slices.items())[:MOST_SLICES]:
        yield _row(_cell(name), counts, compared and compared["slices"].get(name))
    if len(evaluator.slices) > MOST_SLICES:
        yield f"| and {len(evaluator.slices) - MOST_SLICES} more {'| ' * len(columns)}"
    yield _row("**overall**", evaluator.overall, compared and compared["overall"])


def _row(name: str, counts: Counts, compared: Mapping[str, Any] | None) -> str:
    rate = counts.rate
    cells = [
        name,
        f"{counts.passed}/{counts.judged}",
        "none" if rate is None else f"**{percent(rate.value)}**",
        "none" if rate is None else f"{percent(rate.low)[:-2]}–{percent(rate.high)}",
        "none" if counts.coverage is None else percent(counts.coverage),
        *(str(count) for count in (counts.invalid, counts.error, counts.not_checkable)),
    ]
    if compared:
        before, difference = compared["baseline"], compared["difference"]
        cells.append("none" if before is None else f"{before['k']}/{before['n']} = {percent(before['value'])}")
        if difference is None:
            cells.append("none")
        else:
            value, low, high = (f"{difference[key] * 100:+.1f}" for key in ("value", "low", "high"))
            cells.append(f"{'**drop** ' if compared['dropped'] else ''}{value} [{low}, {high}]")
    return f"| {' | '.join(cells)} |"


def _comparison(comparison: Mapping[str, Any]) -> Iterator[str]:
    yield "### Against the baseline"
    yield ""
    yield f"{code(comparison['baseline']['judge'])}, {code(comparison['baseline']['path'])}"
    yield ""
    yield from (f"- ⚠️ {code(warning)}" for warning in comparison["warnings"])
    for name, found in comparison["evaluators"].items():
        yield f"- {code(name)}: {code(found['overall']['words'], 2 * LINE)}"
        for title, key in (
            ("newly failing", "newly_failing"),
            ("newly passing", "newly_passing"),
            ("no verdict now", "no_verdict_now"),
        ):
            if ids := found[key]:
                more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
                yield f"  - **{len(ids)} {title}**: {', '.join(code(name, 80) for name in ids[:MOST_IDS])}{more}"


def _group(group: Group, room: int) -> str:
    """Write the cases of a group as far as there is room."""
    # The name of an evaluator may be a user's, and markdown does not work within the summary.
    text = f"\n<details><summary>{group.title}</summary>\n\n{code(group.evaluator)}\n\n"
    end = "\n</details>\n"
    shown = 0
    for failure in group.first:
        part = "\n".join(_failure(failure)) + "\n"
        if len(text) + len(part) + len(end) + LINE > room:
            break
        text += part
        shown += 1
    if shown < group.count:
        text += f"\nand {group.count - shown} more, in results.jsonl\n"
    return text + end if shown else f"\n{code(group.evaluator)}: {group.title}\n" if room > 2 * LINE else ""


def _failure(failure: Failure) -> Iterator[str]:
    case, verdict = failure.case, failure.verdict
    score = "" if verdict.score is None else f", {verdict.score:.3f}"
    broken = "" if failure.broken_part is None else f", {code(failure.broken_part)} broke"
    yield f"- **{code(case.id, 80)}** in {code(case.slice, 80)}{score}{broken}"
    if not failure.claims:
        yield f"  - {code(verdict.feedback)}"
    for claim in failure.claims[:MOST_CLAIMS]:
        support = "no support known" if claim.support is None else f"support {claim.support:.3f}"
        yield f"  - {support}: {code(claim.text)}"
        if claim.why:
            yield f"    - why: {code(claim.why)}"
        elif claim.evidence is not None:
            yield f"    - best evidence, {code(case.documents[claim.evidence.place], 80)}: {code(claim.evidence.text)}"
    if len(failure.claims) > MOST_CLAIMS:
        yield f"  - and {counted(len(failure.claims) - MOST_CLAIMS, 'more claim')}"


def _provenance(head: Head) -> Iterator[str]:
    source = head.provenance
    for name, tape in source.tapes.items():
        words = f"{tape.get('mode')}, recorded {tape.get('first')} to {tape.get('last')}"
        yield f"<sub>{code(name)} from the tape {code(str(tape.get('folder')))}, {code(words)}</sub><br>"
    yield (
        f"<sub>judge {code(source.judge_digest[:SHORT_DIGEST])}, cases {code(head.data.sha256[:SHORT_DIGEST])}, "
        f"minicheck-eval {code(str(source.judge.get('package', '')))}, {code(source.finished_at)}</sub>"
    )
