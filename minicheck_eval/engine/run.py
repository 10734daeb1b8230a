"""Carry out a pass with a causal model of transformers: pack the tree, run once, compute logits at the leaves only."""

from __future__ import annotations

from typing import Any

import torch

from minicheck_eval.engine.attention import AttentionKind, prepare_attention, tree_mask
from minicheck_eval.engine.layout import Layout, lay_out
from minicheck_eval.engine.llama import PackedLlama
from minicheck_eval.engine.plan import Pass

__all__ = ["TreeModel"]


class TreeModel:
    """A causal model of transformers that runs trees of prompts.

    A plain Llama on one device runs packed, with the chosen kind of attention; any other model that takes 4-D masks and
    position ids runs as transformers runs it, under the mask of the tree.
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
                logits: torch.Tensor = self._model.lm_head(self._packed(ids, positions, attend, leaves))
            else:
                logits = self._generic(layout, ids, positions, leaves)
            return logits.float()

    def _generic(self, layout: Layout, ids: torch.Tensor, positions: torch.Tensor, leaves: torch.Tensor) -> Any:
        mask = tree_mask(layout, (0, len(ids)), self._device)
        # Without use_cache=False transformers would not take the positions and the mask for a packed sequence.
        found = self._model(
            input_ids=ids[None],
            attention_mask=mask[None, None],
            position_ids=positions[None],
            use_cache=False,
            logits_to_keep=leaves,
        )
        return found.logits[0]

    def _tensor(self, values: list[int]) -> torch.Tensor:
        return torch.tensor(values, device=self._device)
