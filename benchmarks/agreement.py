"""Compare verdicts on many prompts together with verdicts on each alone in float32: what sharing passes may change.

FILE is JSONL (also .gz) with the fields document and claim.  Two judges are compared with the oracle, which scores each
prompt in a pass of its own in float32: all prompts together in float32, and together in bfloat16 with a second look at
scores near the threshold.  Whole claims against whole documents; pairs longer than --most-tokens are left out.
The exit status is 3 where any prompt has no score.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from minicheck_eval import open_judge
from minicheck_eval.errors import MinicheckError
from minicheck_eval.manifest import load_manifest
from minicheck_eval.scoring import Backend, Failure, Prompt, PromptTemplate, Score


@dataclass(frozen=True, slots=True)
class Difference:
    """How scores differ from the oracle's."""

    judge: str
    prompts: int
    largest: float
    """The largest difference of support."""
    verdicts: int
    """How many lie on another side of the threshold."""
    failures: int


def read(path: Path, template: PromptTemplate, count: Callable[[Sequence[str]], list[int]], most: int) -> list[Prompt]:
    """Return a prompt for each pair that is not too long, each once."""
    opener: Callable[..., TextIO] = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        pairs = [(str(row["document"]), str(row["claim"])) for row in map(json.loads, lines)]
    prompts = list(dict.fromkeys(template.fill(document, claim) for document, claim in pairs))
    sizes = count([prompt.text for prompt in prompts])
    return [prompt for prompt, size in zip(prompts, sizes, strict=True) if size <= most]


def compare(
    name: str, oracle: Sequence[Score | Failure], scores: Sequence[Score | Failure], threshold: float
) -> Difference:
    """Compare scores with the oracle's, prompt by prompt; a failure on either side counts as one."""
    pairs = [
        (one.support, other.support)
        for one, other in zip(oracle, scores, strict=True)
        if isinstance(one, Score) and isinstance(other, Score)
    ]
    return Difference(
        name,
        len(scores),
        max((abs(one - other) for one, other in pairs), default=0.0),
        sum((one > threshold) != (other > threshold) for one, other in pairs),
        len(scores) - len(pairs),
    )


def alone(backend: Backend, prompts: Sequence[Prompt]) -> list[Score | Failure]:
    """Score each prompt in a call of its own."""
    scores = []
    for place, prompt in enumerate(prompts):
        scores += backend.score([prompt])
        if sys.stderr.isatty():
            print(f"\ralone: {place + 1}/{len(prompts)}", end="", file=sys.stderr)
    return scores


def measure(name: str, path: Path, limit: int, most: int) -> list[Difference]:
    """Score the prompts three times and compare."""
    exact = open_judge(name, dtype="float32")
    backend, threshold = exact.backend, exact.identity.threshold
    template = load_manifest(name).manifest.template
    prompts = read(path, template, backend.count_tokens, most)[:limit]
    oracle = alone(backend, prompts)
    twice = open_judge(name, dtype="bfloat16", recheck=True)
    once = open_judge(name, dtype="bfloat16")
    return [
        compare("float32, together", oracle, backend.score(prompts), threshold),
        compare("bfloat16, together", oracle, once.backend.score(prompts), threshold),
        compare("bfloat16, together, --recheck", oracle, twice.backend.score(prompts), threshold),
    ]


def main() -> int:
    """Read the arguments, measure, print a table and write the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--judge", default="minicheck-nano")
    parser.add_argument("--limit", type=int, default=2000, help="most prompts")
    parser.add_argument("--most-tokens", type=int, default=512, help="leave longer prompts out")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    try:
        found = measure(arguments.judge, arguments.file, arguments.limit, arguments.most_tokens)
    except (MinicheckError, OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    columns = f"{'prompts':>8} {'largest difference':>20} {'other verdicts':>15} {'failures':>9}"
    print(f"{'against each alone in float32':32} {columns}")
    for one in found:
        print(f"{one.judge:32} {one.prompts:8} {one.largest:20.2e} {one.verdicts:15} {one.failures:9}")
    if arguments.out:
        arguments.out.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n", encoding="utf-8")
    return 3 if any(one.failures for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
