"""Opens the local backend of a judge: places the model on this machine and joins it with its tokenizer."""

from __future__ import annotations

from pathlib import Path

from minicheck_eval.backends.local import LocalBackend
from minicheck_eval.backends.local_encoder import EncoderBackend
from minicheck_eval.backends.local_llama import load_llama
from minicheck_eval.backends.local_models import load_encoder
from minicheck_eval.backends.local_placement import place_of
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.backends.placement import Placement
from minicheck_eval.manifest import Manifest
from minicheck_eval.scoring import Backend

__all__ = ["open_local"]


def open_local(
    manifest: Manifest,
    weights: Path,
    tokenizer: PromptTokenizer,
    placement: Placement,
    *,
    rope_theta: float | None = None,
    truncate: bool = False,
) -> Backend:
    """Load the model in `weights`, a folder of safetensors in the format of transformers.

    `rope_theta` replaces the rotary base of a causal model; with `truncate` an encoder cuts what is too long.
    """
    place = place_of(placement, manifest.family)
    window_tokens = manifest.limits.window_tokens
    if manifest.labels is not None:
        model = load_llama(weights, rope_theta=rope_theta, **place)
        return LocalBackend(
            model, tokenizer, yes=manifest.labels.yes, no=manifest.labels.no, window_tokens=window_tokens
        )
    assert manifest.classes is not None, "checked when the manifest was read"  # noqa: S101 - our own invariant
    assert manifest.family != "causal", "checked when the manifest was read"  # noqa: S101 - our own invariant
    return EncoderBackend(
        load_encoder(weights, **place),
        tokenizer,
        family=manifest.family,
        supported=manifest.classes.supported,
        unsupported=manifest.classes.unsupported,
        window_tokens=window_tokens,
        truncate=truncate,
    )
