"""The one door: `open_judge` joins manifest, weights, backend and evaluator."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple

from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput, IntegrityError
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.identity import JudgeIdentity, digest
from minicheck_eval.manifest import Located, Manifest, load_manifest
from minicheck_eval.parity import Parity, resolve
from minicheck_eval.scoring import Backend, Score, StreamingBackend, Usage
from minicheck_eval.store.fetch import ensure_weights
from minicheck_eval.text import OwnRules, ReferenceChunking, ReferenceRules, TextRules

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
    parity: str | Parity | None = None,
) -> Judge:
    """Open the judge `name`, or the one in a folder that holds a manifest.toml.

    What is not given comes from the manifest.  With `parity` the judge has habits of the MiniCheck package: all that it
    has now ("reference"), those behind its published numbers ("published"), or some.  The weights are fetched on first
    use.  Raises `ManifestError` for an unknown name, `ModelUnavailable` without weights, and `IntegrityError` where the
    judge does not answer as it should.
    """
    located = load_manifest(name)
    habits = resolve(parity, family=located.manifest.family)
    identity = _identity(located, threshold, chunk_tokens, claim_aggregation, split_claims=split_claims, parity=habits)
    backend = _open_backend(located, dtype, device, habits)
    # Known answers are those to the ids and positions that the judge was made for.
    if habits.rope_theta is None and not habits.double_bos:
        _check_canaries(located, backend)
    evaluator = FactCheckingEvaluator(
        backend,
        template=replace(located.manifest.template, paste_claim=habits.paste_claim),
        chunk_tokens=identity.chunk_tokens,
        decision=DecisionConfig(
            threshold=identity.threshold,
            chunk_aggregation=identity.chunk_aggregation,
            claim_aggregation=identity.claim_aggregation,
            least_mass=identity.least_mass,
        ),
        split_claims=split_claims and not habits.whole_claims,
        rules=_rules(located.manifest, habits),
    )
    return Judge(identity=replace(identity, backend=backend.name, dtype=backend.dtype), evaluator=evaluator)


def identity_without_weights(
    name: str,
    *,
    threshold: float | None = None,
    chunk_tokens: int | None = None,
    parity: str | Parity | None = None,
) -> JudgeIdentity:
    """Tell who a judge would be, without loading it: `backend` and `dtype` are empty."""
    located = load_manifest(name)
    habits = resolve(parity, family=located.manifest.family)
    return _identity(located, threshold, chunk_tokens, None, split_claims=True, parity=habits)


def _reference_chunking(manifest: Manifest) -> ReferenceChunking:
    limits = manifest.limits
    return ReferenceChunking(chunk_size=limits.chunk_tokens, window=limits.window_tokens)


def _rules(manifest: Manifest, parity: Parity) -> TextRules:
    if not parity.reference_texts:
        return OwnRules()
    # Of a document without text the package asks a causal model all the same; its encoders raise an error there.
    return ReferenceRules(_reference_chunking(manifest), empty_chunk=manifest.family == "causal")


def _open_backend(located: Located, dtype: str, device: str, parity: Parity) -> Backend:
    weights = ensure_weights(located)
    from minicheck_eval.backends.local_open import open_local

    tokenizer = located.folder / located.manifest.tokenizer.name
    return open_local(located.manifest, weights, tokenizer, dtype=dtype, device=device, parity=parity)


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
    parity: Parity,
) -> JudgeIdentity:
    manifest = located.manifest
    splitter = _rules(manifest, parity).name
    whole = parity.whole_claims or not split_claims
    usual = _reference_chunking(manifest).chunk_size if parity.reference_texts else manifest.limits.chunk_tokens
    if threshold is not None and not 0 <= threshold <= 1:  # also refuses NaN
        raise BadInput(f"threshold {threshold} is not in [0, 1]", hint="support is a probability")
    if claim_aggregation not in (None, "min", "mean"):
        raise BadInput(f"claim aggregation {claim_aggregation!r} is not known", hint="choose min or mean")
    return JudgeIdentity(
        judge=manifest.name,
        model=manifest.base.repository,
        revision=manifest.revision,
        digests={manifest.base.member: manifest.base.sha256, **{file.name: file.sha256 for file in manifest.files}},
        backend="",
        dtype="",
        prompt_digest=manifest.template.digest,
        labels_digest=digest(manifest.labels.model_dump()),
        window_tokens=manifest.limits.window_tokens,
        chunk_tokens=usual if chunk_tokens is None else chunk_tokens,
        threshold=manifest.decision.threshold if threshold is None else threshold,
        # The package takes whatever is no yes for a no.
        least_mass=0.0 if parity.top5_rule else manifest.decision.least_mass,
        chunk_aggregation=manifest.decision.chunk_aggregation,
        claim_aggregation=claim_aggregation or manifest.decision.claim_aggregation,
        splitter=f"{splitter} (whole answers)" if whole else splitter,
        package=version("minicheck-eval"),
        parity=parity,
    )
