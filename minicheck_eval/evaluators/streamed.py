"""What evaluators that stream have in common: one request is a batch of one, and a batch a stream of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse
from minicheck_eval.scoring import Usage

__all__ = ["StreamedEvaluator", "usage_of"]


def usage_of(thing: object) -> Usage | None:
    """Return the usage that a backend or an evaluator tells; None where it does not."""
    usage = getattr(thing, "usage", None)
    return usage if isinstance(usage, Usage) else None


class StreamedEvaluator(ABC):
    """Gives `evaluate` and `evaluate_batch` to an evaluator that has a stream."""

    @abstractmethod
    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, in order."""

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        """Evaluate many requests at once; the responses come back in input order."""
        with closing(self.evaluate_stream([requests])) as answered:
            return next(answered)

    @property
    def usage(self) -> Usage | None:
        """Tell what the backend has been asked and has computed, by whomever; None where it does not say."""
        return usage_of(getattr(self, "backend", None))

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """Evaluate one request: a batch of one."""
        return self.evaluate_batch([request])[0]
