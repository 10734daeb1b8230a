"""Measure how many claims a second the engine judges, beside what else could do the work on the same machine.

Engines: `ours` (from prompts as text to scores), `generate` (transformers, padded batches sorted by length), `single`
(one prompt at a time), `vllm` (prefix caching) and `llama.cpp` (its server).  Each runs in a process of its own, with
the same number of threads; in each repeat every engine runs once.  All but ours are given token ids and need not
tokenise.  The default is 96 prompts: 16 documents of 300 to 800 words, 6 claims each, in MiniCheck's prompt.
Shares of the machine's matrix products (the best of several sizes, and the large square one) count only the arithmetic
that is needed at least, each shared token computed once.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hotpath.arguments import add_model_options, common_settings, describe_model, shape_of, span
from hotpath.measure import measure
from hotpath.processes import close_engines_on_termination, environment
from hotpath.settings import Settings
from hotpath.shapes import Work, unique_work
from hotpath.tables import engine_figures, machine_figures, show, write
from hotpath.workloads import Case, Synthetic, prompts, read_cases
from minicheck_eval.backends.local_tokenizer import PromptTokenizer

ENGINES = ("ours", "generate", "single", "vllm", "llama.cpp")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser)
    parser.add_argument("--engines", default=",".join(ENGINES), help="those to run, divided by commas")
    parser.add_argument("--documents", type=int, help="16, or all of --jsonl")
    parser.add_argument("--claims-per-document", type=int, default=6)
    parser.add_argument("--words", type=span, default=(300, 800), help="of a document, such as 700 or 300-800")
    parser.add_argument("--jsonl", type=Path, help="real documents: lines with the fields document and claim")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batch-sizes", default="4,8,32", help="among which padded generation chooses the best")
    parser.add_argument("--vllm-python", metavar="PATH", help="an interpreter that has vllm; else this one, if it has")
    parser.add_argument("--vllm-block-size", type=int, metavar="TOKENS", help="its own choice without")
    parser.add_argument("--llama-server", metavar="PATH|URL", help="llama.cpp's server; with a PATH goes --gguf")
    parser.add_argument("--gguf", type=Path, help="the model for llama.cpp's server: same shape, its own precision")
    return parser.parse_args()


def read_workload(options: argparse.Namespace) -> list[Case]:
    """Return the documents and claims to judge."""
    if options.jsonl:
        return read_cases(options.jsonl, options.documents)
    return list(
        Synthetic(options.documents or 16, options.claims_per_document, options.words, seed=options.seed).cases()
    )


def choose(options: argparse.Namespace, settings: Settings) -> tuple[dict[str, tuple[Settings, str]], dict[str, str]]:
    """Return the engines to run, with their settings and interpreters, and those to skip, with the reason."""
    run = {"peak": (replace(settings, engine="peak"), sys.executable)}
    skipped: dict[str, str] = {}
    for name in options.engines.split(","):
        if name not in ENGINES:
            sys.exit(f"there is no engine {name!r}; expected some of {', '.join(ENGINES)}")
        own, interpreter = replace(settings, engine=name), sys.executable
        if name == "vllm":
            if not options.vllm_python and importlib.util.find_spec("vllm") is None:
                skipped[name] = "it is not installed here, and --vllm-python names no interpreter that has it"
                continue
            interpreter = options.vllm_python or interpreter
            own = replace(own, block_size=options.vllm_block_size)
        if name == "llama.cpp":
            if not options.llama_server:
                skipped[name] = "--llama-server names no program and no URL"
                continue
            own = replace(own, server=options.llama_server, model=str(options.gguf))
        run[name] = (own, interpreter)
    return run, skipped


def with_weights_on_disk(chosen: dict[str, tuple[Settings, str]], folder: Path) -> None:
    """Where vLLM is to run with random weights, write them for it: it reads only files."""
    if "vllm" not in chosen or chosen["vllm"][0].model:
        return
    settings, interpreter = chosen["vllm"]
    asked, weights = folder / "settings.json", folder / "weights"
    asked.write_text(json.dumps(asdict(settings)), encoding="utf-8")
    command = [sys.executable, "-m", "hotpath.models", str(asked), str(weights)]
    subprocess.run(command, check=True, env=environment(settings.threads))  # noqa: S603 - no shell, own module
    chosen["vllm"] = (replace(settings, model=str(weights)), interpreter)


def benchmark(options: argparse.Namespace, cases: Sequence[Case], folder: Path) -> dict[str, Any]:
    """Measure all engines and return all figures."""
    workload = folder / "workload.json"
    sizes = tuple(int(size) for size in options.batch_sizes.split(","))
    settings = common_settings(options, engine="", workload=str(workload), batch_sizes=sizes)
    encoded = PromptTokenizer(Path(settings.tokenizer)).encode(prompts(cases))
    workload.write_text(
        json.dumps({
            "cases": [[case.document, case.claims] for case in cases],
            "ids": [one.prefix + one.suffix for one in encoded],
        }),
        encoding="utf-8",
    )  # fmt: skip
    chosen, skipped = choose(options, settings)
    with_weights_on_disk(chosen, folder)
    results = measure(chosen, repeats=options.repeats, folder=folder)
    machine = machine_figures(results.pop("peak"))
    work, shape = unique_work(encoded), shape_of(options)
    return {
        "command": sys.argv,
        "model": describe_model(options),
        "workload": _workload_figures(options, cases, work),
        "machine": machine,
        "engines": engine_figures(results, work=work, shape=shape, machine=machine),
        "skipped": skipped,
    }


def _workload_figures(options: argparse.Namespace, cases: Sequence[Case], work: Work) -> dict[str, Any]:
    return {
        "source": str(options.jsonl) if options.jsonl else "generated",
        "documents": len(cases),
        "prompts": sum(len(case.claims) for case in cases),
        "repeats": options.repeats,
        **asdict(work),
    }


def main() -> None:
    """Measure, print the table and write the JSON; the exit status is 1 where an engine failed."""
    options = parse()
    close_engines_on_termination()
    with tempfile.TemporaryDirectory() as folder:
        result = benchmark(options, read_workload(options), Path(folder))
    show(result)
    if options.out:
        write(result, options.out)
    if any(one["failed"] for one in result["engines"].values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
