"""Models: read from a folder, or of a named shape with random weights; the same seed gives the same weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from hotpath.settings import Settings
from hotpath.shapes import SHAPES, Shape

__all__ = ["load", "random_model", "spread_labels"]

LABEL_SCALE = 8.0
"""How much longer the labels' rows of the head are, so that P(yes) of random weights is not always next to 0."""


def load(settings: Settings) -> Any:
    """Return the model on its device."""
    dtype, device = getattr(torch, settings.dtype), torch.device(settings.device)
    if settings.model:
        model: Any = AutoModelForCausalLM.from_pretrained(settings.model, dtype=dtype, local_files_only=True)
        return model.to(device).eval()
    model = random_model(SHAPES[str(settings.shape)], dtype, device, seed=settings.seed)
    spread_labels(model, (settings.yes, settings.no), settings.probe)
    return model


def random_model(shape: Shape, dtype: torch.dtype, device: torch.device, *, seed: int) -> Any:
    """Make a model with weights from a normal distribution that keeps the size of activations."""
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        max_position_embeddings=shape.window,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
        tie_word_embeddings=shape.tied,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model: Any = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, weight.shape[1] ** -0.5)
    return model.eval()


@torch.inference_mode()
def spread_labels(model: Any, labels: Sequence[int], probe: Sequence[int]) -> None:
    """Turn and lengthen the labels' rows of the head, so that their logits are among the largest after `probe`."""
    hidden = model.model(torch.tensor([probe], device=model.device), use_cache=False).last_hidden_state[0, -1]
    for label in labels:
        row = model.lm_head.weight[label]
        row *= LABEL_SCALE if float(hidden @ row) > 0 else -LABEL_SCALE


def main() -> None:
    """Write a model with random weights into a folder, for engines that read only files: SETTINGS FOLDER."""
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    load(settings).save_pretrained(sys.argv[2])


if __name__ == "__main__":
    main()
