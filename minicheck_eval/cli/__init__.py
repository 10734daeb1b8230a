"""The command line: one file a verb, each parses, calls and renders."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from minicheck_eval.errors import CouldNotJudge, MinicheckError

__all__ = ["main"]

VERBS = {
    "calibrate": "Tell what a judge's verdicts are worth, and fit its threshold.",
    "check": "Check one text against documents.",
    "compare": "Compare a run with a baseline, case by case.",
    "demo": "Run the packaged cases and show the report.",
    "fetch": "Get a judge's weights onto this machine.",
    "plan-size": "Say how many cases a finding takes.",
    "report": "Write a finished run as HTML, JSON, Markdown or JUnit.",
    "run": "Check a file of cases, or go on with a run.",
    "schema": "Print the JSON Schema of report.json.",
    "tape": "Look after recorded answers: stats, verify, prune, diff.",
}
INTERRUPTED = 130


class _Verbs(click.Group):
    """Loads a verb's module only when it is used, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in VERBS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"minicheck_eval.cli.{module}"), module)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="minicheck-eval")
def verbs() -> None:
    """Tell whether answers are supported by the evidence they were given, on this machine and offline.

    Exit codes: 0 passed, 1 did not pass, 2 bad input, 3 could not judge.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; an error is a line on stderr, never a traceback."""
    try:
        # Text that a terminal cannot show is escaped, so that printing never ends a run.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        code = verbs.main(arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; the same command goes on from what a run or a tape holds by now", err=True)
        code = INTERRUPTED
    except MinicheckError as error:
        click.echo(f"error: {error}", err=True)
        if error.hint:
            click.echo(f"hint: {error.hint}", err=True)
        code = error.exit_code
    except SystemExit:
        # click ends the program by itself only where whoever read the output stopped reading; that is no verdict.
        code = CouldNotJudge.exit_code
    except OSError as error:
        click.echo(f"error: {error}", err=True)
        code = CouldNotJudge.exit_code
    except Exception as error:  # a fault of ours must not look like a verdict, and 1 is one
        click.echo(f"error: {type(error).__name__}: {error}", err=True)
        click.echo("hint: this is a fault of minicheck-eval; set MINICHECK_EVAL_TRACEBACK=1 to see where", err=True)
        if os.environ.get("MINICHECK_EVAL_TRACEBACK"):
            raise
        code = CouldNotJudge.exit_code
    sys.exit(code or 0)
