"""What a server told about the model that it runs: the provenance of its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ServerFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """A model on a server, as it was when it was opened; what the server does not tell is empty."""

    model: str
    revision: str = ""
    """Whatever names the exact model best: a digest where there is one."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """By part: the manifest, the weights, the template and so on."""
    server: str = ""
    """The program and its version."""
    quantization: str = ""
    window_tokens: int
    """The most tokens that one prompt may have."""
    window_told: bool = True
    """Whether the server says so itself."""
    logprobs: bool = True
    """Whether probabilities come with the reply; without them there are only words."""
    notes: tuple[str, ...] = ()
    """What a reader of the scores should know."""
