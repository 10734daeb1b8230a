"""Loads causal models of the Llama shape from a local directory: Llama, and InternLM2, which is Llama by other names.

InternLM2's tensors are renamed, and its joint query-key-value tensor is split, while they are read; its own model code
is never run, and nothing is converted on disk.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Unpack

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.conversion_mapping import register_checkpoint_conversion_mapping
from transformers.core_model_loading import ConversionOps, WeightConverter, WeightRenaming

from minicheck_eval.backends.local_placement import Place, load

__all__ = ["load_llama"]


class _SplitJointAttention(ConversionOps):
    """Splits InternLM2's `wqkv`: for each key-value head its query heads, one key head, one value head."""

    def convert(
        self,
        input_dict: dict[str, Any],
        source_patterns: list[str],  # noqa: ARG002 - the library's signature
        target_patterns: list[str],
        **kwargs: Any,
    ) -> dict[str, list[torch.Tensor]]:
        """Return one tensor for each target."""
        config = kwargs["config"]
        (joint,) = input_dict.values()
        joint = joint[0] if isinstance(joint, list) else joint
        hidden, kv_heads = config.hidden_size, config.num_key_value_heads
        head = hidden // config.num_attention_heads
        groups = config.num_attention_heads // kv_heads
        # [kv heads, query heads of each + key + value, head size, hidden]
        parts = joint.view(kv_heads, groups + 2, head, hidden)
        split = (parts[:, :groups], parts[:, groups], parts[:, groups + 1])
        tensors = [part.reshape(-1, hidden).contiguous() for part in split]
        return {name: [tensor] for name, tensor in zip(target_patterns, tensors, strict=True)}

    @property
    def reverse_op(self) -> ConversionOps:
        """Refuse: nothing is saved in InternLM2's format."""
        raise NotImplementedError


class InternLM2AsLlamaForCausalLM(LlamaForCausalLM):  # type: ignore[no-untyped-call]
    """A class of its own, because tensor names are mapped by class name."""


def _register() -> None:
    attention = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
    renamed = {
        "model.tok_embeddings": "model.embed_tokens",
        r"^output.weight": "lm_head.weight",
        "attention.wo": "self_attn.o_proj",
        "feed_forward.w1": "mlp.gate_proj",
        "feed_forward.w2": "mlp.down_proj",
        "feed_forward.w3": "mlp.up_proj",
        "attention_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
    }
    register_checkpoint_conversion_mapping(
        InternLM2AsLlamaForCausalLM.__name__,
        [
            *(WeightRenaming(old, new) for old, new in renamed.items()),
            WeightConverter("attention.wqkv", attention, operations=[_SplitJointAttention()]),
        ],
        overwrite=True,
    )


def load_llama(folder: Path, *, rope_theta: float | None = None, **place: Unpack[Place]) -> Any:
    """Return the model in evaluation mode; `rope_theta` replaces the rotary base of its config.json."""
    shape = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    internlm2 = shape["model_type"] == "internlm2"
    if internlm2:
        _register()

    def config() -> LlamaConfig:
        made = _llama_config(shape) if internlm2 else LlamaConfig(**shape)
        # Whatever config.json says: eager attention adds its mask, and one of truth values would hide nothing.
        made._attn_implementation = "sdpa"  # noqa: SLF001 - the library's place for it
        if rope_theta is not None:
            made.rope_parameters = {"rope_type": "default", "rope_theta": rope_theta}
        return made

    return load(InternLM2AsLlamaForCausalLM if internlm2 else LlamaForCausalLM, config, folder, place)


def _llama_config(shape: dict[str, Any]) -> LlamaConfig:
    """Write InternLM2's configuration as Llama's.

    Its "dynamic" rotary scaling does nothing up to the window, where judges stay, so the plain base is used.
    """
    names = (
        "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "hidden_act", "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings",
        "bos_token_id", "eos_token_id", "pad_token_id",
    )  # fmt: skip
    rope = {"rope_type": "default", "rope_theta": float(shape["rope_theta"])}
    bias = bool(shape["bias"])
    return LlamaConfig(
        **{name: shape[name] for name in names}, rope_parameters=rope, attention_bias=bias, mlp_bias=bias
    )
