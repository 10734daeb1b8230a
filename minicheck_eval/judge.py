"""The one door: `open_judge` joins a model, what runs it and what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from minicheck_eval.backends.placement import Placement
from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.calibration import Calibration
from minicheck_eval.choosing import Fallback, Wanted, check_url, choose, choose_fallback, fallback_json, for_second
from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Evaluator, Outcome, evaluate_stream
from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.evaluators.fallback import FallbackEvaluator
from minicheck_eval.evaluators.names import WITHOUT_EVIDENCE
from minicheck_eval.family import open_family
from minicheck_eval.general import GeneralSettings, Models, open_general
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.parity import Parity
from minicheck_eval.scoring import Backend, StreamingBackend, Usage, close_backend
from minicheck_eval.settings import Settings
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.options import TapeOptions
from minicheck_eval.text.replies import ReplyRule

__all__ = ["Fallback", "Judge", "Scores", "identity_without_weights", "open_judge", "open_judges"]


class Scores(NamedTuple):
    """What the MiniCheck package's `score` returns, one entry for each pair.

    A pair that could not be judged has the label and the probability None: a zero would be a verdict.
    """

    pred_label: list[int | None]
    max_support_prob: list[float | None]
    used_chunk: list[list[str]]
    support_prob_per_chunk: list[list[float | None]] | list[list[list[float | None]]]
    """One number for each chunk; with the package's parity, which splits claims, a row of one for each sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A model with its prompt, threshold and aggregation: what gives support."""

    identity: JudgeIdentity
    evaluator: Evaluator
    backends: Mapping[str, Backend]
    """Name of a judge → what runs its model; of two where one falls back on the other."""
    notes: tuple[str, ...] = ()
    """What a reader of the verdicts should know of the servers."""

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """Check one answer against its documents."""
        return self.evaluator.evaluate(request)

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        """Check many answers; the responses come back in input order."""
        return self.evaluator.evaluate_batch(requests)

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Check batch after batch, the next ones prepared while the judge works."""
        return evaluate_stream(self.evaluator, batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections to servers."""
        for backend in self.backends.values():
            close_backend(backend)

    def confirm(self) -> None:
        """Raise `IntegrityError` where a server no longer has the model that was opened."""
        for backend in self.backends.values():
            if (confirm := getattr(backend, "confirm", None)) is not None:
                confirm()

    def repetition(self, number: int) -> None:
        """Let whatever records answers keep those from now on apart from other repetitions of the same questions."""
        for backend in self.backends.values():
            if hasattr(backend, "repeat"):
                backend.repeat = number

    @property
    def tapes(self) -> dict[str, dict[str, Any]]:
        """Tell for each judge that is on a tape, by name, what the tape holds, and what was not on it."""
        return {name: b.to_json() for name, b in self.backends.items() if isinstance(b, TapeBackend)}

    @property
    def backend(self) -> Backend:
        """Return what runs the model, for evaluators of one's own."""
        return self.backends[self.identity.judge]

    @property
    def needs_evidence(self) -> bool:
        """Tell whether an answer without evidence can be judged at all."""
        return self.identity.evaluator not in WITHOUT_EVIDENCE

    @property
    def usages(self) -> dict[str, Usage]:
        """Tell for each judge, by name, what it was asked and what that cost, where its backend says."""
        return {name: b.usage for name, b in self.backends.items() if isinstance(b, StreamingBackend)}

    def score(self, docs: Sequence[str], claims: Sequence[str], chunk_size: int | None = None) -> Scores:
        """Score pairs as the MiniCheck package's `MiniCheck.score(docs=…, claims=…)` does.

        Each claim is judged whole, not sentence by sentence, unless the judge has the parity "reference"; `chunk_size`
        is in tokens, or in the unit of that parity.
        """
        if isinstance(docs, str) or isinstance(claims, str):
            raise BadInput("docs or claims is one string", hint="give lists: score(docs=[text], claims=[claim])")
        if len(docs) != len(claims):
            raise BadInput(
                f"{counted(len(docs), 'document')} for {counted(len(claims), 'claim')}",
                hint="give one document for each claim",
            )
        if not isinstance(self.evaluator, FactCheckingEvaluator):
            raise BadInput(
                f"{self.identity.judge} is more than a fact checker", hint="open it without evaluator and fallback"
            )
        parity = self.identity.parity
        split = parity.reference_texts and not parity.whole_claims
        evaluator = FactCheckingEvaluator(
            self.evaluator.backend,
            template=self.evaluator.template,
            chunk_tokens=self.evaluator.chunk_tokens if chunk_size is None else chunk_size,
            decision=self.evaluator.decision,
            split_claims=split,
            rules=self.evaluator.rules,
            rechunk=self.evaluator.rechunk,
        )
        requests = [
            EvaluationRequest("", [Document(document)], claim) for document, claim in zip(docs, claims, strict=True)
        ]
        responses = evaluator.evaluate_batch(requests)
        found = [_row(document, r, split=split) for document, r in zip(docs, responses, strict=True)]
        return Scores(*(list(column) for column in zip(*found, strict=True))) if found else Scores([], [], [], [])


def _row(
    document: str, response: EvaluationResponse, *, split: bool
) -> tuple[int | None, float | None, list[str], list[Any]]:
    label = int(response.outcome is Outcome.PASS) if response.outcome.judged else None
    chunks = [chunk.get("text", document[chunk["start"] : chunk["end"]]) for chunk in response.metadata["chunks"]]
    supports = [claim["supports"] for claim in response.metadata["claims"]]
    by_chunk = [list(row) for row in zip(*supports, strict=True)] if split else [one for row in supports for one in row]
    return label, response.score, chunks, by_chunk


