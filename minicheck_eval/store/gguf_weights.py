"""Puts a judge together: dense tensors from a GGUF file of the llama architecture, plus the judge's adapter.

The arithmetic is NumPy's, so that this needs no torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from minicheck_eval.errors import IntegrityError

__all__ = ["merge"]

Array = npt.NDArray[np.float32]

_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


def merge(gguf_file: Path, adapter: Path, target: Path, *, heads: int, kv_heads: int) -> None:
    """Write base + B·A (arXiv 2106.09685) as float16 safetensors under the names of transformers' Llama."""
    changes = load_file(adapter)
    merged: dict[str, npt.NDArray[np.float16]] = {}
    for name, dense in _dense_tensors(gguf_file, heads, kv_heads):
        stem = name.removesuffix(".weight")
        a, b = changes.pop(f"{stem}.lora_a", None), changes.pop(f"{stem}.lora_b", None)
        if a is not None and b is not None:
            dense = dense + b.astype(np.float32) @ a.astype(np.float32)  # noqa: PLW2901 - one tensor in memory at a time
        merged[name] = dense.astype(np.float16)
    if changes:
        raise IntegrityError(f"{adapter} changes tensors that {gguf_file} does not have: {sorted(changes)[:3]}")
    save_file(merged, target, metadata={"format": "pt"})


def _dense_tensors(gguf_file: Path, heads: int, kv_heads: int) -> Iterator[tuple[str, Array]]:
    from gguf import GGUFReader
    from gguf.quants import dequantize

    for tensor in GGUFReader(gguf_file).tensors:
        layer = re.match(r"blk\.(\d+)\.(.+)", tensor.name)
        plain = layer[2] if layer else tensor.name
        if plain not in _NAMES:
            raise IntegrityError(f"{gguf_file} has a tensor {tensor.name!r}, which the llama architecture does not")
        dense = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        if plain in ("attn_q.weight", "attn_k.weight"):
            dense = _unpermute(dense, heads if plain == "attn_q.weight" else kv_heads)
        yield (f"model.layers.{layer[1]}." if layer else "") + _NAMES[plain], dense


def _unpermute(weight: Any, heads: int) -> Array:
    """Undo the row order that GGUF uses for its rotary embedding: pairs side by side become halves."""
    rows, columns = weight.shape
    paired = weight.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(rows, columns))
