"""Rates drawn on a line from 0 to 100 %: the interval as a bar, the rate as a dot, the baseline below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import drawsvg
from markupsafe import Markup

from minicheck_eval.reports.view import RateView

__all__ = ["axis", "interval"]

HEIGHT = 26
TICKS = (0, 25, 50, 75, 100)
NAMED = (0, 50, 100)


def axis() -> Markup:
    """Draw the scale above a column of intervals."""
    drawing = _drawing(16, "axis")
    for tick in NAMED:
        anchor = {0: "start", 100: "end"}.get(tick, "middle")
        drawing.append(drawsvg.Text(f"{tick} %", None, f"{tick}%", 12, text_anchor=anchor))
    return _markup(drawing)


def interval(rate: RateView | None, baseline: Mapping[str, Any] | None = None, asked: float | None = None) -> Markup:
    """Draw a rate with its interval, that of a baseline below it, and a mark where the least rate is that was asked.

    Without a rate there is no interval.
    """
    drawing = _drawing(HEIGHT, "interval")
    for tick in TICKS:
        drawing.append(drawsvg.Rectangle(f"{tick}%", 0, 1, HEIGHT, class_="tick"))
    if asked is not None:
        drawing.append(drawsvg.Rectangle(_at(asked), 0, 2, HEIGHT, class_="asked"))
    middle = HEIGHT / 2 if baseline is None else HEIGHT / 2 - 5
    if rate is not None:
        drawing.append(_shape((rate.low, rate.value, rate.high), middle, "run"))
    if baseline is not None:
        shares = (baseline["low"], baseline["value"], baseline["high"])
        drawing.append(_shape(shares, middle + 11, "baseline"))
    return _markup(drawing)


def _shape(shares: tuple[float, float, float], middle: float, name: str) -> drawsvg.Group:
    # In per cent, so that the drawing is as wide as its column and its strokes stay as thick as they are.
    low, value, high = shares
    group = drawsvg.Group(class_=name)
    group.append(drawsvg.Rectangle(_at(low), middle - 3, _at(high - low), 6, rx=3, class_="range"))
    group.append(drawsvg.Circle(_at(value), middle, 5, class_="value"))
    return group


def _at(share: float) -> str:
    return f"{share * 100:.2f}%"


def _drawing(height: int, name: str) -> drawsvg.Drawing:
    # What it shows stands in figures beside it.
    return drawsvg.Drawing("100%", height, viewBox=None, class_=name, aria_hidden="true")


def _markup(drawing: drawsvg.Drawing) -> Markup:
    return Markup(drawing.as_svg(header="", skip_js=True, skip_css=True))  # noqa: S704 - numbers only
