"""Measure replay: how many cases a second one core judges from a tape, and how much memory that takes.

A tape of N answers is written (a claim a case, CLAIMS cases share a document), then replayed: first the answers alone,
at the seam, then a whole run, from the file of cases through the evaluator to the records on the disk, the decision and
the terminal's report, then the four reports that are files.  Prints one line of JSON.

    python benchmarks/replay.py --records 1000000
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from minicheck_eval.contract import Document
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.evaluators.prompts import FACT_CHECKING
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.cases import load
from minicheck_eval.harness.deterministic import NO_JUDGE
from minicheck_eval.harness.files import encode
from minicheck_eval.harness.run import run_cases
from minicheck_eval.reports.terminal import print_report
from minicheck_eval.reports.view import open_view
from minicheck_eval.reports.writing import FORMATS, file_names, write_reports
from minicheck_eval.scoring import Prompt, Score
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape

SHARED = 20
BATCH = 32
SENTENCES = 12


class Counting:
    """Counts words, and says of every prompt the same."""

    name = "none"
    dtype = "none"
    window_tokens = 4096

    def count_tokens(self, texts: list[str]) -> list[int]:
        """Count words."""
        return [len(text.split()) for text in texts]

    def score(self, prompts: list[Prompt]) -> list[Score]:
        """Say yes."""
        return [Score(0.9, 0.1, "Yes")] * len(prompts)


def document(number: int) -> str:
    """Write a document of a dozen sentences, no two alike."""
    return " ".join(f"Fact {number}.{i} is that the shop in street {i} opens at nine." for i in range(SENTENCES))


def case(number: int) -> Case:
    """Write a case: one claim, one document that it shares with others."""
    text = document(number // SHARED)
    return Case(
        id=f"c{number}",
        question="When does the shop open?",
        documents=(Document(text, f"d{number // SHARED}"),),
        answer=f"The shop of customer {number} opens at nine.",
    )


def checker(tape: Any) -> FactCheckingEvaluator:
    """Return the evaluator over a backend."""
    return FactCheckingEvaluator(
        tape, template=FACT_CHECKING, chunk_tokens=1000, decision=DecisionConfig(threshold=0.5)
    )


def record(folder: Path, count: int) -> None:
    """Write the tape, as a recorder does, in steps that keep the journal from being synced a million times."""
    tape = TapeBackend(Tape.record(folder, TapeHeader(model="none", window_tokens=4096)), Mode.RECORD, Counting())  # type: ignore[arg-type]
    evaluator = checker(tape)
    for start in range(0, count, 2000):
        requests = [case(number).to_request() for number in range(start, min(count, start + 2000))]
        evaluator.evaluate_batch(requests)
    tape.close()


def seam(folder: Path, count: int) -> dict[str, Any]:
    """Replay the answers alone."""
    started = time.process_time()
    tape = TapeBackend(Tape.open(folder), Mode.REPLAY_ONLY)
    found = 0
    for start in range(0, count, BATCH):
        numbers = range(start, min(count, start + BATCH))
        prompts = [FACT_CHECKING.fill(document(n // SHARED), case(n).answer or "") for n in numbers]
        found += sum(isinstance(score, Score) for score in tape.score(prompts))
    return told("seam", found, count, started)


def run(folder: Path, count: int) -> dict[str, Any]:
    """Replay a file of cases into a run: its records, its rates and its decision."""
    cases = folder.with_suffix(".jsonl")
    with cases.open("wb") as stream:
        stream.writelines(encode(case(number).to_json()) + b"\n" for number in range(count))
    started = time.process_time()
    loaded = load(cases)
    found = run_cases(
        loaded.cases,
        evaluators={"fact-checking": checker(TapeBackend(Tape.open(folder), Mode.REPLAY_ONLY))},
        identities={"fact-checking": NO_JUDGE},
        out=folder.with_suffix(".run"),
        arguments={},
        meta={},
        cases_path=cases,
        cases_digest=loaded.digest,
        restart=True,
    )
    print_report(found, Console(file=io.StringIO()))
    return told("run", found.summary.evaluators[0].overall.passed, count, started)


def reports(folder: Path, count: int) -> dict[str, Any]:
    """Write the reports of that run that are files."""
    started = time.process_time()
    out = folder.with_suffix(".run")
    view = open_view(out)
    write_reports(view, file_names(FORMATS, out))
    return told("reports", view.head.evaluators[0].overall.passed, count, started)


def told(stage: str, found: int, count: int, started: float) -> dict[str, Any]:
    """Return the numbers of a stage; every case must have been answered."""
    if found != count:
        sys.exit(f"{stage}: only {found} of {count} cases were answered")
    # Of the processor, not of the clock: others may want the core as well.
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "stage": stage,
        "cases": count,
        "processor_seconds": round(seconds, 3),
        "cases_per_second": round(count / seconds),
        "peak_bytes": peak,
    }


def main() -> None:
    """Record, then measure each stage in a process of its own, so that peaks are its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000, metavar="N", help="answers on the tape, and cases")
    parser.add_argument("--folder", type=Path, help="keep the tape here, or take the one that lies here")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage is not None:
        sys.stdout.write(json.dumps(STAGES[options.stage](options.folder, options.records)))
        return
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "tape"
        stages = [measured(stage, folder, options.records) for stage in STAGES]
        size = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
        sys.stdout.write(json.dumps({"tape_bytes": size, "stages": [stage for stage in stages if stage]}) + "\n")


STAGES = {"record": record, "seam": seam, "run": run, "reports": reports}


def measured(stage: str, folder: Path, records: int) -> Any:
    """Run one stage in a process of its own."""
    if stage == "record" and (folder / "tape.json").exists():
        return None
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder), "--records", str(records)]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - this very script
    return json.loads(output) if output else None


if __name__ == "__main__":
    main()
