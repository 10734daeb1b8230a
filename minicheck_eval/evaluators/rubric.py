"""How good an answer is, from 1 to 5, with a reason."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.prompts import RUBRIC, QuestionTemplate
from minicheck_eval.evaluators.rating import BEST, SCHEMA, WORST, Rating, read_rating
from minicheck_eval.evaluators.slots import prepare
from minicheck_eval.evaluators.streamed import StreamedEvaluator
from minicheck_eval.scoring import Failure, Prompt, Reply, ReplyingBackend, Segment

__all__ = ["RubricEvaluator"]


class RubricEvaluator(StreamedEvaluator):
    """Asks for a rating as JSON; an answer passes from `pass_score` on, and the score is the rating / 5.

    A reply that cannot be read is shown to the judge once with what is wrong with it; then the answer is `invalid`.
    """

    backend: ReplyingBackend
    name = "rubric"

    def __init__(
        self,
        backend: ReplyingBackend,
        *,
        pass_score: int = 4,
        template: QuestionTemplate = RUBRIC,
        most_tokens: int = 1024,
    ) -> None:
        if pass_score not in range(WORST, BEST + 1):
            raise BadInput(f"pass_score is {pass_score}", hint=f"choose from {WORST} to {BEST}")
        self.backend = backend
        self.pass_score = pass_score
        self.template = template.needs({"answer"})
        self.most_tokens = most_tokens

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, in order; in a batch no question is asked twice."""
        for requests in batches:
            known, asked = prepare(self.template, requests, self._settings)
            rated = iter(self._rate(asked))
            yield [next(rated) if response is None else response for response in known]

    @property
    def _settings(self) -> dict[str, Any]:
        return {"pass_score": self.pass_score}

    def _rate(self, prompts: Sequence[Prompt]) -> list[EvaluationResponse]:
        first = self._ask(prompts)
        problems = {prompt: problem for prompt, reply in first.items() if (problem := self._problem(reply))}
        again = {prompt: _repairing(prompt, first[prompt], problem) for prompt, problem in problems.items()}
        second = self._ask(list(again.values()))
        return [self._respond(first[p], second[again[p]] if p in again else None) for p in prompts]

    def _ask(self, prompts: Sequence[Prompt]) -> dict[Prompt, Reply | Failure]:
        unique = list(dict.fromkeys(prompts))
        if not unique:
            return {}
        replies = self.backend.reply(unique, schema=SCHEMA, most_tokens=self.most_tokens)
        return dict(zip(unique, replies, strict=True))

    def _problem(self, reply: Reply | Failure) -> str:
        """Say what is wrong with a reply; nothing where it can be read or where there is none."""
        if isinstance(reply, Failure):
            return ""
        rating = read_rating(reply.text)
        if isinstance(rating, Rating):
            return ""
        return rating if reply.complete else f"it was cut off at {self.most_tokens} tokens, so be brief ({rating})"

    def _respond(self, first: Reply | Failure, second: Reply | Failure | None) -> EvaluationResponse:
        last = second or first
        metadata = {**self._settings, **({} if second is None else _said(first, "first_reply")), **_said(last, "reply")}
        if isinstance(last, Failure):
            outcome = Outcome.INVALID if last.reason == "too_long" else Outcome.ERROR
            return self._unjudged(outcome, metadata, last.reason, last.message)
        rating = read_rating(last.text)
        if not isinstance(rating, Rating):
            return self._unjudged(Outcome.INVALID, metadata, "unreadable_reply", self._problem(last))
        outcome = Outcome.PASS if rating.score >= self.pass_score else Outcome.FAIL
        metadata |= {"rubric_score": rating.score, "reason": rating.reason}
        feedback = f"{self.name}: {outcome.value}ed, {rating.score} of {BEST}. {rating.reason}"
        return EvaluationResponse(outcome, rating.score / BEST, feedback, metadata)

    def _unjudged(self, outcome: Outcome, metadata: Mapping[str, Any], reason: str, detail: str) -> EvaluationResponse:
        feedback = f"{self.name}: could not judge ({reason}): {detail}"
        return EvaluationResponse(outcome, None, feedback, {**metadata, "reason": reason, "detail": detail})


def _repairing(prompt: Prompt, reply: Reply | Failure, problem: str) -> Prompt:
    said = reply.text if isinstance(reply, Reply) else ""
    suffix = (
        *prompt.suffix,
        Segment("\n\nYou have replied:\n", trusted=True),
        Segment(said, trusted=False),
        Segment("\n\nThat cannot be used: ", trusted=True),
        # It quotes the reply.
        Segment(problem, trusted=False),
        Segment('\n\nReply again, with {"reason": "…", "score": a number from 1 to 5} and nothing else.', trusted=True),
    )
    return replace(prompt, suffix=tuple(segment for segment in suffix if segment.text))


def _said(reply: Reply | Failure, key: str) -> dict[str, Any]:
    if isinstance(reply, Failure):
        return {}
    return {key: reply.text} | ({"neutralised": True} if reply.neutralised else {})
