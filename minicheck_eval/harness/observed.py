"""A case as it is judged: with what an application answered, or with what went wrong there."""

from __future__ import annotations

from typing import NamedTuple

from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.deterministic import without_judge

__all__ = ["Observed", "unasked"]


class Observed(NamedTuple):
    """A case with its answer and evidence; of a file, or of an application."""

    case: Case
    failure: str = ""
    """Why the application gave no answer."""

    @property
    def error(self) -> EvaluationResponse | None:
        """Return the verdict on a case that the application did not answer; None where it did."""
        if not self.failure:
            return None
        metadata = {"reason": "application", "message": self.failure, "claims": [], "chunks": []}
        return EvaluationResponse(Outcome.ERROR, None, f"The application failed: {self.failure}", metadata)


def unasked(observed: Observed, *, needs_evidence: bool) -> EvaluationResponse | None:
    """Decide a case that no judge should be asked about; None where one should."""
    return observed.error or without_judge(observed.case, needs_evidence=needs_evidence)
