"""Canonical JSON, SHA-256 digests, and the identity of a judge: what a verdict must say about who gave it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from minicheck_eval.parity import SAFE, Parity

__all__ = ["JudgeIdentity", "canonical_json", "digest", "file_digest"]


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """Write a value as JSON with one possible spelling: sorted keys, no white space, no NaN, text as it is."""
    return _CANONICAL.encode(value)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, in hexadecimal."""
    # A lone surrogate has no UTF-8; it must still have a digest of its own.
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeIdentity:
    """All that shapes a judge's verdicts."""

    judge: str
    model: str
    revision: str
    digests: Mapping[str, str] = field(default_factory=dict)
    """File name → SHA-256 of the weights, adapters and tokenizer."""
    backend: str
    dtype: str
    quantization: str = ""
    """The bits of the weights and the library that holds them; empty: the weights as they are."""
    prompt_digest: str
    labels_digest: str
    """Of the reply tokens that count as yes and as no."""
    window_tokens: int | None
    """None here and below: only a judge that was opened knows."""
    chunk_tokens: int | None
    threshold: float
    least_mass: float
    chunk_aggregation: str
    claim_aggregation: str
    splitter: str
    """The sentence splitter and its version: another one makes other claims."""
    package: str
    """The version of this package: its rules decide."""
    parity: Parity = SAFE
    """Which habits of the reference implementation it has."""
    recheck: bool = False
    """Scores near a border were computed again, alone and in float32."""
    evaluator: str = "fact-checking"
    """What the judge is asked about an answer."""
    reading: str = "first-token"
    """How its answer is read: from the probabilities of its first token, or from its words."""
    fallback: Mapping[str, Any] | None = None
    """The judge that is asked where this one is not enough: its identity, and when."""

    def to_json(self) -> dict[str, Any]:
        """Return the identity as JSON-ready values."""
        value = asdict(self)
        value["digests"] = dict(self.digests)
        return value

    @property
    def digest(self) -> str:
        """Return the SHA-256 over all fields."""
        return digest(self.to_json())
