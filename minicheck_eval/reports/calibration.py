"""A calibration on a terminal: what a judge said, how steady it is, and how far people agree with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from minicheck_eval.counts import counted
from minicheck_eval.harness.calibration import CalibrationReport
from minicheck_eval.harness.calibration_agreement import Agreement
from minicheck_eval.harness.calibration_answers import Answer
from minicheck_eval.harness.calibration_measures import Estimate
from minicheck_eval.harness.calibration_rounds import RoundFinding
from minicheck_eval.harness.gates import percent
from minicheck_eval.harness.statistics import Rate
from minicheck_eval.reports.page import Page
from minicheck_eval.reports.plain import plain

__all__ = ["print_calibration"]

MOST_CASES = 10
LINE = 160
NAMES = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "sensitivity": "supported and passed",
    "specificity": "unsupported and failed",
    "base_rate": "base rate: supported by labels",
    "kappa": "Cohen's kappa",
    "auc": "AUC",
    "brier": "Brier score",
    "calibration_error": "expected calibration error",
}
IN_GROUPS = ("base_rate", "kappa", "auc", "calibration_error")
SHORT = ("base rate", "kappa", "AUC", "ECE")


def print_calibration(report: CalibrationReport, console: Console) -> None:
    """Print a report; whatever text the cases hold, it comes out as text."""
    page = _Report(console, most=2 * LINE)
    page.line(
        f"{report.judge['judge']} on {counted(report.cases['count'], 'case')} of {report.cases['path']}", style="bold"
    )
    page.line(", ".join(f"{count} {outcome}" for outcome, count in report.outcomes.items() if count))
    page.several([f"{answer.id}: {answer.error}" for answer in report.answers if answer.error])
    if report.unclear is not None:
        page.line(f"neither yes nor no: {_rate(report.unclear)} of the claims")
    unclear = [(answer.id, words) for answer in report.answers for words in answer.unclear]
    page.several([f"{name}: {words}" for name, words in unclear])
    if report.rounds:
        page.rounds(report)
    if report.agreement is None:
        page.line(f"Agreement with people is not known: {report.no_agreement}.", style="yellow")
    else:
        page.agreement(report.agreement, graded=report.is_graded)
    for name, usage in report.usage.items():
        page.line(f"{name}: {_cost(usage)}", style="dim")


class _Report(Page):
    """Prints the parts of a calibration."""

    def several(self, lines: list[str]) -> None:
        for line in lines[:MOST_CASES]:
            self.line(plain(line, most=LINE), indent=2)
        if len(lines) > MOST_CASES:
            self.line(f"and {len(lines) - MOST_CASES} more: --json FILE lists them", indent=2)

    def rounds(self, report: CalibrationReport) -> None:
        table = self._table("asked again", "", "flipped", "neither", "errors", "largest change", "mean change")
        for found in report.rounds:
            flipped = "none asked" if found.flipped is None else f"{found.flipped.k}/{found.flipped.n}"
            changes = _number(found.largest_change), _number(found.mean_change, "+z.4f")
            table.add_row(found.kind, found.name, flipped, str(found.unclear), str(found.errors), *changes)
        self.console.print(table)
        self.several([line for found in report.rounds for line in _flips(found)])
        for line in _steadiness(report):
            self.line(line)

    def agreement(self, found: Agreement, *, graded: bool) -> None:
        self.console.print()
        labelled = counted(found.count, "labelled answer")
        left_out = f"; {found.unjudged} left out for want of a usable verdict" if found.unjudged else ""
        self.line(f"{labelled} about {counted(found.documents, 'document')}{left_out}", style="bold")
        self._confusion(found.confusion)
        table = self._table("agreement with people", "", "95 % interval")
        for name, words in NAMES.items():
            table.add_row(words, *_estimate(found.measures[name]))
        self.console.print(table)
        table = self._table("group", "", "n", "bal. acc.", "95 % interval", *SHORT)
        for group in found.groups:
            cells = [*_estimate(group.measures["balanced_accuracy"])]
            cells += [_number(group.measures[name].value, "z.3f") for name in IN_GROUPS]
            table.add_row(group.kind, self.text(group.name), str(group.count), *cells)
        self.console.print(table)
        for line in (*_threshold(found, graded=graded), *_maps(found)):
            self.line(line)
        if found.disagreements:
            self.console.print()
            differ = counted(len(found.disagreements), "verdict differs", "verdicts differ")
            self.line(f"{differ} from the label; worth a second look:")
        self.several([_disagreement(answer) for answer in found.disagreements])

    def _confusion(self, counts: Mapping[str, int]) -> None:
        table = self._table("", "passed", "failed")
        for label in ("supported", "unsupported"):
            table.add_row(f"{label} by label", *(str(counts[f"{label}_{said}"]) for said in ("passed", "failed")))
        self.console.print(table)

    def _table(self, *headings: str) -> Table:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for place, heading in enumerate(headings):
            words = place == 0 or not heading
            table.add_column(heading, justify="left" if words else "right", overflow="fold")
        return table


def _steadiness(report: CalibrationReport) -> Iterator[str]:
    if not report.is_graded:
        yield "The judge says yes or no and gives no probability: only flips tell how steady it is."
    elif report.noise == 0:
        yield "Batch, order and time move no support."
    elif report.noise is not None:
        moved = f"Batch, order and time move a support by up to {report.noise:.2g}"
        near = counted(report.near or 0, "verdict is", "verdicts are")
        turned = f": {near} near enough to the threshold {report.judge['threshold']:.3g} to be turned by that"
        yield f"{moved}{turned if report.near is not None else ''}."


def _threshold(found: Agreement, *, graded: bool) -> Iterator[str]:
    if found.threshold is None:
        yield f"No threshold was looked for: {found.no_threshold}."
        return
    one = found.threshold
    if not graded and one.best == one.current:
        yield (
            "There is no threshold to choose: of a plain yes or no the AUC is a balanced accuracy, and the Brier score "
            "a share of wrong verdicts."
        )
        return
    between = "" if one.low is None else f" (95 %: {one.low:.3g} to {one.high:.3g})"
    yield f"Threshold {one.current:.3g} now, {one.best:.3g} would be best here{between}."
    then, now = _number(one.then.value, "z.3f"), _number(one.now.value, "z.3f")
    yield (
        f"Chosen on other documents than it is tried on, the best has a balanced accuracy of {then}, the present one "
        f"of {now}: a gain of {_signed(one.gain)}, {_beyond(one.gain)}."
    )


def _maps(found: Agreement) -> Iterator[str]:
    for kind, one in found.maps.items():
        if one is None:
            yield f"A map of the kind {kind} cannot be fitted and tried on these labels."
            continue
        brier, error = _number(one.brier.value, "z.3f"), _number(one.calibration_error.value, "z.3f")
        gain = f"a gain of {_signed(one.gain)}, {_beyond(one.gain)}"
        yield f"Map {kind}, tried on other documents: Brier score {brier} ({gain}), calibration error {error}."


def _beyond(gain: Estimate) -> str:
    if gain.is_above_zero:
        return "better beyond noise"
    return "worse beyond noise" if gain.is_below_zero else "which may be noise"


def _flips(found: RoundFinding) -> Iterator[str]:
    for flip in found.flips:
        supports = f"{_number(flip.support_before)} and {_number(flip.support_after)}"
        yield f"{flip.id} [{found.name}]: {flip.before.value}, then {flip.after.value} (support {supports})"


def _disagreement(answer: Answer) -> str:
    label = "supported" if answer.label else "unsupported"
    return f"{answer.id} [{answer.groups['slice']}], {label} by label, support {_number(answer.support)}: {answer.text}"


def _rate(found: Rate) -> str:
    return f"{found.k}/{found.n} = {percent(found.value)} [{percent(found.low)}, {percent(found.high)}]"


def _estimate(found: Estimate) -> tuple[str, str]:
    interval = "none" if found.low is None else f"{found.low:.3f} - {found.high:.3f}"
    return _number(found.value, "z.3f"), interval


def _signed(found: Estimate) -> str:
    value = _number(found.value, "+z.3f")
    return value if found.low is None else f"{value} [{found.low:+z.3f}, {found.high:+z.3f}]"


def _cost(usage: Mapping[str, Any]) -> str:
    asked = f"{counted(usage['prompts'], 'prompt')}, {counted(usage['asked_tokens'], 'token')}"
    replies, calls = f"{usage['reply_tokens']:,} of replies", counted(usage["calls"], "call")
    return f"{asked}, {replies}, {calls}, {usage['seconds']:.1f} s"


def _number(value: float | None, form: str = "z.4f") -> str:
    return "none" if value is None else format(value, form)
