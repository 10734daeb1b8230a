"""A run for the tests to kill: 500 cases, a judge that takes a millisecond a case and notes what it was asked."""

import os
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.harness.cases import load
from minicheck_eval.harness.run import run_cases
from minicheck_eval.identity import JudgeIdentity


class SlowJudge:
    """Decides by a digest of the request."""

    def __init__(self, asked: Path) -> None:
        self.asked = os.open(asked, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        return self.evaluate_batch([request])[0]

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        return [self._one(request) for request in requests]

    def _one(self, request: EvaluationRequest) -> EvaluationResponse:
        os.write(self.asked, f"{request.user_text}\n".encode())
        time.sleep(0.001)
        value = sha256(repr(request).encode()).digest()[0] / 255
        outcome = Outcome.PASS if value > 0.2 else Outcome.FAIL
        return EvaluationResponse(outcome, value, f"support {value}", {"claims": []})


def main(cases: Path, out: Path, asked: Path) -> None:
    identity = JudgeIdentity(
        judge="slow",
        model="none",
        revision="1",
        backend="fake",
        dtype="none",
        prompt_digest="0" * 64,
        labels_digest="1" * 64,
        window_tokens=1,
        least_mass=0.5,
        package="1",
        chunk_tokens=1,
        threshold=0.2,
        chunk_aggregation="max",
        claim_aggregation="min",
        splitter="none",
    )
    loaded = load(cases)
    run_cases(
        loaded.cases,
        evaluators={"fact-checking": SlowJudge(asked)},
        identities={"fact-checking": identity},
        out=out,
        arguments={"judge": "slow"},
        meta={},
        cases_path=cases,
        cases_digest=loaded.digest,
        batch_cases=7,
    )


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
