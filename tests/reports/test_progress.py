import io

from rich.console import Console

from minicheck_eval.harness.progress import Step
from minicheck_eval.reports.progress import progress_bar, speed
from minicheck_eval.scoring import Usage


def test_progress_is_silent_without_a_terminal():
    """A log file gets nothing of the bar."""
    stream = io.StringIO()
    with progress_bar(Console(file=stream)) as show:
        show(Step(0, 10))
        show(Step(10, 10))
    assert "" == stream.getvalue()


def test_progress_shows_what_was_done_before():
    """On a terminal the bar begins where the run does, and says how far it is and how fast."""
    stream = io.StringIO()
    with progress_bar(Console(file=stream, force_terminal=True, width=140)) as show:
        show(Step(4, 10))
        show(Step(10, 10, claims=12, usage=Usage(prompts=12, asked_tokens=400, computed_tokens=100)))
    assert "10/10" in stream.getvalue()
    assert "claims/s" in stream.getvalue()
    assert "75% saved by sharing" in stream.getvalue()
    assert "time left" in stream.getvalue()


def test_speed_is_that_of_this_process():
    """Claims and tokens per second are those of now; a judge that does not count tokens shows none."""
    usage = Usage(prompts=30, asked_tokens=6000, computed_tokens=1500)
    assert "5.0 claims/s, 750 tokens/s (75% saved by sharing)" == speed(Step(8, 9, claims=10, usage=usage), 2)
    assert "0.5 claims/s" == speed(Step(8, 9, claims=1), 2)
    padded = Usage(prompts=30, asked_tokens=1000, computed_tokens=1100)
    assert "0.5 claims/s, 550 tokens/s" == speed(Step(8, 9, claims=1, usage=padded), 2)
