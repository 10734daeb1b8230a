"""The progress of a run on stderr: a bar with cases/s and the time left, and nothing where no person looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from minicheck_eval.harness.run import Progress as Callback

__all__ = ["progress_bar"]


class _CasesPerSecond(ProgressColumn):
    """Shows the speed."""

    def render(self, task: Task) -> Text:
        """Return the cases per second, once they are known."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f} cases/s")


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Callback]:
    """Show how far a run is; yields what `run_cases` calls with the cases done and all cases."""
    console = console or Console(stderr=True)
    columns = (
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        _CasesPerSecond(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        # The first call tells what an earlier run did: that is no speed of this one.
        tasks: list[int] = []

        def show(done: int, total: int) -> None:
            if tasks:
                bar.update(bar.task_ids[0], completed=done)
            else:
                tasks.append(bar.add_task("judging", total=total, completed=done))

        yield show
