"""report.html: a run as one page that opens from disk, without network, in any browser of today."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, BinaryIO

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from minicheck_eval.counts import counted
from minicheck_eval.harness.files import encode
from minicheck_eval.harness.gates import explaining, in_words, percent
from minicheck_eval.reports.case_view import CaseResult
from minicheck_eval.reports.intervals import axis, interval
from minicheck_eval.reports.page_data import PageData
from minicheck_eval.reports.view import View
from minicheck_eval.reports.writer import Writer

__all__ = ["HtmlReport"]

ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a browser does not show, or what turns the text around it."""
MOST_CHANGES = 100
MOST_REASONS = 200


class HtmlReport(Writer):
    """Writes report.html: what was decided and why, and below it the cases, to be filtered and searched."""

    def __init__(self, view: View, stream: BinaryIO) -> None:
        super().__init__(view, stream)
        self._data = PageData()

    def add(self, case: CaseResult, record: Mapping[str, Any]) -> None:
        """Take a case."""
        self._data.add(case, record)

    def finish(self) -> None:
        """Write the page."""
        style, script = _asset("report.css"), _asset("cases.js") + _asset("case.js")
        page = _template().generate(
            head=self._head,
            reasons=explaining(self._head.decision.gates),
            asked={(gate.evaluator, gate.slice): gate.asked for gate in self._head.decision.gates},
            comparison=self._head.comparison,
            data=self._data,
            documents=map(Markup, self._data.documents),
            cases=map(Markup, self._data.cases()),
            changes=Markup(_changes(self._head.comparison)),  # noqa: S704 - JSON without a <
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704
            policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'",
            most_changes=MOST_CHANGES,
            most_reasons=MOST_REASONS,
        )
        for part in page:
            self._stream.write(part.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Let the cases go."""
        self._data.close()


@cache
def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("minicheck_eval.reports", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "in_words": in_words,
        "percent": percent,
        "shown": _shown,
        "interval": interval,
    }
    environment.globals |= {"axis": axis}
    return environment.get_template("report.html.j2")


def _asset(name: str) -> str:
    return (files("minicheck_eval.reports") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shown(text: object) -> Markup:
    """Escape a text from outside, keep its direction to itself, and show what would be invisible."""
    inside = ODD.sub(lambda odd: f'<span class="odd">U+{ord(odd[0]):04X}</span>', str(escape(str(text))))
    return Markup(f'<bdi dir="auto">{inside}</bdi>')  # noqa: S704 - escaped above


def _changes(comparison: Mapping[str, Any] | None) -> str:
    """Return, by evaluator and case, the outcome in the baseline of what came out otherwise."""
    evaluators = comparison["evaluators"] if comparison else {}
    found = {
        name: {case: change["before"] for case, change in compared["changes"].items()}
        for name, compared in evaluators.items()
    }
    return encode(found).replace(b"<", b"\\u003c").decode()
