"""Loads any causal model of transformers from a local directory; code that comes with a model is never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from minicheck_eval.backends.local_llama import load_llama
from minicheck_eval.backends.local_placement import Place, load
from minicheck_eval.errors import BadInput
from minicheck_eval.manifest.model_folder import KINDS, longest_window, read_shape

__all__ = ["load_causal", "window_of"]


def load_causal(folder: Path, **place: Unpack[Place]) -> Any:
    """Return the model in evaluation mode."""
    if _kind(folder) in KINDS["causal"]:
        return load_llama(folder, **place)
    return load(AutoModelForCausalLM, lambda: _config(folder), folder, place)


def window_of(folder: Path, *, asked: int | None) -> int:
    """Return the most tokens of one prompt: what was asked for, or all that the model has positions for."""
    if _kind(folder) in KINDS["causal"]:
        longest = longest_window(read_shape(folder / "config.json"))
    else:
        longest = getattr(_config(folder).get_text_config(), "max_position_embeddings", None)
    if asked is None:
        if longest is None:
            hint = "give its window in tokens"
            raise BadInput(f"the model in {folder} does not say how long a prompt may be", hint=hint)
        return int(longest)
    if longest is not None and asked > longest:
        raise BadInput(f"a window of {asked} tokens is asked for, and the model has {longest}", hint="ask for less")
    return asked


def _kind(folder: Path) -> str:
    return str(read_shape(folder / "config.json")["model_type"])


def _config(folder: Path) -> Any:
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # what a wrong config.json makes the library raise has no end
        raise BadInput(
            f"transformers {transformers.__version__} does not load {folder / 'config.json'}: {error}",
            hint="choose a model whose kind is part of transformers: code that comes with a model is never run",
        ) from error
    # Whatever config.json says: the library chooses a kind of attention that the model supports, with masks that add.
    config._attn_implementation = None  # noqa: SLF001 - the library's place for it
    return config
