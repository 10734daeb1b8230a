"""The forward pass of Llama over packed tokens: no batch, no padding, no cache, and logits for the leaves only.

The same arithmetic as transformers' LlamaModel, in its order and with its weights; joined projections and rows taken in
tiles that stay in the processor's cache make it faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear, pad, silu
from transformers import LlamaModel

from minicheck_eval.engine.attention import Attend

__all__ = ["PackedLlama", "pad_rows"]

ROW_STEP = 32
"""On a CPU rows of 16-bit products come in multiples of this: its library keeps about a megabyte of code and
buffers for each number of rows that it has met."""


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: torch.Tensor  # [out, in]
    bias: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class _Layer:
    input_norm: torch.Tensor
    qkv: _Linear
    out: _Linear
    mlp_norm: torch.Tensor
    gate: _Linear
    up: _Linear
    down: _Linear


class PackedLlama:
    """Runs a LlamaModel of transformers; `PackedLlama.fits(model)` tells whether it can."""

    def __init__(self, model: Any) -> None:
        config = model.config
        self._rotary = model.rotary_emb
        self._embed = model.embed_tokens.weight
        self._norm = model.norm.weight
        self._eps = config.rms_norm_eps
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._head = model.layers[0].self_attn.head_dim
        self._rows = 512 if self._embed.device.type == "cpu" else 1 << 30
        self._layers = [_read(layer) for layer in model.layers]

    @staticmethod
    def fits(model: Any) -> bool:
        """Tell whether the model is a plain Llama: unquantised, and on one device."""
        plain = type(model) is LlamaModel and model.config.hidden_act == "silu"
        return (
            plain
            and len({parameter.device for parameter in model.parameters()}) == 1
            and not any(
                type(module) is not torch.nn.Linear for name, module in model.named_modules() if name.endswith("_proj")
            )
        )

    def __call__(
        self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend, leaves: torch.Tensor
    ) -> torch.Tensor:
        """Return the last hidden states at `leaves`: [leaves, hidden]; ids and positions are [tokens]."""
        x = self._embed[ids]  # [tokens, hidden]
        cos, sin = (part[0][:, None] for part in self._rotary(x[None], positions[None]))  # [tokens, 1, head]
        for layer in self._layers:
            attended = self._attention(layer, x, cos, sin, attend)
            if layer is self._layers[-1]:
                x, attended = x[leaves], attended[leaves]
            for start in range(0, len(x), self._rows):
                self._rest(layer, x[start : start + self._rows], attended[start : start + self._rows])
        return _rms_norm(x, self._norm, self._eps)

    def _attention(
        self, layer: _Layer, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, attend: Attend
    ) -> torch.Tensor:
        heads, kv_heads = self._heads, self._kv_heads
        joint = x.new_empty(len(x), heads + 2 * kv_heads, self._head)
        for start in range(0, len(x), self._rows):
            rows = slice(start, start + self._rows)
            normed = _rms_norm(x[rows], layer.input_norm, self._eps)
            part = _project(normed, layer.qkv).view(-1, *joint.shape[1:])
            joint[rows, heads + kv_heads :] = part[:, heads + kv_heads :]
            _rotate(part[:, : heads + kv_heads], cos[rows], sin[rows], out=joint[rows, : heads + kv_heads])
        by_head = joint.transpose(0, 1)  # [heads, tokens, head]
        q, k = by_head[:heads], by_head[heads : heads + kv_heads]
        return attend(q, k, by_head[heads + kv_heads :]).transpose(0, 1).reshape(len(x), -1)

    def _rest(self, layer: _Layer, x: torch.Tensor, attended: torch.Tensor) -> None:
        """Add what attention and the feed-forward part give to `x`, in place."""
        x += _project(attended, layer.out)
        normed = _rms_norm(x, layer.mlp_norm, self._eps)
        gate = silu(_project(normed, layer.gate), inplace=True)
        gate *= _project(normed, layer.up)
        x += _project(gate, layer.down)


def pad_rows(x: torch.Tensor) -> torch.Tensor:
    """Return the rows of a product, [rows, width], with as many empty ones after them as `ROW_STEP` asks for."""
    missing = -len(x) % ROW_STEP if x.dtype != torch.float32 and x.device.type == "cpu" else 0
    return pad(x, (0, 0, 0, missing)) if missing else x


def _read(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    qkv = _join([attention.q_proj, attention.k_proj, attention.v_proj])
    out, gate, up, down = (
        _Linear(m.weight, m.bias) for m in (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
    )
    return _Layer(layer.input_layernorm.weight, qkv, out, layer.post_attention_layernorm.weight, gate, up, down)


def _join(modules: list[Any]) -> _Linear:
    """Join projections; the modules keep views of the joint weight, so that nothing is held twice."""
    weight = torch.cat([module.weight for module in modules])
    bias = None if modules[0].bias is None else torch.cat([module.bias for module in modules])
    start = 0
    for module in modules:
        end = start + len(module.weight)
        module.weight.data = weight[start:end]
        if bias is not None:
            module.bias.data = bias[start:end]
        start = end
    return _Linear(weight, bias)


def _project(x: torch.Tensor, to: _Linear) -> torch.Tensor:
    return linear(pad_rows(x), to.weight, to.bias)[: len(x)]


def _rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale).to(x.dtype) * weight


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *, out: torch.Tensor) -> None:
    """Rotate the two halves of each head by the token's position (rotary embedding, arXiv 2104.09864)."""
    half = x.shape[-1] // 2
    low, high = x[..., :half], x[..., half:]
    torch.mul(low, cos[..., :half], out=out[..., :half]).addcmul_(high, sin[..., :half], value=-1)
    torch.mul(high, cos[..., half:], out=out[..., half:]).addcmul_(low, sin[..., half:])
