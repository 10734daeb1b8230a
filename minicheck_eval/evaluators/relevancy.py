"""The two questions that go by the name of relevancy: is it in line with the context, and does it answer."""

from __future__ import annotations

from minicheck_eval.evaluators.prompts import ANSWERS_QUESTION, RELEVANCY, QuestionTemplate
from minicheck_eval.evaluators.yes_no import YesNoEvaluator
from minicheck_eval.scoring import Backend

__all__ = ["AnswersQuestionEvaluator", "RelevancyEvaluator"]


class RelevancyEvaluator(YesNoEvaluator):
    """Judges whether the answer is in line with the context, as Spring AI's evaluator of that name does.

    Whether it answers the question is something else: see `AnswersQuestionEvaluator`.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        template: QuestionTemplate = RELEVANCY,
        threshold: float = 0.5,
        least_mass: float = 0.5,
    ) -> None:
        template = template.needs({"context", "answer"})
        super().__init__(backend, name="relevancy", template=template, threshold=threshold, least_mass=least_mass)


class AnswersQuestionEvaluator(YesNoEvaluator):
    """Judges whether the answer gives what the question asks for; documents play no part in it."""

    def __init__(
        self,
        backend: Backend,
        *,
        template: QuestionTemplate = ANSWERS_QUESTION,
        threshold: float = 0.5,
        least_mass: float = 0.5,
    ) -> None:
        template = template.needs({"question", "answer"})
        super().__init__(
            backend, name="answers-question", template=template, threshold=threshold, least_mass=least_mass
        )
