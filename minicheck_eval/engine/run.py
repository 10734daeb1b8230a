"""Carry out a pass with a causal model of transformers: pack the tree, run once, compute logits at the leaves only."""

from __future__ import annotations

from typing import Any

import torch

from minicheck_eval.engine.attention import AttentionKind, prepare_attention, tree_mask
from minicheck_eval.engine.layout import Layout, lay_out
from minicheck_eval.engine.llama import PackedLlama, pad_rows
from minicheck_eval.engine.plan import Pass

__all__ = ["TreeModel", "packs"]

PACKING = frozenset(
    ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "granite", "olmo2", "smollm3")
)
"""The kinds of model for which a test shows that packed scores are those of each prompt alone."""

ROPES_BY_LENGTH = ("dynamic", "longrope")
"""Rotary embeddings that depend on the longest prompt of a pass."""


def packs(config: Any) -> bool:
    """Tell whether prompts may share a pass, as far as it is known: of other models each goes alone."""
    ropes = getattr(config, "rope_parameters", None) or {}
    # Some models have one entry for each kind of layer.
    kinds = [rope.get("rope_type") for rope in (ropes, *ropes.values()) if isinstance(rope, dict)]
    return config.model_type in PACKING and not any(kind in ROPES_BY_LENGTH for kind in kinds)


class TreeModel:
    """A causal model of transformers that runs trees of prompts.

    A plain Llama on one device runs packed, with the chosen kind of attention; any other model runs as transformers
    runs it: a prompt alone as it is, several, where `packs` allows it, under the mask of the tree.
    """

    def __init__(self, model: Any, attention: AttentionKind = "segments") -> None:
        self._model = model
        self._attention = attention
        self._packed = PackedLlama(model.model) if PackedLlama.fits(getattr(model, "model", None)) else None
        self._device = model.get_input_embeddings().weight.device

    def logits(self, one: Pass) -> torch.Tensor:
        """Return the logits of the next token at each leaf: [leaves, vocabulary], in float32."""
        layout = lay_out(one)
        ids = self._tensor([i for node in one.nodes for i in node.ids])
        # The position of a token is its depth in the tree.
        positions = self._tensor([p for node in one.nodes for p in range(node.depth, node.depth + len(node.ids))])
        leaves = self._tensor([layout.ranges[leaf.node][1] - 1 for leaf in one.leaves])
        with torch.inference_mode():
            if self._packed is not None:
                attend = prepare_attention(self._attention, layout, self._device)
                hidden = self._packed(ids, positions, attend, leaves)
                logits: torch.Tensor = self._model.lm_head(pad_rows(hidden))[: len(leaves)]
            elif len(leaves) == 1:
                logits = self._model(input_ids=ids[None], use_cache=False, **self._keep(1)).logits[0, -1:]
            else:
                logits = self._generic(layout, ids, positions, leaves)
            return logits.float()

    def _generic(self, layout: Layout, ids: torch.Tensor, positions: torch.Tensor, leaves: torch.Tensor) -> Any:
        # Without use_cache=False transformers would not take the positions and the mask for a packed sequence.
        found = self._model(
            input_ids=ids[None],
            attention_mask=self._masks(layout, positions),
            position_ids=positions[None],
            use_cache=False,
            **self._keep(leaves),
        )
        return found.logits[0]

    def _masks(self, layout: Layout, positions: torch.Tensor) -> Any:
        """Return the mask of all layers, or one for each kind of layer; a sliding window looks back along the path."""
        config = self._model.config
        seen = tree_mask(layout, (0, len(positions)), self._device)  # [tokens, tokens]
        sliding = getattr(config, "sliding_window", None)
        kinds = set(getattr(config, "layer_types", None) or [])
        if sliding is None or kinds == {"full_attention"}:
            return self._added(seen)
        near = seen & (positions[:, None] - positions[None, :] < sliding)
        if not kinds:
            return self._added(near)
        return {"full_attention": self._added(seen), "sliding_attention": self._added(near)}

    def _added(self, mask: torch.Tensor) -> torch.Tensor:
        """Return a mask that can be added to scores: every kind of attention of transformers understands it."""
        least = torch.finfo(self._model.dtype).min
        added = torch.zeros(mask.shape, dtype=self._model.dtype, device=mask.device)
        return added.masked_fill_(~mask, least)[None, None]  # [1, 1, tokens, tokens]

    def _keep(self, leaves: torch.Tensor | int) -> dict[str, Any]:
        """Ask for the logits of some tokens only, where the model can: those of all would be most of the memory."""
        return {"logits_to_keep": leaves} if self._model._supports_logits_to_keep() else {}  # noqa: SLF001 - it has no public name

    def _tensor(self, values: list[int]) -> torch.Tensor:
        return torch.tensor(values, device=self._device)
