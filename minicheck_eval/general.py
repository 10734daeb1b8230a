"""Opens general judges: chat models, on a server or on this machine, that can be asked any question about an answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, Self

from minicheck_eval.backends.placement import Placement
from minicheck_eval.backends.probes import probes
from minicheck_eval.backends.servers.facts import ServerFacts
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.backends.words import WordsBackend
from minicheck_eval.calibration import Calibration
from minicheck_eval.contract import Evaluator
from minicheck_eval.errors import BackendError, BadInput
from minicheck_eval.evaluators.decision import DecisionConfig, check_rule
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.evaluators.names import EVALUATORS, READINGS
from minicheck_eval.evaluators.prompts import (
    ANSWERS_QUESTION,
    FACT_CHECKING,
    MINICHECK,
    RELEVANCY,
    RUBRIC,
    QuestionTemplate,
)
from minicheck_eval.evaluators.relevancy import AnswersQuestionEvaluator, RelevancyEvaluator
from minicheck_eval.evaluators.rubric import RubricEvaluator
from minicheck_eval.evaluators.yes_no import YesNoEvaluator
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.scoring import Backend, Failure, PromptTemplate, ReplyingBackend, Score, close_backend
from minicheck_eval.store.weights import chat_digests
from minicheck_eval.tape.opening import record_over, replay
from minicheck_eval.tape.options import TapeOptions
from minicheck_eval.text import SPLITTER
from minicheck_eval.text.replies import ReplyRule

__all__ = ["GeneralSettings", "Models", "Opened", "Task", "open_general"]

CLAIM_ROOM_TOKENS = 300
"""What the chunks of a document leave in the window for the claim, as MiniCheck does."""
SHOWN = 200


class Opened(NamedTuple):
    """What a judge is made of."""

    identity: JudgeIdentity
    evaluator: Evaluator
    backend: Backend
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a general judge is asked about an answer, and how its own answer is read."""

    evaluator: str = "fact-checking"
    threshold: float = 0.5
    least_mass: float = 0.5
    chunk_tokens: int | None = None
    """None: as much of the judge's window as leaves room for a claim."""
    claim_aggregation: str = "min"
    split_claims: bool = True
    reading: str = "auto"
    """First token where the judge has probabilities and uses them for a yes or a no; words otherwise."""
    rule: ReplyRule = field(default_factory=ReplyRule)
    pass_score: int = 4
    calibration: Calibration | None = None

    @classmethod
    def read(cls, **given: object) -> Self:
        """Check what a caller gave; what is None is as usual."""
        task = cls(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        if task.calibration is not None and given.get("threshold") is None:
            task = replace(task, threshold=task.calibration.threshold_for(task.threshold))
        if task.evaluator not in EVALUATORS:
            raise BadInput(f"evaluator {task.evaluator!r} is not known", hint=f"choose one of {', '.join(EVALUATORS)}")
        if task.reading not in READINGS:
            raise BadInput(f"reading {task.reading!r} is not known", hint=f"choose one of {', '.join(READINGS)}")
        check_rule(threshold=task.threshold, claim_aggregation=task.claim_aggregation)
        if task.chunk_tokens is not None and task.chunk_tokens < 1:
            raise BadInput(f"chunk_tokens is {task.chunk_tokens}", hint="give a number above 0")
        if task.evaluator == "rubric" and task.reading != "auto":
            raise BadInput("a rubric is read as JSON, not as yes or no", hint="leave the reading away")
        if given.get("pass_score") is not None and task.evaluator != "rubric":
            raise BadInput(f"pass_score is given for {task.evaluator}", hint="only a rubric has scores to pass")
        if not 1 <= task.pass_score <= 5:  # noqa: PLR2004 - the scale of the rubric
            raise BadInput(f"pass score {task.pass_score} is not in 1 to 5", hint="the rubric's scale has five steps")
        if task.calibration is not None and task.evaluator == "rubric":
            raise BadInput("a calibration is of supports, and a rubric gives none", hint="choose another evaluator")
        return task

    def template(self, model: str) -> PromptTemplate | QuestionTemplate:
        """Return what a model is asked: one of the MiniCheck family in the words that it was trained on."""
        if self.evaluator == "fact-checking":
            return MINICHECK if "minicheck" in model.lower() else FACT_CHECKING
        return {"relevancy": RELEVANCY, "answers-question": ANSWERS_QUESTION, "rubric": RUBRIC}[self.evaluator]


@dataclass(frozen=True, slots=True)
class GeneralSettings:
    """A general judge that was asked for, and not opened yet."""

    name: str
    place: Address | Path
    task: Task
    placement: Placement

    @property
    def identity(self) -> JudgeIdentity:
        """Tell who the judge will be; what only an open judge knows is empty or None."""
        task = self.task
        reading = "" if task.reading == "auto" else task.reading
        if task.evaluator == "rubric":
            reading = f"a score from 1 to 5, {task.pass_score} passes"
        splitter = SPLITTER if task.split_claims else f"{SPLITTER} (whole answers)"
        return JudgeIdentity(
            judge=self.name,
            model=self.model,
            revision="",
            digests=chat_digests(self.place) if isinstance(self.place, Path) else {},
            backend="",
            dtype="",
            quantization=self.placement.quantization,
            prompt_digest=task.template(self.model).digest,
            labels_digest=task.rule.digest,
            window_tokens=None,
            chunk_tokens=task.chunk_tokens,
            threshold=task.threshold,
            least_mass=task.least_mass,
            chunk_aggregation="max",
            claim_aggregation=task.claim_aggregation,
            splitter=splitter if task.evaluator == "fact-checking" else "none",
            package=version("minicheck-eval"),
            evaluator=task.evaluator,
            reading=reading,
            calibration="" if task.calibration is None else task.calibration.digest,
        )

    @property
    def calibration(self) -> Calibration | None:
        """Return what decides in place of the usual threshold."""
        return self.task.calibration

    @property
    def model(self) -> str:
        """Name the model as its server does, or the folder that it lies in."""
        return self.place.model if isinstance(self.place, Address) else self.place.resolve().name


Models = dict[str, tuple[ReplyingBackend, ServerFacts]]
"""Name of a judge → its model, which evaluators of one judge share."""


def open_general(
    settings: GeneralSettings, server: ServerOptions, tape: TapeOptions | None = None, models: Models | None = None
) -> Opened:
    """Connect to the model, or load it, and join it with what it is asked; or play its tape, without the model.

    A model that `models` holds is taken from there, and one that it does not is put there.

    Raises `ModelUnavailable` without the model, and `BackendError` where it answers neither yes nor no.
    """
    if tape is not None and tape.replays_only:
        replayed = replay(tape, settings.identity, dtype=settings.placement.dtype)
        return _joined(settings, *replayed)
    models = {} if models is None else models
    if settings.name not in models:
        models[settings.name] = _backend(settings, server)
    backend, facts = models[settings.name]
    try:
        reader, reading = _reader(settings, backend, facts)
        identity = _identity(settings, facts, reader, reading)
        return _joined(settings, identity, record_over(reader, tape, identity), facts.notes)
    except BaseException:
        close_backend(backend)
        raise


def _identity(settings: GeneralSettings, facts: ServerFacts, reader: Backend, reading: str) -> JudgeIdentity:
    known = settings.identity
    return replace(
        known,
        revision=facts.revision,
        digests={**known.digests, **facts.digests},
        backend=facts.server,
        dtype=reader.dtype,
        quantization=facts.quantization or known.quantization,
        window_tokens=facts.window_tokens,
        reading=reading or known.reading,
    )


def _joined(
    settings: GeneralSettings, identity: JudgeIdentity, backend: Backend, notes: tuple[str, ...] = ()
) -> Opened:
    evaluator = _evaluator(settings, backend)
    calibration = settings.calibration
    if calibration is not None and isinstance(evaluator, FactCheckingEvaluator | YesNoEvaluator):
        evaluator.decision = replace(evaluator.decision, support_map=calibration.map)
    chunk_tokens = evaluator.chunk_tokens if isinstance(evaluator, FactCheckingEvaluator) else None
    return Opened(replace(identity, chunk_tokens=chunk_tokens), evaluator, backend, notes)


def _backend(settings: GeneralSettings, server: ServerOptions) -> tuple[ReplyingBackend, ServerFacts]:
    place, rule = settings.place, settings.task.rule
    if isinstance(place, Path):
        from minicheck_eval.loading import load_chat

        local = load_chat(place, settings.placement, window_tokens=server.window_tokens, rule=rule)
        frame = {"chat frame": local.frame.digest}
        facts = ServerFacts(model=settings.model, digests=frame, server=local.name, window_tokens=local.window_tokens)
        return local, facts
    if place.kind == "ollama":
        from minicheck_eval.backends.servers.ollama_backend import open_ollama

        ollama = open_ollama(place, server, rule)
        return ollama, ollama.facts
    from minicheck_eval.backends.servers.openai_backend import open_openai

    openai = open_openai(place, server, rule)
    return openai, openai.facts


def _reader(settings: GeneralSettings, backend: ReplyingBackend, facts: ServerFacts) -> tuple[Backend, str]:
    """Return the backend that reads the judge's answers, and how it does: what was asked for, or what works."""
    name, task = settings.name, settings.task
    if task.evaluator == "rubric":
        return backend, ""
    template = task.template(settings.model)
    questions = probes(template if isinstance(template, PromptTemplate) else FACT_CHECKING)[:2]
    if task.reading in ("auto", "first-token"):
        # A failure here may be a server that has no probabilities after all; if it is worse, words show it.
        found = backend.score(questions) if facts.logprobs else []
        clear = bool(found) and all(isinstance(one, Score) and one.mass >= task.least_mass for one in found)
        if clear or task.reading == "first-token":
            if not facts.logprobs:
                raise BadInput(f"{name} gives no log-probabilities", hint="choose another reading: words")
            return backend, "first-token"
    strict = task.reading == "strict"
    worded = WordsBackend(backend, replace(task.rule, strict=strict))
    unclear = None if strict else _unclear(worded.score(questions), task.least_mass, name)
    if unclear is not None:
        raise BackendError(
            f"{name} was asked for a yes or a no, and said {unclear[:SHOWN]!r}",
            hint="a judge must follow its instruction: choose a model that does, or name its words for yes and no",
        )
    return worded, "strict" if strict else "words"


def _unclear(found: list[Score | Failure], least_mass: float, name: str) -> str | None:
    """Return what a judge said in place of a yes or a no; None where it said one of them each time."""
    for answer in found:
        if isinstance(answer, Failure):
            raise BackendError(f"{name} cannot be asked: {answer.message}", hint="see that its server is well")
        if answer.mass < least_mass:
            return answer.reply or answer.top
    return None


def _evaluator(settings: GeneralSettings, backend: Backend) -> Evaluator:
    task, template = settings.task, settings.task.template(settings.model)
    threshold, least_mass = task.threshold, task.least_mass
    if isinstance(template, PromptTemplate):
        frame = sum(backend.count_tokens(template.own_text))
        room = backend.window_tokens - frame
        return FactCheckingEvaluator(
            backend,
            template=template,
            chunk_tokens=task.chunk_tokens or max(1, room // 2, room - CLAIM_ROOM_TOKENS),
            decision=DecisionConfig(
                threshold=threshold, least_mass=least_mass, claim_aggregation=task.claim_aggregation
            ),
            split_claims=task.split_claims,
            rechunk=not getattr(backend, "counts_exactly", True),
        )
    if task.evaluator == "rubric":
        assert isinstance(backend, ReplyingBackend), "every general judge can answer in words"  # noqa: S101
        return RubricEvaluator(backend, pass_score=task.pass_score)
    kind = {"relevancy": RelevancyEvaluator, "answers-question": AnswersQuestionEvaluator}[task.evaluator]
    return kind(backend, threshold=threshold, least_mass=least_mass)
