"""The flags that say how a judge is opened, the same for every verb that opens one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from minicheck_eval.evaluators.names import EVALUATORS, FALLBACK_ON, READINGS

__all__ = ["ABOVE_0", "evaluator_option", "judge_arguments", "judge_options", "not_nan"]

Command = TypeVar("Command", bound=Callable[..., Any])
PLAIN = (
    "threshold",
    "chunk_tokens",
    "pass_score",
    "reading",
    "dtype",
    "device",
    "max_memory",
    "quantize",
    "recheck",
    "parity",
    "calibration",
)
ANY_SHARE = click.FloatRange(0, 1)
ABOVE_0 = click.FloatRange(0, min_open=True)


def not_nan(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Refuse NaN, which is in every range to click, and in none to a gate."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number between 0 and 1")
    return value


OPTIONS = (
    click.option(
        "--threshold",
        type=ANY_SHARE,
        callback=not_nan,
        help="Support above which a claim is supported; else the judge's own.",
    ),
    click.option("--calibration", metavar="FILE", help="Threshold and map of supports, as `calibrate` saved them."),
    click.option(
        "--chunk-tokens", type=click.IntRange(1), help="Most tokens of one evidence chunk; else the judge's own."
    ),
    click.option("--pass-score", type=click.IntRange(1, 5), help="Least score that passes a rubric.  [default: 4]"),
    click.option(
        "--reading",
        type=click.Choice(READINGS),
        default="auto",
        show_default=True,
        help="How a chat model's yes or no is read; strict: as Spring AI compares.",
    ),
    click.option("--yes-word", multiple=True, metavar="WORD", help="Counts as yes, beside “yes”; repeatable."),
    click.option("--no-word", multiple=True, metavar="WORD", help="Counts as no, beside “no”; repeatable."),
    click.option("--fallback", metavar="NAME", help="Judge that is asked where the first is not enough."),
    click.option(
        "--fallback-on",
        default=",".join(FALLBACK_ON),
        show_default=True,
        metavar="REASONS",
        help="When it is asked.",
    ),
    click.option(
        "--fallback-band",
        type=ANY_SHARE,
        callback=not_nan,
        default=0.1,
        show_default=True,
        help="Uncertain is a support this near to the threshold.",
    ),
    click.option("--url", metavar="URL", help="Ollama server of a judge ollama:MODEL; else $OLLAMA_HOST."),
    click.option(
        "--concurrency", type=click.IntRange(1), help="Most requests to a server at once; else as many as help."
    ),
    click.option(
        "--rate-limit", type=ABOVE_0, callback=not_nan, metavar="N", help="Most requests to a server in a second."
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=ABOVE_0,
        callback=not_nan,
        default=300.0,
        show_default=True,
        help="Seconds for a request to a server.",
    ),
    click.option(
        "--window-tokens", type=click.IntRange(1), help="Most tokens of a prompt to a server; else the model's own."
    ),
    click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key of a server."),
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
    click.option(
        "--tape", metavar="DIR", help="Folder of recorded answers, a tape for each judge; they are not asked for again."
    ),
    click.option(
        "--mode",
        type=click.Choice(["replay-only", "record", "record-always", "bypass"]),
        help="What is done with the tape.  [default: replay-only where $CI is set, else record]",
    ),
)


evaluator_option = click.option(
    "--evaluator",
    type=click.Choice(EVALUATORS),
    default="fact-checking",
    show_default=True,
    help="What the judge is asked; all but fact-checking want a chat model.",
)
"""For verbs that ask one thing."""


def judge_options(command: Command) -> Command:
    """Add the flags to a verb."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def judge_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `open_judge` takes, from the flags of a verb; its other flags are left out."""
    from minicheck_eval.backends.servers.options import ServerOptions
    from minicheck_eval.choosing import Fallback
    from minicheck_eval.tape.options import TapeOptions
    from minicheck_eval.text.replies import ReplyRule

    server = ServerOptions(
        url=options["url"],
        concurrency=options["concurrency"],
        requests_per_s=options["rate_limit"],
        timeout_s=options["timeout_s"],
        window_tokens=options["window_tokens"],
        api_key_env=options["api_key_env"],
    )
    # Beside the usual ones, since the judge is asked in English.
    rule = ReplyRule(yes=("yes", *options["yes_word"]), no=("no", *options["no_word"]))
    reasons = tuple(filter(None, map(str.strip, options["fallback_on"].split(","))))
    name = options["fallback"]
    return {
        **{plain: options[plain] for plain in PLAIN},
        "rule": rule if options["yes_word"] or options["no_word"] else None,
        "server": server,
        "tape": TapeOptions.read(options["tape"], options["mode"]),
        "fallback": None if name is None else Fallback(name, reasons, options["fallback_band"]),
    }
