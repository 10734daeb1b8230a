"""`minicheck-eval check`: one text against documents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from minicheck_eval.cli.judge_options import evaluator_option, judge_arguments, judge_options
from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput, CouldNotJudge
from minicheck_eval.evaluators.documents import find_document
from minicheck_eval.evaluators.names import WITHOUT_EVIDENCE

__all__ = ["check"]

EXIT_CODES = {Outcome.PASS: 0, Outcome.FAIL: 1}


@click.command()
@click.option("--document", "documents", multiple=True, metavar="FILE|-", help="Evidence; repeatable.")
@click.option("--claim", required=True, metavar="TEXT", help="The text to check, one claim or many.")
@click.option("--question", default="", metavar="TEXT", help="What the text answers, for evaluators that ask.")
@click.option("--judge", "judge_name", default="minicheck-nano", show_default=True, help="Judge to ask.")
@evaluator_option
@judge_options
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object and nothing else.")
def check(documents: tuple[str, ...], claim: str, question: str, judge_name: str, as_json: bool, **options: Any) -> int:
    """Check each claim of a text against documents.

    Exit code 0: all claims supported; 1: not; 2: bad input; 3: could not judge.
    """
    if not documents and options["evaluator"] not in WITHOUT_EVIDENCE:
        raise BadInput("there is no document to check against", hint="name one: --document FILE, or - for stdin")
    if not question.strip() and options["evaluator"] != "fact-checking":
        raise BadInput(f"{options['evaluator']} needs a question, and there is none", hint="give it: --question TEXT")
    request = EvaluationRequest(question, [_read(name) for name in documents], claim)
    from minicheck_eval.judge import open_judge

    with open_judge(judge_name, evaluator=options["evaluator"], **judge_arguments(options)) as judge:
        response = judge.evaluate(request)
    click.echo(json.dumps(response.to_json()) if as_json else _render(request, response))
    return EXIT_CODES.get(response.outcome, CouldNotJudge.exit_code)


def _read(name: str) -> Document:
    if name == "-" and sys.stdin is None:
        raise BadInput("stdin is closed", hint="name a file")
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return Document(content.decode("utf-8-sig"), "stdin" if name == "-" else name)
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}", hint="name a file, or - for stdin") from error
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{name} is not UTF-8: byte {error.start} is {content[error.start]:#04x}", hint="convert it to UTF-8"
        ) from error


def _render(request: EvaluationRequest, response: EvaluationResponse) -> str:
    from minicheck_eval.reports.plain import plain

    lines = []
    for claim in response.metadata.get("claims", ()):
        support = "  –  " if claim["support"] is None else f"{claim['support']:.3f}"
        lines.append(f"{support}  {claim['outcome']:<7}  {plain(claim['text'])}")
        if "detail" in claim:
            lines.append(f"       {plain(claim['detail'])}")
        if claim["chunk"]:
            document = find_document(request.documents, claim["document"])
            evidence = (document.text or "")[claim["chunk"]["start"] : claim["chunk"]["end"]]
            lines.append(f"       {plain(document.id or '')}: {click.style(plain(evidence, most=160), dim=True)}")
    score = "no score" if response.score is None else f"support {response.score:.3f}"
    lines.append(f"{response.outcome.value}: {response.feedback.splitlines()[0]} ({score})")
    return "\n".join(lines)
