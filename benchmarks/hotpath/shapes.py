"""Shapes of models, and how much arithmetic a workload needs at least on one of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicheck_eval.engine.plan import TokenPrompt, plan

__all__ = ["SHAPES", "Shape", "Work", "read_shape", "unique_work"]


@dataclass(frozen=True, slots=True)
class Shape:
    """A causal model of the Llama kind."""

    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    rope_base: float
    tied: bool
    window: int = 32768

    @property
    def block_parameters(self) -> int:
        """Return how many weights each token is multiplied with: all matrices but embedding and head."""
        attention = self.width * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.width * self.inner)

    def kv_bytes_per_token(self, number_bytes: int) -> int:
        """Return how much a cache keeps of each token."""
        return 2 * self.layers * self.kv_heads * self.head_size * number_bytes

    def matrices(self) -> list[tuple[int, int]]:
        """Return the distinct (outputs, inputs) of a block's products."""
        query, key = self.heads * self.head_size, self.kv_heads * self.head_size
        sizes = [(query, self.width), (key, self.width), (self.width, query)]
        return list(dict.fromkeys([*sizes, (self.inner, self.width), (self.width, self.inner)]))


SHAPES = {
    "tiny": Shape(49152, 64, 128, 2, 2, 1, 32, 1e5, tied=True),
    "smollm2-135m": Shape(49152, 576, 1536, 30, 9, 3, 64, 1e5, tied=True, window=8192),
    "bespoke-7b": Shape(92550, 4096, 14336, 32, 32, 8, 128, 1e6, tied=False),
}


def read_shape(folder: Path) -> Shape:
    """Read the shape of a model on disk from its config.json."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    width, heads = config["hidden_size"], config["num_attention_heads"]
    base = (config.get("rope_parameters") or config).get("rope_theta", 1e4)
    return Shape(
        vocabulary=config["vocab_size"],
        width=width,
        inner=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config["num_key_value_heads"],
        head_size=config.get("head_dim") or width // heads,
        rope_base=float(base),
        tied=bool(config.get("tie_word_embeddings")),
        window=config["max_position_embeddings"],
    )


@dataclass(frozen=True, slots=True)
class Work:
    """What a set of prompts takes at least, each shared token computed once over the whole set."""

    asked_tokens: int
    unique_tokens: int
    pairs: int
    """How many (token, token it attends to) there are: itself and all above it in the tree."""
    leaves: int

    def flops(self, shape: Shape) -> int:
        """Return the operations: products of the blocks, of scores and values, and of the head at leaves."""
        blocks = 2 * shape.block_parameters * self.unique_tokens
        attention = 2 * 2 * shape.layers * shape.heads * shape.head_size * self.pairs
        return blocks + attention + 2 * shape.vocabulary * shape.width * self.leaves


def unique_work(prompts: Sequence[TokenPrompt]) -> Work:
    """Count over the tree of all prompts, as if one pass could hold it."""
    asked = sum(map(len, prompts))
    tree = plan(prompts, budget_tokens=max(1, asked), window_tokens=max(map(len, prompts), default=1))
    tokens = pairs = leaves = 0
    for one in tree.passes:
        tokens += one.tokens
        leaves += len(one.leaves)
        for node in one.nodes:
            first, last = node.depth + 1, node.depth + len(node.ids)
            pairs += (first + last) * len(node.ids) // 2
    return Work(asked, tokens, pairs, leaves)
