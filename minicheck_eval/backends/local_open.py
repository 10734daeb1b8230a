"""Opens the local backend of a judge: places the model on this machine and joins it with its tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minicheck_eval.backends.framed import ChatFrame, FramedBackend
from minicheck_eval.backends.local import LocalBackend
from minicheck_eval.backends.local_causal import load_causal, window_of
from minicheck_eval.backends.local_chat import read_frame
from minicheck_eval.backends.local_encoder import EncoderBackend
from minicheck_eval.backends.local_llama import load_llama
from minicheck_eval.backends.local_models import load_encoder
from minicheck_eval.backends.local_placement import place_of
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.backends.placement import Placement
from minicheck_eval.errors import BadInput, ManifestError
from minicheck_eval.manifest import Manifest
from minicheck_eval.parity import SAFE, Parity
from minicheck_eval.scoring import Backend, Prompt, Segment
from minicheck_eval.text.replies import ReplyRule

__all__ = ["open_chat", "open_local"]


def open_local(
    manifest: Manifest,
    weights: Path,
    tokenizer: PromptTokenizer,
    placement: Placement,
    *,
    parity: Parity = SAFE,
    alone: bool = False,
) -> Backend:
    """Load the model in `weights`, a folder of safetensors in the format of transformers.

    `alone` scores each prompt in a pass of its own.
    """
    place = place_of(placement, manifest.family)
    shape: dict[str, Any] = {"window_tokens": manifest.limits.window_tokens, "budget_tokens": 1 if alone else None}
    if manifest.labels is not None:
        model = load_llama(weights, rope_theta=parity.rope_theta, **place)
        yes, no = manifest.labels.yes, manifest.labels.no
        return LocalBackend(model, tokenizer, yes=yes, no=no, top5_rule=parity.top5_rule, **shape)
    assert manifest.classes is not None, "checked when the manifest was read"  # noqa: S101 - our own invariant
    assert manifest.family != "causal", "checked when the manifest was read"  # noqa: S101 - our own invariant
    return EncoderBackend(
        load_encoder(weights, **place),
        tokenizer,
        family=manifest.family,
        supported=manifest.classes.supported,
        unsupported=manifest.classes.unsupported,
        truncate=parity.truncate,
        **shape,
    )


def open_chat(
    folder: Path,
    tokenizer: PromptTokenizer,
    placement: Placement,
    *,
    window_tokens: int | None,
    rule: ReplyRule | None = None,
    alone: bool = False,
) -> FramedBackend:
    """Load any causal model in `folder`, and ask it through its chat template; what can be wrong is found before.

    An answer is every token that reads as one of the rule's words, in any case, with white space around it or without.
    """
    frame = read_frame(folder)
    words = (rule or ReplyRule()).first_tokens
    yes, no = (_ids(sorted(one), tokenizer) for one in words)
    window_tokens = window_of(folder, asked=window_tokens)
    said = window_tokens - _frame_tokens(frame, tokenizer)
    if said <= 0:
        raise BadInput(
            f"a window of {window_tokens} tokens does not hold what the chat template of {folder} puts around a text",
            hint="ask for more",
        )
    model = load_causal(folder, **place_of(placement, "causal"))
    shape: dict[str, Any] = {"window_tokens": window_tokens, "budget_tokens": 1 if alone else None}
    backend = LocalBackend(model, tokenizer, yes=yes, no=no, turn_end=frame.turn_end, **shape)
    return FramedBackend(backend, frame, window_tokens=said)


def _ids(words: Sequence[str], tokenizer: PromptTokenizer) -> list[int]:
    """Return the tokens that read as one of some words; one that is no token is left out, unless it is alone."""
    found: list[int] = []
    for word in words:
        try:
            found += tokenizer.ids_of_word(word, spaced=True)
        except ManifestError:
            if len(words) == 1:
                raise
    return found


def _frame_tokens(frame: ChatFrame, tokenizer: PromptTokenizer) -> int:
    """Count the tokens of the frame, around two words."""
    word = (Segment("x", False),)
    return max(map(len, tokenizer.encode([frame.frame(Prompt(word, (), system)) for system in ("x", "")])))
