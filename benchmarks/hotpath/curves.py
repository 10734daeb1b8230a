"""Shows how cost grows: a table, and a picture of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["plot", "show"]


def show(result: Mapping[str, Any]) -> None:
    """Print all points."""
    model = result["model"]
    weights = "random weights" if model["random_weights"] else "real weights"
    console = Console()
    console.print(
        f"{model['name']} ({weights}), {model['dtype']}, {model['device']}, {model['threads']} threads; "
        "rows of cases: the tiny shape (random weights)",
        highlight=False,
    )
    table = Table("what grows")
    for heading in ("value", "prompts", "ms per claim", "tokens computed", "peak memory"):
        table.add_column(heading, justify="right")
    last = None
    for point in result["points"]:
        if last not in (None, point["curve"]):
            table.add_section()
        last = point["curve"]
        table.add_row(last, f"{point['value']:,}", *_row(point))
    console.print(table)
    for point in result["points"]:
        if point["failed"]:
            console.print(f"{point['curve']} {point['value']:,}: {point['failed']}", highlight=False, markup=False)


def _row(point: Mapping[str, Any]) -> list[str]:
    if point["failed"] or not point["prompts"]:
        return ["–"] * 4
    cut = f" of {point['asked']:,}, time over" if point["cut_short"] else ""
    return [
        f"{point['prompts']:,}{cut}",
        f"{point['seconds_per_claim'] * 1e3:,.3f}",
        f"{point['tokens_computed']:,}",
        f"{point['peak_bytes'] / 2**20:,.0f} MiB",
    ]


def plot(result: Mapping[str, Any], path: Path) -> None:
    """Draw one panel for each curve: time per claim, and peak memory beside it."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    curves: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for point in result["points"]:
        if not point["failed"] and point["prompts"]:
            curves[point["curve"]].append(point)
    figure, panels = plt.subplots(1, max(1, len(curves)), figsize=(4.2 * max(1, len(curves)), 3.6), squeeze=False)
    for panel, (name, points) in zip(panels[0], curves.items(), strict=False):
        values = [point["value"] for point in points]
        panel.plot(values, [point["seconds_per_claim"] * 1e3 for point in points], "o-", color="tab:blue")
        panel.set(xscale="log", yscale="log", xlabel=name)
        panel.set_xticks(values, [f"{value:,}" for value in values], rotation=45)
        panel.minorticks_off()
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_ylabel("ms per claim", color="tab:blue")
        memory = panel.twinx()
        held = [point["peak_bytes"] / 2**20 for point in points]
        memory.plot(values, held, "s:", color="tab:orange")
        memory.set_ylim(0, 1.3 * max(held))
        memory.set_ylabel("peak memory, MiB", color="tab:orange")
    model = result["model"]
    weights = "random weights" if model["random_weights"] else "real weights"
    figure.suptitle(f"{model['name']} ({weights}), {model['dtype']}, {model['device']}; cases: the tiny shape")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
