"""Joins weights, tokenizer and backend: what can be wrong is found before the model is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minicheck_eval.backends.framed import FramedBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.backends.placement import Placement
from minicheck_eval.errors import IntegrityError, ManifestError, ModelUnavailable
from minicheck_eval.evaluators.fact_checking import check_chunk_tokens
from minicheck_eval.manifest import Located, Manifest
from minicheck_eval.manifest.model_folder import check_shape, read_shape
from minicheck_eval.parity import SAFE, Parity
from minicheck_eval.scoring import Backend
from minicheck_eval.store.tensor_files import check_tensor_files
from minicheck_eval.store.weights import Weights, ready_weights
from minicheck_eval.text.replies import ReplyRule

__all__ = ["fetch", "load_backend", "load_chat"]


def fetch(judge: Located, source: Path | None = None) -> Weights:
    """Get the judge's weights onto this machine, from `source` where it is given, and verify them."""
    weights = ready_weights(judge, source, convert=_convert)
    check_shape(judge.manifest, weights.config)
    return weights


def load_backend(
    judge: Located,
    placement: Placement,
    chunk_tokens: int,
    parity: Parity = SAFE,
    *,
    alone: bool = False,
) -> Backend:
    """Return the backend of a judge; every error that the tokenizer can tell comes before the weights are read."""
    weights = fetch(judge)
    tokenizer = _tokenizer(weights.tokenizer, parity)
    _check_belongs(judge.manifest, tokenizer, weights)
    check_prompt(judge.manifest, tokenizer, chunk_tokens)
    from minicheck_eval.backends.local_open import open_local

    return open_local(judge.manifest, weights.folder, tokenizer, placement, parity=parity, alone=alone)


def load_chat(
    folder: Path,
    placement: Placement,
    *,
    window_tokens: int | None = None,
    rule: ReplyRule | None = None,
    alone: bool = False,
) -> FramedBackend:
    """Return a general judge: any causal model of transformers that was trained to chat; it needs no manifest.

    `window_tokens` is the most tokens of one prompt; None: all that the model has positions for.  `rule` has the words
    for yes and no.  `alone` scores each
    prompt in a pass of its own.
    """
    shape = read_shape(folder / "config.json")
    check_tensor_files(folder)
    tokenizer = _tokenizer(folder / "tokenizer.json", SAFE)
    _check_vocabulary(tokenizer, shape, folder)
    from minicheck_eval.backends.local_open import open_chat

    return open_chat(folder, tokenizer, placement, window_tokens=window_tokens, rule=rule, alone=alone)


def check_prompt(manifest: Manifest, tokenizer: PromptTokenizer, chunk_tokens: int) -> None:
    """Refuse labels that the vocabulary does not have, and prompts or chunks that the window does not hold."""
    for label in (*manifest.labels.yes, *manifest.labels.no) if manifest.labels else ():
        read = tokenizer.text(tokenizer.token_id(label))
        if read.strip() != label.strip():
            raise ManifestError(
                f"the vocabulary of {manifest.name} has no token for the label {label!r}; it would be read as {read!r}",
                hint="correct [labels] in the manifest, or choose the tokenizer.json of this model",
            )
    window = manifest.limits.window_tokens
    # Counted as the evaluator counts it, so that what is let through here is not refused there.
    frame = sum(tokenizer.count(manifest.template.own_text))
    if window - frame <= 1:
        raise ManifestError(
            f"the window of {manifest.name} has {window} tokens, and its prompt alone {frame}",
            hint="no document fits: raise window_tokens as far as the model goes, or shorten the prompt",
        )
    check_chunk_tokens(chunk_tokens, window_tokens=window, frame_tokens=frame)


def _tokenizer(path: Path, parity: Parity) -> PromptTokenizer:
    if not path.is_file():
        raise ModelUnavailable(
            f"{path} is not there", hint="copy the model's tokenizer.json into the folder (save_pretrained writes it)"
        )
    try:
        return PromptTokenizer(path, parse_control_tokens=parity.parse_control_tokens, double_bos=parity.double_bos)
    except Exception as error:  # the library raises bare exceptions
        raise IntegrityError(f"{path} is no tokenizer: {error}", hint="copy the file anew") from error


def _check_belongs(manifest: Manifest, tokenizer: PromptTokenizer, weights: Weights) -> None:
    """Refuse the tokenizer of another model, as far as one can tell."""
    _check_vocabulary(tokenizer, read_shape(weights.config), weights.folder)
    if manifest.classes and not tokenizer.ends_with_control(manifest.template.suffix):
        wrong = f"does not have the control token that ends the prompt, {manifest.template.suffix!r}"
        raise _not_of_the_model(wrong, weights.folder)


def _check_vocabulary(tokenizer: PromptTokenizer, shape: Mapping[str, Any], folder: Path) -> None:
    # A model of more than text describes its text part apart.
    rows = shape.get("vocab_size", shape.get("text_config", {}).get("vocab_size"))
    if isinstance(rows, int) and tokenizer.largest_id >= rows:
        raise _not_of_the_model(f"has ids up to {tokenizer.largest_id}, and the model {rows} of them", folder)


def _not_of_the_model(wrong: str, folder: Path) -> IntegrityError:
    return IntegrityError(
        f"the tokenizer.json is not of the model in {folder}: it {wrong}",
        hint="copy the tokenizer.json of this model into the folder",
    )


def _convert(source: Path, target: Path) -> None:
    from minicheck_eval.backends.local_convert import convert

    convert(source, target)
