"""Asks a judge the same cases again: identically, in other batches and orders, and beside unrelated text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Evaluator, Outcome
from minicheck_eval.errors import MinicheckError
from minicheck_eval.evaluators.feedback import failed
from minicheck_eval.harness.calibration_answers import Answer, answer_of, check_any_judged
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.progress import Progress, Step
from minicheck_eval.harness.statistics import Rate, rate

__all__ = ["UNRELATED", "Flip", "Round", "RoundFinding", "ask_rounds", "compare_rounds"]

Kind = Literal["first", "repeat", "batch", "order", "padding"]
OTHER_BATCHES = (1, 5)
PROBES_FROM = 1000
UNRELATED = (
    "Sea otters rest on their backs and hold on to strands of kelp while they sleep. Their fur is the densest of all "
    "mammals. They crack shells on a stone that they carry in a fold of skin under the arm. A raft of otters may hold "
    "a few animals or several hundred. Pups are born in the water, and their mothers groom them for hours."
)
"""About no case that anybody is likely to have."""


class Plan(NamedTuple):
    """How one round asks."""

    kind: Kind
    name: str
    batch_cases: int
    repetition: int = 0
    """Keeps its answers on a tape apart from those of the other rounds, however many there are of them."""
    shuffled: bool = False
    pad: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """All cases asked once: the answers are in the order of the cases, however they were asked."""

    kind: Kind
    name: str
    answers: tuple[Answer, ...]


class Flip(NamedTuple):
    """A case whose verdict was another the second time."""

    id: str
    before: Outcome
    after: Outcome
    support_before: float | None
    support_after: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the flip as JSON-ready values."""
        return {**self._asdict(), "before": self.before.value, "after": self.after.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFinding:
    """How a round differs from the first."""

    kind: Kind
    name: str
    errors: int
    """Cases without an answer in this round."""
    unclear: int
    """Claims to which the judge said neither yes nor no in this round."""
    flipped: Rate | None
    """Of the cases with an answer in both rounds: what no judge answered says nothing about how steady it is."""
    flips: tuple[Flip, ...]
    mean_change: float | None
    """Of the support; above zero where it rose."""
    largest_change: float | None
    """In either direction."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON-ready values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "errors": self.errors,
            "unclear": self.unclear,
            "flipped": self.flipped and self.flipped.to_json(),
            "flips": [flip.to_json() for flip in self.flips],
            "mean_change": self.mean_change,
            "largest_change": self.largest_change,
        }


def ask_rounds(
    cases: Sequence[Case],
    evaluator: Evaluator,
    *,
    repeats: int,
    probes: bool,
    batch_cases: int,
    seed: int,
    progress: Progress,
) -> Iterator[Round]:
    """Ask round after round; the first is what all others are held against, and without a verdict the last.

    Raises `CouldNotJudge` where the first gives none.
    """
    plans = _plans(repeats, batch_cases, probes=probes)
    total, claims = len(plans) * len(cases), 0
    progress(Step(0, total))
    for place, plan in enumerate(plans):
        if (repetition := getattr(evaluator, "repetition", None)) is not None:
            repetition(plan.repetition)
        order = list(range(len(cases)))
        if plan.shuffled:
            random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
        answers: dict[int, Answer] = {}
        for start in range(0, len(order), plan.batch_cases):
            batch = order[start : start + plan.batch_cases]
            requests = [_padded(cases[i].to_request(), plan.pad) for i in batch]
            for i, response in zip(batch, _ask(evaluator, requests), strict=True):
                answers[i] = answer_of(cases[i].to_json(), response.to_json())
                claims += answers[i].claims
            progress(Step(place * len(cases) + len(answers), total, claims))
        found = Round(kind=plan.kind, name=plan.name, answers=tuple(answers[i] for i in range(len(cases))))
        if plan.kind == "first":
            check_any_judged(found.answers)
        yield found


def compare_rounds(first: Round, other: Round) -> RoundFinding:
    """Tell what changed; cases with nothing to check in both rounds, or without an answer in one, do not count."""
    pairs = [
        (before, after)
        for before, after in zip(first.answers, other.answers, strict=True)
        if {before.outcome, after.outcome} != {Outcome.NOT_CHECKABLE}
        and Outcome.ERROR not in (before.outcome, after.outcome)
    ]
    flips = tuple(
        Flip(before.id, before.outcome, after.outcome, before.support, after.support)
        for before, after in pairs
        if before.outcome is not after.outcome
    )
    changes = [b.support - a.support for a, b in pairs if a.support is not None and b.support is not None]
    return RoundFinding(
        kind=other.kind,
        name=other.name,
        errors=sum(answer.outcome is Outcome.ERROR for answer in other.answers),
        unclear=sum(len(answer.unclear) for answer in other.answers),
        flipped=rate(len(flips), len(pairs)),
        flips=flips,
        mean_change=sum(changes) / len(changes) if changes else None,
        largest_change=max(map(abs, changes), default=None),
    )


def _plans(repeats: int, batch_cases: int, *, probes: bool) -> list[Plan]:
    plans = [Plan("first", "first", batch_cases)]
    plans += [Plan("repeat", f"the same again, {n} of {repeats}", batch_cases, n - 1) for n in range(2, repeats + 1)]
    if probes:
        plans += [Plan("batch", f"batches of {n}", n, PROBES_FROM + n) for n in OTHER_BATCHES if n != batch_cases]
        plans += [
            Plan("order", "another order", batch_cases, PROBES_FROM, shuffled=True),
            Plan("padding", "unrelated text before", batch_cases, pad=lambda text: f"{UNRELATED}\n\n{text}"),
            Plan("padding", "unrelated text after", batch_cases, pad=lambda text: f"{text}\n\n{UNRELATED}"),
        ]
    return plans


def _padded(request: EvaluationRequest, pad: Callable[[str], str] | None) -> EvaluationRequest:
    if pad is None:
        return request
    documents = [replace(d, text=pad(d.text)) if d.text else d for d in request.documents]
    return EvaluationRequest(request.user_text, documents, request.response)


def _ask(evaluator: Evaluator, requests: Sequence[EvaluationRequest]) -> Iterable[EvaluationResponse]:
    """Ask a batch; where it fails as a whole each request is asked alone, so that a bad one fails alone."""
    try:
        return evaluator.evaluate_batch(requests)
    except Exception as error:  # the judge is a plug: whatever it raises must not lose the other cases
        if isinstance(error, MinicheckError) and not error.retryable:
            raise
        if len(requests) > 1:
            return [response for request in requests for response in _ask(evaluator, [request])]
        return [failed(error)]
