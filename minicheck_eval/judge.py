"""The one door: `open_judge` joins manifest, weights, backend and evaluator."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from minicheck_eval.backends.placement import Placement
from minicheck_eval.backends.probes import probes
from minicheck_eval.backends.recheck import RecheckingBackend, measure_noise
from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput, IntegrityError
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.loading import load_backend
from minicheck_eval.manifest import Located, load_manifest
from minicheck_eval.parity import Parity
from minicheck_eval.scoring import Backend, Score, StreamingBackend, Usage
from minicheck_eval.settings import Settings
from minicheck_eval.store.weights import known_digests

__all__ = ["Judge", "Scores", "identity_without_weights", "open_judge"]


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
    evaluator: FactCheckingEvaluator

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
        return self.evaluator.evaluate_stream(batches)

    @property
    def usage(self) -> Usage | None:
        """Tell what the judge has been asked and has computed; None where its backend does not say."""
        backend = self.evaluator.backend
        return backend.usage if isinstance(backend, StreamingBackend) else None

    def score(self, docs: Sequence[str], claims: Sequence[str], chunk_size: int | None = None) -> Scores:
        """Score pairs as the MiniCheck package's `MiniCheck.score(docs=…, claims=…)` does.

        Each claim is judged whole, not sentence by sentence, unless the judge has the parity "reference"; `chunk_size`
        is in tokens, or in the unit of that parity.
        """
        if isinstance(docs, str) or isinstance(claims, str):
            raise BadInput("docs or claims is one string", hint="give lists: score(docs=[text], claims=[claim])")
        if len(docs) != len(claims):
            raise BadInput(f"{len(docs)} documents for {len(claims)} claims", hint="give one document for each claim")
        parity = self.identity.parity
        split = parity.reference_texts and not parity.whole_claims
        evaluator = FactCheckingEvaluator(
            self.evaluator.backend,
            template=self.evaluator.template,
            chunk_tokens=self.evaluator.chunk_tokens if chunk_size is None else chunk_size,
            decision=self.evaluator.decision,
            split_claims=split,
            rules=self.evaluator.rules,
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
) -> Judge:
    """Open the judge `name`, or the one in a folder that holds a model of the family or a manifest.toml.

    What is not given comes from the manifest.  The weights are fetched on first use.  `dtype` is "float32", "bfloat16",
    "float16" or "auto" (bfloat16 on a GPU, float32 on a CPU); `device` is "cpu", "cuda", "cuda:1" or "auto" (all GPUs,
    and the CPU's memory for what does not fit); `max_memory` bounds weights, as in "0=20GiB,cpu=30GiB"; `quantize` is
    "8bit" or "4bit".  With `parity` the judge has habits of the MiniCheck package: all that it has now ("reference"),
    those behind its published numbers ("published"), or some.  With `recheck` scores near the threshold are computed
    again, alone and in float32, with a second copy of the model.  Raises `ManifestError` for an unknown name,
    `ModelUnavailable` without weights, and `IntegrityError` where a file is not what it should be or the judge does not
    answer as it should.
    """
    placement = Placement.read(dtype=dtype, device=device, max_memory=max_memory, quantize=quantize)
    settings = Settings.read(
        load_manifest(name),
        threshold=threshold,
        chunk_tokens=chunk_tokens,
        claim_aggregation=claim_aggregation,
        split_claims=split_claims,
        placement=placement,
        parity=parity,
        recheck=recheck,
    )
    backend = _open_backend(settings)
    # Known answers are those to the ids and positions that the judge was made for.
    if settings.parity.rope_theta is None and not settings.parity.double_bos:
        _check_canaries(settings.located, backend)
    if recheck:
        backend = _rechecking(backend, settings)
    # What was fetched just now has digests that were not known before.
    digests = known_digests(settings.located)
    identity = replace(settings.identity, backend=backend.name, dtype=backend.dtype, digests=digests)
    return Judge(identity=identity, evaluator=_evaluator(backend, settings))


def identity_without_weights(
    name: str,
    *,
    threshold: float | None = None,
    chunk_tokens: int | None = None,
    quantize: str | None = None,
    parity: str | Parity | None = None,
    recheck: bool = False,
) -> JudgeIdentity:
    """Tell who a judge would be, without loading it: `backend` and `dtype` are empty."""
    return Settings.read(
        load_manifest(name),
        threshold=threshold,
        chunk_tokens=chunk_tokens,
        claim_aggregation=None,
        split_claims=True,
        placement=Placement.read(dtype="auto", device="auto", max_memory=None, quantize=quantize),
        parity=parity,
        recheck=recheck,
    ).identity


def _evaluator(backend: Backend, settings: Settings) -> FactCheckingEvaluator:
    return FactCheckingEvaluator(
        backend,
        template=replace(settings.located.manifest.template, paste_claim=settings.parity.paste_claim),
        chunk_tokens=settings.chunk_tokens,
        decision=settings.decision,
        split_claims=settings.split_claims,
        rules=settings.rules,
    )


def _open_backend(settings: Settings) -> Backend:
    return load_backend(settings.located, settings.placement, settings.chunk_tokens, settings.parity)


def _rechecking(fast: Backend, settings: Settings) -> Backend:
    """Put a second backend beside the first, which computes in float32, one prompt at a time."""
    manifest, placement = settings.located.manifest, replace(settings.placement, dtype="float32", quantization="")
    exact = load_backend(settings.located, placement, settings.chunk_tokens, settings.parity, alone=True)
    borders = [("support", settings.decision.threshold), ("mass", settings.decision.least_mass)]
    noise = measure_noise(fast, exact, probes(manifest.template))
    return RecheckingBackend(fast, exact, borders=borders, noise=noise)


def _check_canaries(located: Located, backend: Backend) -> None:
    """Ask questions with known answers: a library that changed under the judge must not change verdicts in silence."""
    canaries = located.manifest.canaries
    tolerance = 0.01 if backend.dtype == "float32" else 0.08
    prompts = [located.manifest.template.fill(canary.document, canary.claim) for canary in canaries]
    for canary, score in zip(canaries, backend.score(prompts), strict=True):
        if not isinstance(score, Score) or abs(score.support - canary.support) > tolerance:
            got = f"{score.support:.4f}" if isinstance(score, Score) else score.message
            raise IntegrityError(
                f"{located.manifest.name} does not answer as it should: support {got} for {canary.claim!r}, expected "
                f"{canary.support:.4f} ± {tolerance} ({backend.name}, {backend.dtype})",
                hint="a newer library may compute differently: install the versions that the README names",
            )
