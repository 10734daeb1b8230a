"""Measure a judge on labelled pairs: balanced accuracy with a bootstrap interval, and AUC, by data set and on average.

FILE is JSONL (also .gz) with the columns `dataset, document, claim, label` or, as LLM-AggreFact is published (arXiv
2404.10774), `dataset, doc, claim, label`.  A row that the judge could not judge counts as wrong, and the table says how
many there were.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy.stats import mannwhitneyu

from minicheck_eval import Document, EvaluationRequest, Outcome, open_judge
from minicheck_eval.errors import MinicheckError

REPEATS = 2000


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled pair."""

    dataset: str
    document: str
    claim: str
    label: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What the judge said to one row: 1, 0 or, where it could not judge, None; and the support."""

    label: int
    verdict: int | None
    support: float | None


def read(path: Path) -> list[Row]:
    """Read all rows; a wrong one ends the program with its line."""
    opener: Callable[..., TextIO] = gzip.open if path.suffix == ".gz" else open
    rows: list[Row] = []
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                value = json.loads(line)
                document = value["document"] if "document" in value else value["doc"]
                label = {0: 0, 1: 1}[value["label"]]
                rows.append(Row(str(value["dataset"]), str(document), str(value["claim"]), label))
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path}:{len(rows) + 1}: {error!r}; expected dataset, document (or doc), claim, and label 0 or 1")
    except (OSError, EOFError) as error:
        sys.exit(f"{path}: {error}")
    if not rows:
        sys.exit(f"{path} has no rows")
    return rows


def balanced_accuracy(labels: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    """Return the mean of the accuracies on the two labels."""
    return float(np.mean([right[labels == label].mean() for label in (0, 1) if (labels == label).any()]))


def measure(answers: Sequence[Answer], seed: int) -> dict[str, Any]:
    """Return n, balanced accuracy with its 95 % interval (rows drawn anew within each label), AUC, unjudged rows."""
    labels = np.array([a.label for a in answers])
    right = np.array([a.verdict == a.label for a in answers])
    random = np.random.default_rng(seed)
    means = []
    for label in (0, 1):
        of_label = right[labels == label]
        if len(of_label):
            means.append(random.choice(of_label, (REPEATS, len(of_label))).mean(1))
    low, high = np.quantile(np.mean(means, axis=0), [0.025, 0.975])
    return {
        "n": len(answers),
        "balanced_accuracy": balanced_accuracy(labels, right),
        "interval": [float(low), float(high)],
        "auc": auc(answers),
        "unjudged": sum(a.verdict is None for a in answers),
    }


def auc(answers: Iterable[Answer]) -> float | None:
    """Return the chance that a supported row has more support than an unsupported one; None without both."""
    scores: dict[int, list[float]] = {0: [], 1: []}
    for answer in answers:
        if answer.support is not None:
            scores[answer.label].append(answer.support)
    if not scores[0] or not scores[1]:
        return None
    return float(mannwhitneyu(scores[1], scores[0]).statistic) / (len(scores[0]) * len(scores[1]))


def judge_rows(rows: Sequence[Row], options: argparse.Namespace) -> tuple[dict[str, Any], list[Answer]]:
    """Judge all rows; return the judge's identity and one answer for each row."""
    judge = open_judge(
        options.judge,
        threshold=options.threshold,
        chunk_tokens=options.chunk_tokens,
        dtype=options.dtype,
        split_claims=not options.whole_claims,
    )
    answers: list[Answer] = []
    began = time.monotonic()
    for start in range(0, len(rows), 100):
        batch = rows[start : start + 100]
        requests = [EvaluationRequest.from_documents([Document(row.document)], row.claim) for row in batch]
        for row, response in zip(batch, judge.evaluate_batch(requests), strict=True):
            verdict = int(response.outcome is Outcome.PASS) if response.outcome.judged else None
            answers.append(Answer(row.label, verdict, response.score))
        if sys.stderr.isatty() or options.progress:
            rate = len(answers) / (time.monotonic() - began)
            print(f"\r{len(answers)} of {len(rows)}, {rate:.1f} rows/s", end="", file=sys.stderr, flush=True)
    return judge.identity.to_json(), answers


def main() -> None:
    """Read, judge, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--judge", default="minicheck-nano")
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--chunk-tokens", type=int)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--whole-claims", action="store_true", help="do not split claims into sentences")
    parser.add_argument("--limit", type=int, help="only so many rows of each data set")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    parser.add_argument("--progress", action="store_true", help="show progress although stderr is no terminal")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument(
        "--scores", type=Path, metavar="OUT", help="one line of JSON for each row: dataset, label, support"
    )
    options = parser.parse_args()

    rows = read(options.file)
    if options.limit:
        seen: dict[str, int] = defaultdict(int)
        kept = []
        for row in rows:
            seen[row.dataset] += 1
            if seen[row.dataset] <= options.limit:
                kept.append(row)
        rows = kept
    identity, answers = judge_rows(rows, options)
    groups: dict[str, list[Answer]] = defaultdict(list)
    for row, answer in zip(rows, answers, strict=True):
        groups[row.dataset].append(answer)
    datasets = {name: measure(group, options.seed) for name, group in sorted(groups.items())}
    aucs = [d["auc"] for d in datasets.values() if d["auc"] is not None]
    mean = {
        "balanced_accuracy": float(np.mean([d["balanced_accuracy"] for d in datasets.values()])),
        "auc": float(np.mean(aucs)) if aucs else None,
    }
    show(datasets, mean)
    if options.json:
        options.json.write_text(
            json.dumps({"judge": identity, "datasets": datasets, "mean": mean}, indent=2) + "\n", encoding="utf-8"
        )
    if options.scores:
        with options.scores.open("w", encoding="utf-8") as stream:
            for row, answer in zip(rows, answers, strict=True):
                line = {"dataset": row.dataset, "label": row.label, "support": answer.support}
                stream.write(json.dumps(line) + "\n")


def show(datasets: dict[str, dict[str, Any]], mean: dict[str, Any]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("data set")
    for heading in ("n", "balanced accuracy", "95 % interval", "AUC", "unjudged"):
        table.add_column(heading, justify="right")
    for name, d in datasets.items():
        low, high = d["interval"]
        number = "–" if d["auc"] is None else f"{d['auc']:.3f}"
        interval = f"{low:.3f} – {high:.3f}"
        table.add_row(name, str(d["n"]), f"{d['balanced_accuracy']:.3f}", interval, number, str(d["unjudged"]))
    table.add_section()
    total = sum(d["n"] for d in datasets.values())
    unjudged = sum(d["unjudged"] for d in datasets.values())
    number = "–" if mean["auc"] is None else f"{mean['auc']:.3f}"
    table.add_row("mean", str(total), f"{mean['balanced_accuracy']:.3f}", "", number, str(unjudged))
    Console().print(table)


if __name__ == "__main__":
    try:
        main()
    except MinicheckError as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
