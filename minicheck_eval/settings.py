"""What a caller asks of a judge, checked before anything is loaded, and the identity that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Self

from minicheck_eval.backends.placement import Placement
from minicheck_eval.calibration import Calibration
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import DecisionConfig, check_rule
from minicheck_eval.identity import JudgeIdentity, digest
from minicheck_eval.manifest import Located, Manifest
from minicheck_eval.parity import Parity, resolve
from minicheck_eval.store.weights import known_digests
from minicheck_eval.text import OwnRules, ReferenceChunking, ReferenceRules, TextRules

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A judge's settings: those of its manifest, and what was asked for in their place."""

    located: Located
    decision: DecisionConfig
    chunk_tokens: int
    split_claims: bool
    placement: Placement
    parity: Parity
    recheck: bool
    calibration: Calibration | None = None

    @classmethod
    def read(
        cls,
        located: Located,
        *,
        threshold: float | None,
        chunk_tokens: int | None,
        claim_aggregation: str | None,
        split_claims: bool,
        placement: Placement,
        parity: str | Parity | None,
        recheck: bool,
        calibration: Calibration | None = None,
    ) -> Self:
        """Read what was given, or raise `BadInput`."""
        manifest = located.manifest
        check_rule(threshold=threshold, claim_aggregation=claim_aggregation)
        aggregation = claim_aggregation or manifest.decision.claim_aggregation
        if recheck and aggregation == "mean":
            raise BadInput(
                "recheck looks at single claims, and the mean is over many", hint="choose dtype float32 in its place"
            )
        habits = resolve(parity, family=manifest.family)
        if habits.rope_theta is not None and isinstance(parity, str) and manifest.published is None:
            raise BadInput(
                f"{manifest.name} has no published numbers that parity {parity!r} could reproduce",
                hint="choose parity 'reference', or none",
            )
        usual = _chunking(manifest).chunk_size if habits.reference_texts else manifest.limits.chunk_tokens
        return cls(
            located=located,
            decision=DecisionConfig(
                threshold=_own_threshold(manifest, calibration) if threshold is None else threshold,
                # The package takes whatever is no yes for a no.
                least_mass=0.0 if habits.top5_rule else manifest.decision.least_mass,
                chunk_aggregation=manifest.decision.chunk_aggregation,
                claim_aggregation=aggregation,
                support_map=None if calibration is None else calibration.map,
            ),
            chunk_tokens=usual if chunk_tokens is None else chunk_tokens,
            split_claims=split_claims and not habits.whole_claims,
            placement=placement,
            parity=habits,
            recheck=recheck,
            calibration=calibration,
        )

    @property
    def name(self) -> str:
        """Name the judge as its manifest does."""
        return self.located.manifest.name

    @property
    def rules(self) -> TextRules:
        """Return what cuts texts."""
        manifest = self.located.manifest
        if not self.parity.reference_texts:
            return OwnRules()
        # Of a document without text the package asks a causal model all the same; its encoders raise an error there.
        return ReferenceRules(_chunking(manifest), empty_chunk=manifest.family == "causal")

    @property
    def identity(self) -> JudgeIdentity:
        """Tell who the judge will be; what only a loaded judge knows, `backend` and `dtype`, is empty."""
        manifest, splitter = self.located.manifest, self.rules.name
        return JudgeIdentity(
            judge=self.name,
            model=manifest.repository,
            revision=manifest.revision,
            digests=known_digests(self.located),
            backend="",
            dtype="",
            quantization=self.placement.quantization,
            prompt_digest=manifest.template.digest,
            labels_digest=digest(manifest.answers.model_dump()),
            window_tokens=manifest.limits.window_tokens,
            chunk_tokens=self.chunk_tokens,
            threshold=self.decision.threshold,
            least_mass=self.decision.least_mass,
            chunk_aggregation=self.decision.chunk_aggregation,
            claim_aggregation=self.decision.claim_aggregation,
            splitter=splitter if self.split_claims else f"{splitter} (whole answers)",
            package=version("minicheck-eval"),
            parity=self.parity,
            recheck=self.recheck,
            calibration="" if self.calibration is None else self.calibration.digest,
        )


def _own_threshold(manifest: Manifest, calibration: Calibration | None) -> float:
    own = manifest.decision.threshold
    return own if calibration is None else calibration.threshold_for(own)


def _chunking(manifest: Manifest) -> ReferenceChunking:
    """Return how the MiniCheck package would cut for this model; for one it does not know, as for its 7B model."""
    if manifest.reference is None:
        return ReferenceChunking(chunk_size=manifest.limits.chunk_tokens, window=manifest.limits.window_tokens)
    return ReferenceChunking(**manifest.reference.model_dump())
