"""What writes one report: it takes the cases one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from minicheck_eval.reports.case_view import CaseResult
from minicheck_eval.reports.view import View

__all__ = ["Writer"]


class Writer:
    """Writes the report of a run into a stream."""

    def __init__(self, view: View, stream: BinaryIO) -> None:
        self._head = view.head
        self._stream = stream

    def add(self, case: CaseResult, record: Mapping[str, Any]) -> None:
        """Take a case, with the record that it was read from."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write what is left to be written."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is held, finished or not."""
