"""Opens judges of the MiniCheck family: models that a manifest describes, in the words that they were trained on."""

from __future__ import annotations

from dataclasses import replace

from minicheck_eval.backends.probes import probes
from minicheck_eval.backends.recheck import RecheckingBackend, measure_noise
from minicheck_eval.errors import IntegrityError
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.manifest import Located
from minicheck_eval.scoring import Backend, Score
from minicheck_eval.settings import Settings
from minicheck_eval.store.weights import known_digests
from minicheck_eval.tape.opening import record_over, replay
from minicheck_eval.tape.options import TapeOptions

__all__ = ["open_family"]


def open_family(settings: Settings, tape: TapeOptions | None = None) -> tuple[JudgeIdentity, FactCheckingEvaluator]:
    """Load the model, ask it what is known, and join it with what it is asked; or play its tape, without the model."""
    if tape is not None and tape.replays_only:
        replayed = replay(tape, settings.identity, dtype=settings.placement.dtype)
        return replayed.identity, _evaluator(replayed.backend, settings)
    backend = _open_backend(settings)
    # Known answers are those to the ids and positions that the judge was made for.
    if settings.parity.rope_theta is None and not settings.parity.double_bos:
        _check_canaries(settings.located, backend)
    if settings.recheck:
        backend = _rechecking(backend, settings)
    # What was fetched just now has digests that were not known before.
    digests = known_digests(settings.located)
    identity = replace(settings.identity, backend=backend.name, dtype=backend.dtype, digests=digests)
    return identity, _evaluator(record_over(backend, tape, identity), settings)


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
    from minicheck_eval.loading import load_backend

    return load_backend(settings.located, settings.placement, settings.chunk_tokens, settings.parity)


def _rechecking(fast: Backend, settings: Settings) -> Backend:
    """Put a second backend beside the first, which computes in float32, one prompt at a time."""
    from minicheck_eval.loading import load_backend

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
