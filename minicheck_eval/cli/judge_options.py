"""The flags that say how a judge is opened, the same for every verb that opens one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["judge_options"]

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--dtype",
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
        default="auto",
        show_default=True,
        help="Number format; auto: bfloat16 on a GPU, float32 on a CPU.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="DEVICE",
        help="cpu, cuda, cuda:1, …; auto: all GPUs, and the CPU's memory for what does not fit.",
    ),
    click.option("--max-memory", metavar="LIMITS", help="Most memory for weights, such as 0=20GiB,cpu=30GiB."),
    click.option("--quantize", type=click.Choice(["8bit", "4bit"]), help="Smaller weights; needs the extra `quant`."),
    click.option(
        "--recheck", is_flag=True, help="Compute scores near the threshold again, alone and in float32; takes memory."
    ),
    click.option(
        "--parity",
        type=click.Choice(["reference", "published"]),
        help="Judge as the MiniCheck package does; see the README.",
    ),
)


def judge_options(command: Command) -> Command:
    """Add the flags to a verb."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
