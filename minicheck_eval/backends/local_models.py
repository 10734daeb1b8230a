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
    if shape.get("tie_word_embeddings") is False and shape["model_type"] == "t5":
        _check_head(folder)
    return load(model_class, lambda: config_class(**shape), folder, place)


def _check_head(folder: Path) -> None:
    """Refuse a T5 whose own output layer is not in its files; the library would use the embedding in its place."""
    whole = folder / "model.safetensors"
    if whole.is_file():
        with safe_open(whole, framework="pt") as tensors:
            names = set(tensors.keys())
    else:
        names = set(json.loads(Path(f"{whole}.index.json").read_text(encoding="utf-8"))["weight_map"])
    if "lm_head.weight" not in names:
        raise IntegrityError(
            f"{folder} does not hold the tensors of its config.json: it lacks lm_head.weight",
            hint="copy the model anew",
        )
