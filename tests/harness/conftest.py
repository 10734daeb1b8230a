"""What the tests of the harness share: a judge without a model, its identity, and one way to run it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.run import Run, run_cases
from minicheck_eval.identity import JudgeIdentity


class FakeJudge:
    """Passes every answer that a document contains, and remembers what it was asked."""

    def __init__(self, answer: Callable[[EvaluationRequest], EvaluationResponse] | None = None) -> None:
        self.answer = answer or self._contained
        self.batches: list[list[str]] = []

    @staticmethod
    def _contained(request: EvaluationRequest) -> EvaluationResponse:
        found = any(request.response in (document.text or "") for document in request.documents)
        outcome, score = (Outcome.PASS, 0.9) if found else (Outcome.FAIL, 0.1)
        return EvaluationResponse(outcome, score, f"said {outcome.value}", {})

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        return self.evaluate_batch([request])[0]

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        self.batches.append([request.user_text for request in requests])
        return [self.answer(request) for request in requests]

    @property
    def asked(self) -> list[str]:
        return [question for batch in self.batches for question in batch]


@pytest.fixture
def fake_judge():
    """The class of the judge without a model."""
    return FakeJudge


@pytest.fixture
def make_identity() -> Callable[..., JudgeIdentity]:
    """Build the identity of a judge without a model."""

    def make(**changes: Any) -> JudgeIdentity:
        values: dict[str, Any] = {
            "judge": "fake",
            "model": "none",
            "revision": "1",
            "digests": {"weights": "a" * 64},
            "backend": "fake",
            "dtype": "none",
            "prompt_digest": "b" * 64,
            "labels_digest": "c" * 64,
            "window_tokens": 1000,
            "least_mass": 0.5,
            "package": "1",
            "chunk_tokens": 100,
            "threshold": 0.5,
            "chunk_aggregation": "max",
            "claim_aggregation": "min",
            "splitter": "none",
        }
        return JudgeIdentity(**{**values, **changes})

    return make


@pytest.fixture
def make_case() -> Callable[..., Case]:
    """Build a case whose question is its id, so that a judge's memory names cases."""

    def make(name: str, **values: Any) -> Case:
        documents = values.pop("documents", (Document(f"The sky over {name} is blue.", "d1"),))
        answer = values.pop("answer", f"The sky over {name} is blue.")
        return Case(id=name, question=name, documents=documents, answer=answer, **values)

    return make


@pytest.fixture
def judge_cases(tmp_path: Path, make_identity: Callable[..., JudgeIdentity]) -> Callable[..., Run]:
    """Run cases into one folder with a fake judge."""

    def judge(cases: Sequence[Case], evaluator: Any = None, *, identity: Any = None, **values: Any) -> Run:
        settings: dict[str, Any] = {
            "evaluators": {"fact-checking": evaluator or FakeJudge()},
            "identities": {"fact-checking": identity or make_identity()},
            "out": tmp_path / "run",
            "arguments": {"judge": "fake"},
            "meta": {},
            "cases_path": tmp_path / "cases.jsonl",
            "cases_digest": "c" * 64,
        }
        return run_cases(cases, **{**settings, **values})

    return judge
