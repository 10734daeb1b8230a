"""report.json: a run for programs, in a format that has a version and a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from minicheck_eval.harness.files import compact, encode
from minicheck_eval.reports.case_view import CaseResult
from minicheck_eval.reports.view import Head, View
from minicheck_eval.reports.writer import Writer

__all__ = ["JsonReport", "Report", "report_schema"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Head):
    """A run: its decision, its rates, where they come from, and every case."""

    cases: tuple[CaseResult, ...]


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of report.json."""
    schema = TypeAdapter(Report).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class JsonReport(Writer):
    """Writes report.json case by case, so that a run of any length fits in memory."""

    def __init__(self, view: View, stream: BinaryIO) -> None:
        super().__init__(view, stream)
        self._between = b"\n"
        head = encode(TypeAdapter(Head).dump_python(view.head), indent=2)
        self._stream.write(head.removesuffix(b"\n}") + b',\n  "cases": [')

    def add(self, case: CaseResult, record: Mapping[str, Any]) -> None:  # noqa: ARG002 - a case is enough
        """Write a case, on a line of its own."""
        self._stream.write(self._between + compact(case))
        self._between = b",\n"

    def finish(self) -> None:
        """Write the end."""
        self._stream.write(b"\n  ]\n}\n")
