"""The one door: `open_judge` joins manifest, weights, backend and evaluator."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import NamedTuple

from minicheck_eval.backends.placement import Placement
from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput, IntegrityError
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.identity import JudgeIdentity, digest
from minicheck_eval.loading import load_backend
from minicheck_eval.manifest import Located, load_manifest
from minicheck_eval.scoring import Backend, Score, StreamingBackend, Usage
from minicheck_eval.store.weights import known_digests
from minicheck_eval.text import SPLITTER

__all__ = ["Judge", "Scores", "identity_without_weights", "open_judge"]


class Scores(NamedTuple):
    """What the MiniCheck package's `score` returns, one entry for each pair.

    A pair that could not be judged has the label and the probability None: a zero would be a verdict.
    """

    pred_label: list[int | None]
    max_support_prob: list[float | None]
    used_chunk: list[list[str]]
    support_prob_per_chunk: list[list[float | None]]


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

        Each claim is judged whole, not sentence by sentence; `chunk_size` is in tokens.
        """
        if isinstance(docs, str) or isinstance(claims, str):
            raise BadInput("docs or claims is one string", hint="give lists: score(docs=[text], claims=[claim])")
        if len(docs) != len(claims):
            raise BadInput(f"{len(docs)} documents for {len(claims)} claims", hint="give one document for each claim")
        whole = FactCheckingEvaluator(
            self.evaluator.backend,
            template=self.evaluator.template,
            chunk_tokens=self.evaluator.chunk_tokens if chunk_size is None else chunk_size,
            decision=self.evaluator.decision,
            split_claims=False,
        )
        requests = [
            EvaluationRequest("", [Document(document)], claim) for document, claim in zip(docs, claims, strict=True)
        ]
        rows = [_row(document, r) for document, r in zip(docs, whole.evaluate_batch(requests), strict=True)]
        return Scores(*(list(column) for column in zip(*rows, strict=True))) if rows else Scores([], [], [], [])


def _row(document: str, response: EvaluationResponse) -> tuple[int | None, float | None, list[str], list[float | None]]:
    label = int(response.outcome is Outcome.PASS) if response.outcome.judged else None
    chunks = [document[chunk["start"] : chunk["end"]] for chunk in response.metadata["chunks"]]
    claims = response.metadata["claims"]
    return label, response.score, chunks, claims[0]["supports"] if claims else []


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
) -> Judge:
    """Open the judge `name`, or the one in a folder that holds a model of the family or a manifest.toml.

    What is not given comes from the manifest.  The weights are fetched on first use.  `dtype` is "float32", "bfloat16",
    "float16" or "auto" (bfloat16 on a GPU, float32 on a CPU); `device` is "cpu", "cuda", "cuda:1" or "auto" (all GPUs,
    and the CPU's memory for what does not fit); `max_memory` bounds weights, as in "0=20GiB,cpu=30GiB"; `quantize` is
    "8bit" or "4bit".  Raises `ManifestError` for an unknown name, `ModelUnavailable` without weights, and
    `IntegrityError` where a file is not what it should be or the judge does not answer as it should.
    """
    placement = Placement.read(dtype=dtype, device=device, max_memory=max_memory, quantize=quantize)
    located = load_manifest(name)
    identity = _identity(located, threshold, chunk_tokens, claim_aggregation, split_claims=split_claims)
    identity = replace(identity, quantization=placement.quantization)
    backend = _open_backend(located, placement, identity.chunk_tokens)
    _check_canaries(located, backend)
    evaluator = FactCheckingEvaluator(
        backend,
        template=located.manifest.template,
        chunk_tokens=identity.chunk_tokens,
        decision=DecisionConfig(
            threshold=identity.threshold,
            chunk_aggregation=identity.chunk_aggregation,
            claim_aggregation=identity.claim_aggregation,
            least_mass=identity.least_mass,
        ),
        split_claims=split_claims,
    )
    # What was fetched just now has digests that were not known before.
    digests = known_digests(located)
    return Judge(
        identity=replace(identity, backend=backend.name, dtype=backend.dtype, digests=digests), evaluator=evaluator
    )


def identity_without_weights(
    name: str, *, threshold: float | None = None, chunk_tokens: int | None = None, quantize: str | None = None
) -> JudgeIdentity:
    """Tell who a judge would be, without loading it: `backend` and `dtype` are empty."""
    placement = Placement.read(dtype="auto", device="auto", max_memory=None, quantize=quantize)
    identity = _identity(load_manifest(name), threshold, chunk_tokens, None, split_claims=True)
    return replace(identity, quantization=placement.quantization)


def _open_backend(located: Located, placement: Placement, chunk_tokens: int) -> Backend:
    return load_backend(located, placement, chunk_tokens)


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


def _identity(
    located: Located,
    threshold: float | None,
    chunk_tokens: int | None,
    claim_aggregation: str | None,
    *,
    split_claims: bool,
) -> JudgeIdentity:
    manifest = located.manifest
    if threshold is not None and not 0 <= threshold <= 1:  # also refuses NaN
        raise BadInput(f"threshold {threshold} is not in [0, 1]", hint="support is a probability")
    if claim_aggregation not in (None, "min", "mean"):
        raise BadInput(f"claim aggregation {claim_aggregation!r} is not known", hint="choose min or mean")
    return JudgeIdentity(
        judge=manifest.name,
        model=manifest.repository,
        revision=manifest.revision,
        digests=known_digests(located),
        backend="",
        dtype="",
        prompt_digest=manifest.template.digest,
        labels_digest=digest(manifest.answers.model_dump()),
        window_tokens=manifest.limits.window_tokens,
        chunk_tokens=manifest.limits.chunk_tokens if chunk_tokens is None else chunk_tokens,
        threshold=manifest.decision.threshold if threshold is None else threshold,
        least_mass=manifest.decision.least_mass,
        chunk_aggregation=manifest.decision.chunk_aggregation,
        claim_aggregation=claim_aggregation or manifest.decision.claim_aggregation,
        splitter=SPLITTER if split_claims else f"{SPLITTER} (whole answers)",
        package=version("minicheck-eval"),
    )
