"""Measure what a claim costs as the work grows: claims per document, words per document, number of cases, pass budget.

Each point runs in a process of its own, as one stream of prompts that are made while they are scored, and none of
which is kept; so the peak memory is that point's.  A point that takes more than --max-seconds is cut short and says so.
Numbers of cases are measured with the tiny shape (random weights), all else with the chosen model.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hotpath.arguments import add_model_options, common_settings, describe_model
from hotpath.curves import plot, show
from hotpath.processes import EngineFailed, EngineProcess, close_engines_on_termination
from hotpath.settings import Settings
from hotpath.tables import write
from hotpath.workloads import Synthetic

SHORT = {"words": (20, 40), "claim_words": (4, 8)}
"""Texts for large numbers of cases, where bookkeeping is to be seen rather than arithmetic."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: its place on a curve, and the work."""

    curve: str
    value: int
    workload: Synthetic
    budget: int | None = None
    tiny: bool = False


def points(options: argparse.Namespace) -> Iterator[Point]:
    """List what is to be measured."""
    documents, words, seed = options.documents, options.words, options.seed
    for claims in options.claims:
        yield Point("claims per document", claims, Synthetic(documents, claims, (words, words), seed=seed))
    for length in options.lengths:
        yield Point("words per document", length, Synthetic(documents, 6, (length, length), seed=seed))
    for budget in options.budgets:
        yield Point("budget of a pass", budget, Synthetic(documents, 6, (words, words), seed=seed), budget)
    for cases in options.cases:
        each = min(10, cases)
        yield Point("cases", cases, Synthetic(cases // each, each, **SHORT, seed=seed), options.budget, tiny=True)


def measure(point: Point, settings: Settings, folder: Path) -> dict[str, Any]:
    """Run one point in a process of its own."""
    workload = folder / "workload.json"
    workload.write_text(json.dumps(asdict(point.workload)), encoding="utf-8")
    own = replace(settings, budget=point.budget or settings.budget)
    if point.tiny:
        own = replace(own, shape="tiny", model=None)
    figures: dict[str, Any] = {"curve": point.curve, "value": point.value, "tiny": point.tiny}
    asked = point.workload.documents * point.workload.claims_per_document
    try:
        with EngineProcess(own, log=folder / "stream.log") as engine:
            measured = engine.run()
    except EngineFailed as error:
        return {**figures, "asked": asked, "failed": str(error)}
    run = measured.run
    return {
        **figures,
        "asked": asked,
        "prompts": run.prompts,
        "cut_short": run.prompts < asked,
        "seconds": run.seconds,
        "seconds_per_claim": run.seconds / run.prompts if run.prompts else None,
        "tokens_computed": run.tokens_computed,
        "peak_bytes": measured.peak_bytes,
        "failed": None,
    }


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser)
    parser.add_argument("--claims", type=_numbers, default="1,2,4,8,16,32", help="per document")
    parser.add_argument("--lengths", type=_numbers, default="50,100,200,400,800,1600", help="words of a document")
    parser.add_argument("--budgets", type=_numbers, default="256,512,1024,2048,4096,8192", help="tokens of one pass")
    parser.add_argument("--cases", type=_numbers, default="10,100,1000,10000,100000,1000000", help="prompts in all")
    parser.add_argument("--documents", type=int, default=8, help="of each point but the numbers of cases")
    parser.add_argument("--words", type=int, default=700, help="of a document where its length is not the question")
    parser.add_argument("--max-seconds", type=float, default=600.0, help="for each point")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves: .png or .svg; needs matplotlib")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    """Measure all points, print the table, write the JSON and draw the curves."""
    options = parse()
    close_engines_on_termination()
    measured: list[dict[str, Any]] = []
    result = {"command": sys.argv, "model": describe_model(options), "points": measured}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        common = {"workload": str(folder / "workload.json"), "max_seconds": options.max_seconds}
        settings = common_settings(options, engine="stream", **common)
        for point in points(options):
            print(f"{point.curve}: {point.value:,}", file=sys.stderr, flush=True)
            measured.append(measure(point, settings, folder))
            if options.out:
                # After each point, so that an hour's work is not lost with the last one.
                write(result, options.out)
    show(result)
    if options.plot:
        plot(result, options.plot)
    if any(point["failed"] for point in measured):
        sys.exit(1)


if __name__ == "__main__":
    main()
