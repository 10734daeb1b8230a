"""Turns measured runs into figures, and figures into a table."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from hotpath.measure import Results
from hotpath.shapes import Shape, Work

__all__ = ["engine_figures", "machine_figures", "show", "write"]

REFERENCE = "ours"
HEADINGS = (
    "claims/s",
    "ours is faster",
    "tokens computed",
    "of best product",
    "of square product",
    "peak memory",
    "most support differs",
)


def machine_figures(peak: Results) -> dict[str, Any]:
    """Return what the machine can do: the best rate of each size over all repeats; the first size is the square."""
    rates: dict[str, float] = {}
    for one in peak.runs:
        for size, rate in one.run.peak_flops.items():
            rates[size] = max(rate, rates.get(size, 0.0))
    return {
        "processor": _processor(),
        "peak_flops": max(rates.values(), default=None),
        "square_flops": next(iter(rates.values()), None),
        "peak_flops_by_size": rates,
        "failed": peak.failed,
    }


def _processor() -> str:
    """Name the processor by its model where the system tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def engine_figures(
    results: Mapping[str, Results], *, work: Work, shape: Shape, machine: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the figures of each engine, by name; an engine without a run has only its reason."""
    return {
        name: {"failed": one.failed or "no run"}
        if not one.runs
        else _figures(one, results, flops=work.flops(shape), machine=machine)
        for name, one in results.items()
    }


def _figures(one: Results, results: Mapping[str, Results], *, flops: int, machine: Mapping[str, Any]) -> dict[str, Any]:
    run = one.runs[-1].run
    reference = results.get(REFERENCE)
    compared = reference.runs[-1].run.support if reference and reference.runs else None
    prepare = [r.run.prepare_seconds for r in one.runs if r.run.prepare_seconds is not None]
    rate = flops / one.seconds
    return {
        "note": one.note,
        "failed": one.failed,
        "seconds": [r.run.seconds for r in one.runs],
        "median_seconds": one.seconds,
        "processor_seconds": [r.processor_seconds for r in one.runs],
        "claims_per_second": run.prompts / one.seconds,
        "ours_times_faster": one.seconds / reference.seconds if reference and reference.runs else None,
        "tokens_computed": run.tokens_computed,
        "unique_flops_per_second": rate,
        "share_of_peak": rate / machine["peak_flops"] if machine["peak_flops"] else None,
        "share_of_square": rate / machine["square_flops"] if machine["square_flops"] else None,
        "peak_bytes": max((r.peak_bytes for r in one.runs if r.peak_bytes is not None), default=None),
        "support_told": sum(value is not None for value in run.support),
        "largest_support_difference": _largest_difference(run.support, compared) if compared else None,
        "prepare_seconds": median(prepare) if prepare else None,
        "prepare_share": median(prepare) / one.seconds if prepare else None,
    }


def _largest_difference(own: Sequence[float | None], other: Sequence[float | None]) -> float | None:
    """Return the largest difference over the prompts that both engines have answered."""
    both = [abs(a - b) for a, b in zip(own, other, strict=True) if a is not None and b is not None]
    return max(both) if both else None


def show(result: Mapping[str, Any]) -> None:
    """Print the figures."""
    model, work, machine = result["model"], result["workload"], result["machine"]
    weights = "random weights" if model["random_weights"] else "real weights"
    console = Console()
    console.print(
        f"{model['name']} ({weights}), {model['dtype']}, {model['device']}, {model['threads']} threads; "
        f"{work['prompts']} prompts of {work['documents']} documents, {work['unique_tokens']:,} unique tokens of "
        f"{work['asked_tokens']:,}",
        highlight=False,
    )
    rates = [f"{size} {rate / 1e9:,.0f}" for size, rate in machine["peak_flops_by_size"].items()]
    console.print("matrix products, GFLOP/s:", ", ".join(rates) or machine["failed"], highlight=False, markup=False)
    table = Table("engine")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for name, one in result["engines"].items():
        table.add_row(name, *(_row(one) if "seconds" in one else ["–"] * 7))
    console.print(table)
    for name, one in result["engines"].items():
        console.print(f"{name}: {one['failed'] or one['note']}", highlight=False, markup=False)
    for name, reason in result["skipped"].items():
        console.print(f"{name}: skipped, {reason}", highlight=False, markup=False)
    share = result["engines"].get(REFERENCE, {}).get("prepare_share")
    if share is not None:
        console.print(f"tokenising and planning take {share:.1%} of our engine's time", highlight=False)


def _row(one: Mapping[str, Any]) -> list[str]:
    def number(key: str, form: str, factor: float = 1.0) -> str:
        return "–" if one[key] is None else format(one[key] * factor, form)

    return [
        number("claims_per_second", ",.2f"),
        number("ours_times_faster", ".2f") + " ×",
        number("tokens_computed", ",d", 1),
        number("share_of_peak", ".1%"),
        number("share_of_square", ".1%"),
        number("peak_bytes", ",.0f", 1 / 2**20) + " MiB",
        number("largest_support_difference", ".1e"),
    ]


def write(result: Mapping[str, Any], path: Path) -> None:
    """Write the figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
