"""The progress of a run on stderr: a bar with the speed and the time left, and nothing where no person looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from minicheck_eval.harness.progress import Progress as Callback
from minicheck_eval.harness.progress import Step

__all__ = ["progress_bar", "speed"]


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Callback]:
    """Show how far a run is; yields what `run_cases` calls with each step."""
    console = console or Console(stderr=True)
    columns = (
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        started = perf_counter()
        # The first step tells what an earlier run did: that is no speed of this one.
        tasks: list[TaskID] = []

        def show(step: Step) -> None:
            if tasks:
                bar.update(tasks[0], completed=step.done, speed=speed(step, perf_counter() - started))
            else:
                tasks.append(bar.add_task("judging", total=step.total, completed=step.done, speed=""))

        yield show


def speed(step: Step, seconds: float) -> str:
    """Say how fast this process is, and what sharing saves it."""
    words = f"{step.claims / seconds:.1f} claims/s"
    if step.usage is None or not step.usage.asked_tokens:
        return words
    words += f", {step.usage.computed_tokens / seconds:,.0f} tokens/s"
    # An encoder shares nothing, and pads.
    saved = 1 - step.usage.computed_tokens / step.usage.asked_tokens
    return f"{words} ({saved:.0%} saved by sharing)" if saved > 0 else words