def open_judge(
    name: str,
    *,
    evaluator: str = "fact-checking",
    threshold: float | None = None,
    chunk_tokens: int | None = None,
    claim_aggregation: str | None = None,
    split_claims: bool = True,
    dtype: str = "auto",
    device: str = "auto",
    max_memory: str | None = None,
    quantize: str | None = None,
    parity: str | Parity | None = None,
    recheck: bool = False,
    reading: str = "auto",
    rule: ReplyRule | None = None,
    pass_score: int | None = None,
    calibration: str | Path | Calibration | None = None,
    server: ServerOptions | None = None,
    fallback: Fallback | None = None,
    tape: TapeOptions | None = None,
    models: Models | None = None,
) -> Judge:
    """Open the judge `name`: one with a manifest, a folder with a model, `ollama:MODEL` or `openai:URL#MODEL`.

    What is not given comes from the manifest; weights are fetched on first use.  `dtype` is "float32", "bfloat16",
    "float16" or "auto"; `device` is "cpu", "cuda:1" or "auto"; `max_memory` bounds weights ("0=20GiB,cpu=30GiB");
    `quantize` is "8bit" or "4bit".  `parity` gives habits of the MiniCheck package: those of now ("reference"), or
    behind its published numbers ("published").  `recheck` computes scores near the threshold again, in float32.

    A chat model can also be asked for "relevancy", "answers-question" or "rubric" (passes from `pass_score` of 5) as
    `evaluator`.  Its yes or no is read as `reading` says: "first-token", "words" (by `rule`), "strict" (as Spring AI
    compares), or "auto".  `server` says how a server is asked, `fallback` is asked where this judge is not enough, and
    `tape` replays what was recorded.  `calibration` is a file that `minicheck-eval calibrate` saved for this judge.
    Judges opened with the same `models`, first an empty dict, share what is loaded.
    Raises `ManifestError` for an unknown name, `ModelUnavailable` without the model, and `IntegrityError` where it is
    not the one it should be.
    """
    wanted = Wanted(
        evaluator, threshold, chunk_tokens, claim_aggregation, split_claims, parity, recheck, reading, rule, pass_score,
        Calibration.load(calibration),
    )  # fmt: skip
    settings = choose(
        name, wanted, Placement.read(dtype=dtype, device=device, max_memory=max_memory, quantize=quantize)
    )
    return _open_both(settings, wanted, server or ServerOptions(), fallback, partial(_open, tape=tape, models=models))


@contextmanager
def open_judges(name: str, evaluators: Iterable[str], **options: Any) -> Iterator[dict[str, Judge]]:
    """Open one judge for several evaluators, by their names: its model is loaded, or its server connected to, once.

    Takes what `open_judge` takes, and closes all of them at the end.
    """
    models: Models = {}
    with ExitStack() as opened:
        yield {
            evaluator: opened.enter_context(open_judge(name, evaluator=evaluator, models=models, **options))
            for evaluator in evaluators
        }


def identity_without_weights(
    name: str,
    *,
    quantize: str | None = None,
    fallback: Fallback | None = None,
    calibration: str | Path | Calibration | None = None,
    **options: Any,
) -> JudgeIdentity:
    """Tell who a judge would be, without opening it; takes what `open_judge` takes.

    What only an open judge knows, such as `backend` and `dtype`, is empty or None.
    """
    wanted = Wanted(**options, calibration=Calibration.load(calibration))
    settings = choose(name, wanted, Placement.read(dtype="auto", device="auto", max_memory=None, quantize=quantize))
    if fallback is None:
        return settings.identity
    second = choose_fallback(settings, fallback, wanted)
    return replace(settings.identity, fallback=fallback_json(second.identity, fallback))


def _open_both(
    settings: Settings | GeneralSettings,
    wanted: Wanted,
    server: ServerOptions,
    fallback: Fallback | None,
    open_one: Callable[[Settings | GeneralSettings, ServerOptions], Judge],
) -> Judge:
    check_url(settings, server)
    if fallback is None:
        return open_one(settings, server)
    # What is wrong with the second is found before the first is opened.
    second = choose_fallback(settings, fallback, wanted)
    return _with_fallback(open_one(settings, server), partial(open_one, second, for_second(settings, server)), fallback)


def _open(
    settings: Settings | GeneralSettings, server: ServerOptions, tape: TapeOptions | None, models: Models | None
) -> Judge:
    if isinstance(settings, Settings):
        identity, checker = open_family(settings, tape)
        judge = Judge(identity=identity, evaluator=checker, backends={identity.judge: checker.backend})
    else:
        opened = open_general(settings, server, tape, models)
        identity, name = opened.identity, opened.identity.judge
        notes = tuple(f"{name}: {note}" for note in opened.notes)
        judge = Judge(identity=identity, evaluator=opened.evaluator, backends={name: opened.backend}, notes=notes)
    if settings.calibration is not None:
        try:
            settings.calibration.check(identity)
        except BaseException:
            judge.close()
            raise
    return judge


def _with_fallback(first: Judge, open_second: Callable[[], Judge], fallback: Fallback) -> Judge:
    with ExitStack() as opened:
        opened.enter_context(first)
        second = open_second()
        names = (first.identity.judge, second.identity.judge)
        both = FallbackEvaluator(first.evaluator, second.evaluator, on=fallback.on, band=fallback.band, names=names)
        identity = replace(first.identity, fallback=fallback_json(second.identity, fallback))
        backends, notes = {**first.backends, **second.backends}, first.notes + second.notes
        opened.pop_all()
        return Judge(identity=identity, evaluator=both, backends=backends, notes=notes)
