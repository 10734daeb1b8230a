"""One question about an answer that a judge replies to with yes or no: any criterion, over any backend."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Literal

from minicheck_eval.contract import EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import ClaimVerdict, DecisionConfig, decide_claim
from minicheck_eval.evaluators.feedback import explain, short
from minicheck_eval.evaluators.once import score_once
from minicheck_eval.evaluators.prompts import CRITERION, QuestionTemplate
from minicheck_eval.evaluators.slots import prepare
from minicheck_eval.evaluators.streamed import StreamedEvaluator
from minicheck_eval.scoring import Backend, Failure, Score, beside

__all__ = ["CriterionEvaluator", "YesNoEvaluator"]


class YesNoEvaluator(StreamedEvaluator):
    """Asks the question of a template; an answer passes where P(`pass_on`) is above the threshold.

    The score is that probability.  A judge that says neither gives no verdict (`invalid`), and neither does a slot of
    the template for which a request has nothing (`not_checkable`).
    """

    def __init__(
        self,
        backend: Backend,
        *,
        name: str,
        template: QuestionTemplate,
        criterion: str = "",
        pass_on: Literal["yes", "no"] = "yes",
        threshold: float = 0.5,
        least_mass: float = 0.5,
    ) -> None:
        if pass_on not in ("yes", "no"):
            raise BadInput(f"pass_on is {pass_on!r}", hint='choose "yes" or "no": the reply that lets an answer pass')
        if not (0 <= threshold <= 1 and 0 <= least_mass <= 1):
            raise BadInput(f"threshold and least_mass are {threshold} and {least_mass}", hint="choose from 0 to 1")
        self.backend = backend
        self.name = name
        self.template = template
        self.criterion = criterion
        self.pass_on = pass_on
        self.decision = DecisionConfig(threshold=threshold, least_mass=least_mass)

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, the next ones prepared while the judge works; no question is asked twice."""
        prepared = (prepare(self.template, requests, self._settings, self.criterion) for requests in batches)
        with closing(beside(partial(score_once, self.backend), prepared)) as answered:
            for known, scores in answered:
                left = iter(scores)
                yield [self._respond(next(left)) if response is None else response for response in known]

    @property
    def _settings(self) -> dict[str, Any]:
        return {"threshold": self.decision.threshold, "pass_on": self.pass_on, **self.decision.marks}

    def _respond(self, score: Score | Failure) -> EvaluationResponse:
        metadata = self._settings
        asked = score
        if isinstance(score, Score):
            metadata |= {"support": score.support, "refute": score.refute}
            metadata |= {"reply": score.reply} if score.reply else {"top": score.top}
            metadata |= {"neutralised": True} if score.neutralised else {}
            if self.pass_on == "no":
                asked = Score(score.refute, score.support, score.top, score.reply)
        verdict = decide_claim([asked], self.decision)
        if verdict.reason:
            metadata |= {"reason": verdict.reason, "detail": explain([score], verdict.reason)}
        # A judge that said neither leaves no number behind that could be taken for one.
        return EvaluationResponse(verdict.outcome, verdict.support, self._feedback(verdict, metadata), metadata)

    def _feedback(self, verdict: ClaimVerdict, metadata: dict[str, Any]) -> str:
        if verdict.support is None:
            return f"{self.name}: could not judge ({verdict.reason}): {metadata['detail']}"
        word = "passed" if verdict.outcome is Outcome.PASS else "failed"
        said = f" The judge said: {short(metadata['reply'])}" if "reply" in metadata else ""
        return f"{self.name}: {word}, P({self.pass_on}) = {verdict.support:.3f}.{said}"


class CriterionEvaluator(YesNoEvaluator):
    """Judges an answer by any question that has yes or no for an answer.

    For what no library ships, such as toxicity:

        toxicity = CriterionEvaluator(
            backend,
            name="toxicity",
            question="Does the text insult, threaten or demean a person or a group of people?",
            pass_on="no",
        )
        toxicity.evaluate(EvaluationRequest(response="You would have to be an idiot to ask that.")).outcome  # fail

    Only the answer is shown, so neither a question nor evidence is needed; a `template` of your own may have the slots
    `{question}` and `{context}` beside `{criterion}` and `{answer}`, and then they are.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        name: str,
        question: str,
        pass_on: Literal["yes", "no"] = "yes",
        template: QuestionTemplate | None = None,
        threshold: float = 0.5,
        least_mass: float = 0.5,
    ) -> None:
        if not name.strip() or not question.strip():
            raise BadInput("a criterion has no name or no question", hint="give both: the question is what is asked")
        super().__init__(
            backend,
            name=name,
            template=(template or CRITERION).needs({"criterion", "answer"}),
            criterion=question,
            pass_on=pass_on,
            threshold=threshold,
            least_mass=least_mass,
        )
