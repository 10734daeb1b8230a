"""Options that the benchmarks share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from hotpath.settings import Settings
from hotpath.shapes import SHAPES, Shape, read_shape
from hotpath.workloads import TEMPLATE
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.manifest import models_folder

__all__ = ["add_model_options", "available_cores", "common_settings", "describe_model", "shape_of", "span"]

NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def span(text: str) -> tuple[int, int]:
    """Read `300-800`, or `700` for both ends."""
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add what chooses model, machine and result file."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--shape", choices=sorted(SHAPES), default="smollm2-135m", help="random weights of this shape")
    which.add_argument("--model", type=Path, metavar="FOLDER", help="real weights: config.json and safetensors")
    parser.add_argument("--dtype", choices=sorted(NUMBER_BYTES), default="bfloat16")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument(
        "--budget", type=int, metavar="TOKENS", help="of one pass of our engine; its own choice without"
    )
    parser.add_argument("--attention", metavar="NAME", help="of our engine; its own choice without")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures as JSON")


def shape_of(options: argparse.Namespace) -> Shape:
    """Return the shape of the model that is measured."""
    return read_shape(options.model) if options.model else SHAPES[options.shape]


def common_settings(options: argparse.Namespace, **own: Any) -> Settings:
    """Return what all engines of a measurement are told."""
    tokenizer = options.model / "tokenizer.json" if options.model else None
    if tokenizer is None or not tokenizer.is_file():
        tokenizer = models_folder() / "minicheck-nano" / "tokenizer.json"
    reader = PromptTokenizer(tokenizer)
    (probe,) = reader.encode([TEMPLATE.fill("", "")])
    return Settings(
        tokenizer=str(tokenizer),
        shape=None if options.model else options.shape,
        model=str(options.model) if options.model else None,
        dtype=options.dtype,
        device=options.device,
        threads=options.threads,
        seed=options.seed,
        budget=options.budget,
        attention=options.attention,
        yes=reader.token_id("Yes"),
        no=reader.token_id("No"),
        probe=probe.prefix + probe.suffix,
        kv_bytes_per_token=shape_of(options).kv_bytes_per_token(NUMBER_BYTES[options.dtype]),
        **own,
    )


def describe_model(options: argparse.Namespace) -> dict[str, Any]:
    """Say what was measured, for the result file."""
    shape = shape_of(options)
    return {
        "name": options.model.name if options.model else options.shape,
        "random_weights": options.model is None,
        "block_parameters": shape.block_parameters,
        "dtype": options.dtype,
        "device": options.device,
        "threads": options.threads,
    }
