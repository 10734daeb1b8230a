"""A comparison on a terminal: what is unlike, the rates side by side, and what flipped on which document."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from minicheck_eval.harness.comparison import Change, Comparison, EvaluatorComparison, SliceComparison
from minicheck_eval.harness.statistics import Rate, points
from minicheck_eval.reports.page import Page
from minicheck_eval.reports.plain import plain

__all__ = ["print_comparison"]

MOST_CASES = 10
LINE = 200
WIDE = 76
COLUMNS = ("baseline", "run", "difference", "newly\nfailing", "newly\npassing", "p")


def print_comparison(found: Comparison, console: Console) -> None:
    """Print a comparison; whatever text the cases hold, it comes out as text."""
    page = Page(console, most=4 * LINE)
    console.print()
    for line, indent, style in _head(found):
        page.line(line, indent=indent, style=style)
    for evaluator in found.evaluators:
        console.print()
        console.print(_table(evaluator, page))
        for line, indent, style in _lines(evaluator):
            page.line(line, indent=indent, style=style)


def _head(found: Comparison) -> Iterator[tuple[str, int, str]]:
    yield f"{found.run.path} beside {found.baseline.path}", 0, "bold"
    for warning in found.warnings:
        yield f"note: {warning}", 0, "yellow"


def _table(evaluator: EvaluatorComparison, page: Page) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    table.title = page.text(evaluator.name, style="bold")
    table.add_column("slice", overflow="fold")
    for name in COLUMNS:
        table.add_column(name, justify="right", overflow="fold", no_wrap=page.console.width >= WIDE)
    for part in evaluator.slices.values():
        table.add_row(page.text(part.name), *_cells(part))
    table.add_section()
    table.add_row("overall", *_cells(evaluator.overall), style="bold")
    return table


def _cells(part: SliceComparison) -> list[str]:
    flips = (str(part.pairs.lost), str(part.pairs.gained)) if part.paired else ("", "")
    difference = "none" if part.difference is None else points(part.difference).replace(" points ", "\n")
    return [
        _rate(part.baseline),
        _rate(part.run),
        difference,
        *flips,
        "" if part.p_value is None else f"{part.p_value:.2g}",
    ]


def _rate(rate: Rate | None) -> str:
    return "none" if rate is None else f"{rate.k}/{rate.n}\n{rate.low:.2f}-{rate.high:.2f}"


def _lines(evaluator: EvaluatorComparison) -> Iterator[tuple[str, int, str]]:
    for part in (*evaluator.slices.values(), evaluator.overall):
        # The table has the numbers of all; in words stand what can be seen, and the whole.
        if part.visible or part is evaluator.overall:
            yield f"{plain(part.name, most=LINE)}: {part.words}", 0, "bold red" if part.dropped else ""
    shown = 0
    for group in evaluator.groups:
        if shown >= MOST_CASES:
            break
        where = "without a document" if group.document is None else f"with {plain(group.document, most=LINE)}"
        yield f"newly failing {where}: {len(group.ids)}", 0, "bold"
        for case in group.ids[: MOST_CASES - shown]:
            yield from _change(evaluator.changes[case])
            shown += 1
    left = len(evaluator.newly_failing) - shown
    if left:
        yield f"and {left} more newly failing", 0, ""
    for ids, what in ((evaluator.newly_passing, "newly passing"), (evaluator.no_verdict_now, "without a verdict now")):
        if ids:
            more = f" and {len(ids) - MOST_CASES} more" if len(ids) > MOST_CASES else ""
            yield f"{what}: {', '.join(plain(case, most=LINE) for case in ids[:MOST_CASES])}{more}", 0, ""


def _change(change: Change) -> Iterator[tuple[str, int, str]]:
    scores = [f"{score:.3f}" for score in (change.score_before, change.score_after) if score is not None]
    yield f"{plain(change.id, most=LINE)} [{plain(change.slice, most=LINE)}] {' → '.join(scores)}".rstrip(), 2, ""
    if not change.claims:
        yield plain(change.feedback, most=LINE), 4, ""
    for claim in change.claims[:1]:
        yield f"claim: {plain(claim.text, most=LINE)}", 4, ""
        if claim.evidence:
            yield f"best evidence: {plain(claim.evidence, most=LINE)}", 4, ""
