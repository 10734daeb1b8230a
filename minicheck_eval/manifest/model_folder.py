"""Reads the shape of a model folder in the format of transformers, and says how its kind is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minicheck_eval.errors import ManifestError
from minicheck_eval.manifest.schema import Limits, Manifest

__all__ = ["adapt", "check_shape", "is_general", "read_shape", "relative_of"]

RELATIVES = {
    "internlm2": "bespoke-minicheck-7b",
    "t5": "minicheck-flan-t5-large",
    "roberta": "minicheck-roberta-large",
    "deberta-v2": "minicheck-deberta-v3-large",
}
"""Kind of model → the judge that is asked the same way."""

KINDS = {"causal": ("llama", "internlm2"), "seq2seq": ("t5",), "classifier": ("roberta", "deberta-v2")}
"""Family → the kinds of model that it may be."""

MINIMAL = """write a manifest.toml into the folder:
schema = 1
name = "my-judge"
summary = "what it is"
family = "causal"
licence = "its licence"
[prompt]
prefix = "Document: {document}\\nClaim:"
suffix = " {claim}\\nAnswer:"
[labels]
yes = ["Yes"]
no = ["No"]
[limits]
window_tokens = 2048
chunk_tokens = 700
[decision]
threshold = 0.5"""


def read_shape(path: Path) -> dict[str, Any]:
    """Read a config.json, or raise `ManifestError`."""
    try:
        shape = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ManifestError(
            f"{path} is not there", hint="a model folder holds config.json, tokenizer.json and safetensors"
        ) from None
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path} cannot be read as JSON: {error}", hint="copy the file anew") from error
    if not isinstance(shape, dict) or not isinstance(shape.get("model_type"), str):
        raise ManifestError(f"{path} names no model_type", hint="copy the model's own config.json into the folder")
    return shape


def is_general(folder: Path) -> bool:
    """Tell whether a folder holds a chat model that no manifest and no relative describes."""
    if not (folder / "config.json").is_file() or (folder / "manifest.toml").is_file():
        return False
    kind, chat = read_shape(folder / "config.json")["model_type"], folder / "tokenizer_config.json"
    templates = (folder / "chat_template.jinja").is_file() or (
        chat.is_file() and "chat_template" in chat.read_text(encoding="utf-8", errors="replace")
    )
    return kind not in RELATIVES and templates


def relative_of(folder: Path) -> str:
    """Name the judge whose rules hold for the model in `folder`."""
    kind = read_shape(folder / "config.json")["model_type"]
    if kind not in RELATIVES:
        known = f"a model of type {kind!r} does not say how it is asked (known: {', '.join(sorted(RELATIVES))})"
        hint = MINIMAL if kind in KINDS["causal"] else "choose a judge of one of these types"
        raise ManifestError(f"{folder / 'config.json'}: {known}", hint=hint)
    return RELATIVES[kind]


def adapt(relative: Manifest, folder: Path) -> Manifest:
    """Return the manifest of the model in `folder`: its relative's rules, in the limits of its own config.json."""
    limits = relative.limits
    longest = longest_window(read_shape(folder / "config.json"))
    if longest is not None and longest < limits.window_tokens:
        # The room that the relative leaves for prompt and claim stays.
        chunk = max(1, longest // 2, longest - (limits.window_tokens - limits.chunk_tokens))
        limits = Limits(window_tokens=longest, chunk_tokens=chunk)
    return relative.model_copy(
        update={
            "name": folder.resolve().name,
            "summary": f"The model in {folder}, asked as {relative.name}.",
            "licence": "not stated",
            "revision": "",
            "hub": None,
            "weights": [],
            "limits": limits,
            "canaries": [],
            "accuracy": {},
            "published": None,
        }
    )


def longest_window(shape: dict[str, Any]) -> int | None:
    """Return the most tokens that the model has positions for; None where positions are relative alone."""
    positions = shape.get("max_position_embeddings")
    kind = shape["model_type"]
    if (
        not isinstance(positions, int)
        or kind == "t5"
        or (kind == "deberta-v2" and not shape.get("position_biased_input"))
    ):
        return None
    # RoBERTa's first position is the one after that of padding.
    return positions - shape.get("pad_token_id", 1) - 1 if kind == "roberta" else positions


def check_shape(manifest: Manifest, path: Path) -> None:
    """Compare a manifest with the model's config.json; what does not fit raises `ManifestError`."""
    shape = read_shape(path)
    kind, longest = shape["model_type"], longest_window(shape)
    if kind not in KINDS[manifest.family]:
        raise ManifestError(
            f"{path} is of a model of type {kind!r}, but a judge of the family {manifest.family} has one of "
            f"{', '.join(KINDS[manifest.family])}",
            hint="choose another model, or correct family in the manifest",
        )
    if longest is not None and longest < manifest.limits.window_tokens:
        raise ManifestError(
            f"{path}: the model has {longest} positions, the manifest of {manifest.name} asks for "
            f"{manifest.limits.window_tokens}",
            hint=f"set window_tokens to {longest} or less",
        )
    if manifest.classes is not None:
        most = shape.get("vocab_size", 0) if manifest.family == "seq2seq" else len(shape.get("id2label", "01"))
        if max(manifest.classes.supported, manifest.classes.unsupported) >= most:
            raise ManifestError(
                f"{path}: the model has {most} answers, the manifest of {manifest.name} asks for the places "
                f"{manifest.classes.unsupported} and {manifest.classes.supported}",
                hint="this is no model of the MiniCheck family: choose another",
            )
