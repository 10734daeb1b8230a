"""Loads the encoders of the MiniCheck family from a local directory: T5, RoBERTa and DeBERTa."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Unpack

from safetensors import safe_open
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

from minicheck_eval.backends.local_placement import Place, load
from minicheck_eval.errors import IntegrityError

__all__ = ["load_encoder"]

CLASSES: dict[str, tuple[Any, Any]] = {
    "t5": (T5Config, T5ForConditionalGeneration),
    "roberta": (RobertaConfig, RobertaForSequenceClassification),
    "deberta-v2": (DebertaV2Config, DebertaV2ForSequenceClassification),
}


def load_encoder(folder: Path, **place: Unpack[Place]) -> Any:
    """Return the model in evaluation mode."""
    shape = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config_class, model_class = CLASSES[shape["model_type"]]
    if shape["model_type"] == "t5":
        _check_embeddings(folder, tied=shape.get("tie_word_embeddings") is not False)
    return load(model_class, lambda: config_class(**shape), folder, place)


def _check_embeddings(folder: Path, *, tied: bool) -> None:
    """Refuse a T5 without its own embedding or output layer; the library would use the one in place of the other."""
    whole = folder / "model.safetensors"
    if whole.is_file():
        with safe_open(whole, framework="pt") as tensors:
            names = set(tensors.keys())
    else:
        names = set(json.loads(Path(f"{whole}.index.json").read_text(encoding="utf-8"))["weight_map"])
    embeddings = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    if tied:
        embeddings.add("lm_head.weight")
    missing = [] if names & embeddings else ["shared.weight"]
    missing += [] if tied or "lm_head.weight" in names else ["lm_head.weight"]
    if missing:
        raise IntegrityError(
            f"{folder} does not hold the tensors of its config.json: it lacks {' and '.join(missing)}",
            hint="copy the model anew",
        )
