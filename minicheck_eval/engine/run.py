"""Carry out a pass with a causal model of transformers: pack the tree, run once, read the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from minicheck_eval.engine.plan import Pass

__all__ = ["LeafScores", "run_pass"]


@dataclass(frozen=True, slots=True)
class LeafScores:
    """What was read at the leaves of a pass, in their order."""

    yes: list[float]
    no: list[float]
    top: list[int]


@dataclass(frozen=True, slots=True)
class _Packed:
    ids: torch.Tensor  # [1, tokens]
    positions: torch.Tensor  # [1, tokens]: depth in the tree
    mask: torch.Tensor  # [1, 1, tokens, tokens]: True where a query (row) sees a key (column)
    leaves: torch.Tensor  # [leaves]: the token that ends each prompt


def _pack(one: Pass, device: torch.device) -> _Packed:
    # In depth-first order the descendants of a node are the nodes from itself to just before `behind`.
    behind = [i + 1 for i in range(len(one.nodes))]
    for i in reversed(range(len(one.nodes))):
        if (parent := one.nodes[i].parent) >= 0:
            behind[parent] = max(behind[parent], behind[i])
    ids: list[int] = []
    positions: list[int] = []
    node_of: list[int] = []
    behind_of: list[int] = []
    ends: list[int] = []
    for i, node in enumerate(one.nodes):
        ids += node.ids
        positions += range(node.depth, node.depth + len(node.ids))
        node_of += [i] * len(node.ids)
        behind_of += [behind[i]] * len(node.ids)
        ends.append(len(ids) - 1)
    query = torch.tensor(node_of, device=device)[:, None]  # [tokens, 1]
    key, key_behind = query.T, torch.tensor(behind_of, device=device)[None, :]  # [1, tokens]
    earlier = torch.ones(len(ids), len(ids), dtype=torch.bool, device=device).tril()
    return _Packed(
        torch.tensor([ids], device=device),
        torch.tensor([positions], device=device),
        ((key <= query) & (query < key_behind) & earlier)[None, None],
        torch.tensor([ends[leaf.node] for leaf in one.leaves], device=device),
    )


def run_pass(model: Any, one: Pass, *, yes_ids: torch.Tensor, no_ids: torch.Tensor) -> LeafScores:
    """Run one pass and read P(yes), P(no) and the top token at each leaf, from the softmax over the full vocabulary.

    `model` is a causal model of transformers that takes 4-D masks and position ids; `use_cache=False` is needed for
    exact packing.
    """
    with torch.inference_mode():
        packed = _pack(one, yes_ids.device)
        hidden = model.model(
            input_ids=packed.ids, attention_mask=packed.mask, position_ids=packed.positions, use_cache=False
        ).last_hidden_state  # [1, tokens, width]
        logits = model.lm_head(hidden[0, packed.leaves]).float()  # [leaves, vocabulary]
        probabilities = logits.softmax(-1)
        return LeafScores(
            probabilities[:, yes_ids].sum(-1).tolist(),
            probabilities[:, no_ids].sum(-1).tolist(),
            logits.argmax(-1).tolist(),
        )
