"""A run on a terminal, in a pipe or in a CI log: the decision, the rates of every slice, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from minicheck_eval.counts import counted
from minicheck_eval.harness.gates import Status, percent
from minicheck_eval.harness.run import Run
from minicheck_eval.harness.summary import EvaluatorSummary, Tally
from minicheck_eval.reports.case_view import CaseResult, ClaimResult
from minicheck_eval.reports.failures import Failure, Group, failures
from minicheck_eval.reports.page import Page
from minicheck_eval.reports.plain import plain

__all__ = ["print_report"]

MOST_CASES = 10
MOST_CLAIMS = 3
MOST_REASONS = 20
LINE = 200
WIDE = 76
SHORT = 12
WORDS: dict[Status, tuple[str, str]] = {
    "passed": ("PASSED", "bold green"),
    "failed": ("FAILED", "bold red"),
    "undecided": ("UNDECIDED", "bold yellow"),
    "could_not_judge": ("COULD NOT JUDGE", "bold magenta"),
}
COLUMNS = ("passed", "rate", "95 %\ninterval", "coverage", "invalid", "error", "not\ncheckable")


def print_report(run: Run, console: Console, *, most_cases: int = MOST_CASES) -> None:
    """Print a run; whatever text the cases hold, it comes out as text and never ends the report."""
    report = _Report(console, most=2 * LINE)
    report.head(run)
    for evaluator in run.summary.evaluators:
        report.table(evaluator)
    report.cost(run)
    for group in failures(run.records(), most=most_cases):
        report.group(group)


class _Report(Page):
    """Prints the parts of a report."""

    def head(self, run: Run) -> None:
        word, style = WORDS[run.decision.status]
        judge, cases = run.header["judge"], run.header["cases"]
        app = f", answered by {plain(run.header['app']['name'], most=LINE)}" if run.header.get("app") else ""
        self.line(f"{judge['judge']} on {counted(cases['count'], 'case')} of {cases['path']}{app}")
        self.line(word, style=style)
        reasons = run.decision.reasons
        for reason in reasons[:MOST_REASONS]:
            self.line(reason, indent=2)
        if len(reasons) > MOST_REASONS:
            self.line(f"and {counted(len(reasons) - MOST_REASONS, 'more reason')} in run.json", indent=2)
        if left_out := len(cases["left_out"]):
            self.line(f"{counted(left_out, 'bad row was', 'bad rows were')} left out: see run.json", style="yellow")
        for name, tape in run.header.get("tapes", {}).items():
            self.line(_tape(name, tape, judge), style="yellow" if tape["missed"] else "dim")
        self.line(f"The run is in {run.directory}")

    def table(self, evaluator: EvaluatorSummary) -> None:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
        table.title = self.text(evaluator.name, style="bold")
        table.add_column("slice", overflow="fold")
        for name in COLUMNS:
            # A number is never cut: on a narrow terminal it goes on in the next line.
            table.add_column(name, justify="right", overflow="fold", no_wrap=self.console.width >= WIDE)
        for name, tally in evaluator.slices.items():
            table.add_row(self.text(name), *_cells(tally))
        table.add_section()
        table.add_row("overall", *_cells(evaluator.overall), style="bold")
        self.console.print()
        self.console.print(table)

    def cost(self, run: Run) -> None:
        """Say what each judge was asked and what that cost, and, where there is a fallback, who decided."""
        decided = {evaluator.name: evaluator.decided_by for evaluator in run.summary.evaluators}
        for name, judges in run.header.get("usage", {}).items():
            for judge, usage in judges.items():
                self.line(f"{name}, {judge}: {_cost(usage, decided.get(name, {}).get(judge))}", style="dim")

    def group(self, group: Group) -> None:
        self.console.print()
        self.line(f"{group.evaluator}: {group.title}", style="bold")
        for failure in group.first:
            self._failure(failure)
        if group.count > len(group.first):
            self.line(f"and {group.count - len(group.first)} more, in results.jsonl", indent=2)

    def _failure(self, failure: Failure) -> None:
        case, verdict, claims = failure.case, failure.verdict, failure.claims
        kind = "support" if claims else "score"
        support = "" if verdict.score is None else f", {kind} {verdict.score:.3f}"
        name, part = (plain(text, most=LINE) for text in (case.id, case.slice))
        broken = "" if failure.broken_part is None else f", {failure.broken_part} broke"
        self.line(f"{name} [{part}]{support}{broken}", indent=2, style="bold")
        if not claims:
            self.line(verdict.feedback, indent=4)
        for claim in claims[:MOST_CLAIMS]:
            for line in _claim_lines(case, claim):
                self.line(line, indent=4)
        if len(claims) > MOST_CLAIMS:
            self.line(f"and {counted(len(claims) - MOST_CLAIMS, 'more claim')}", indent=4)


def _claim_lines(case: CaseResult, claim: ClaimResult) -> Iterator[str]:
    support = "no support known" if claim.support is None else f"support {claim.support:.3f}"
    yield f"claim ({support}): {plain(claim.text, most=LINE)}"
    if claim.why:
        yield f"why: {plain(claim.why, most=LINE)}"
    elif claim.evidence is not None and claim.evidence.text:
        source = plain(case.documents[claim.evidence.place], most=LINE)
        yield f"best evidence, {source}: {plain(claim.evidence.text, most=LINE)}"


def _cost(usage: Mapping[str, Any], decided: int | None) -> str:
    words = [counted(usage["prompts"], "prompt"), counted(usage["asked_tokens"], "token")]
    if usage["computed_tokens"] < usage["asked_tokens"]:
        words[-1] += f" ({usage['computed_tokens']:,} computed)"
    if usage["reply_tokens"]:
        words.append(counted(usage["reply_tokens"], "token of replies", "tokens of replies"))
    words += [counted(usage["calls"], "call"), f"{usage['seconds']:.1f} s"]
    if decided is not None:
        words[-1] += f"; it decided {counted(decided, 'case')}"
    return ", ".join(words)


def _tape(name: str, tape: Mapping[str, Any], judge: Mapping[str, Any]) -> str:
    """Say what was replayed: by which judge, and when it was recorded."""
    records = tape["records"].get("score", 0) + tape["records"].get("reply", 0)
    days = tape["first"] if tape["first"] == tape["last"] else f"{tape['first']} to {tape['last']}"
    told = judge if name == judge["judge"] else judge["fallback"]
    who = ", ".join(filter(None, (told["model"], told["revision"][:SHORT], told["backend"], told["dtype"])))
    words = f"tape {tape['folder']} ({tape['mode']}): {counted(records, 'answer')} of {who}"
    words += f", recorded {days}, digest {tape['digest'][:SHORT]}" if records else ""
    return words + (
        f"; {counted(tape['missed'], 'question was', 'questions were')} not on it" if tape["missed"] else ""
    )


def _cells(tally: Tally) -> list[str]:
    rate, coverage = tally.rate, tally.coverage
    return [
        f"{tally.passed}/{tally.judged}",
        "none" if rate is None else percent(rate.value),
        "none" if rate is None else f"{percent(rate.low)[:-2]}-{percent(rate.high)[:-2]}",
        "none" if coverage is None else percent(coverage),
        *(str(count) for count in (tally.invalid, tally.error, tally.not_checkable)),
    ]
