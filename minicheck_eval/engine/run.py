"""Carry out a pass with a causal model of transformers: pack the trees, run once, read the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from minicheck_eval.engine.plan import Pass

__all__ = ["LeafScores", "run_pass"]


@dataclass(frozen=True, slots=True)
class LeafScores:
    """What was read at the leaves of a pass, in the order of its branches."""

    yes: list[float]
    no: list[float]
    top: list[int]


@dataclass(frozen=True, slots=True)
class _Packed:
    ids: torch.Tensor  # [1, tokens]
    positions: torch.Tensor  # [1, tokens]: depth in the tree
    mask: torch.Tensor  # [1, 1, tokens, tokens]: True where a query (row) sees a key (column)
    leaves: torch.Tensor  # [leaves]: where each branch ends


def _pack(one: Pass, device: torch.device) -> _Packed:
    ids: list[int] = []
    positions: list[int] = []
    tree: list[int] = []
    branch: list[int] = []  # 0 on a trunk, k on its k-th branch
    leaves: list[int] = []
    for number, item in enumerate(one.trees):
        parts = [item.trunk, *(b.ids for b in item.branches)]
        for k, part in enumerate(parts):
            start = len(item.trunk) if k else 0
            ids += part
            positions += range(start, start + len(part))
            tree += [number] * len(part)
            branch += [k] * len(part)
            if k:
                leaves.append(len(ids) - 1)
    trees = torch.tensor(tree, device=device)
    branches = torch.tensor(branch, device=device)
    same_tree = trees[:, None] == trees[None, :]
    ancestor = (branches[None, :] == 0) | (branches[None, :] == branches[:, None])
    earlier = torch.ones(len(ids), len(ids), dtype=torch.bool, device=device).tril()
    return _Packed(
        torch.tensor([ids], device=device),
        torch.tensor([positions], device=device),
        (same_tree & ancestor & earlier)[None, None],
        torch.tensor(leaves, device=device),
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
