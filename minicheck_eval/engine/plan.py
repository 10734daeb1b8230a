"""Decide which prompts go through the model together: pure Python, no tensors.

Prompts with the same prefix form a tree: the prefix is the trunk and is computed once; each suffix is a leaf branch
that sees the trunk and itself.  Trees are packed into passes of a token budget, without padding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Branch", "Pass", "Plan", "TokenPrompt", "Tree", "plan"]

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """A prompt as token ids; the suffix has at least one token."""

    prefix: Ids
    suffix: Ids

    def __len__(self) -> int:
        return len(self.prefix) + len(self.suffix)


@dataclass(frozen=True, slots=True)
class Branch:
    """One suffix, and the places in the input that ask for it: a prompt asked twice is computed once."""

    ids: Ids
    prompts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """One shared prefix and its branches."""

    trunk: Ids
    branches: tuple[Branch, ...]

    @property
    def tokens(self) -> int:
        """Return how many tokens the tree computes."""
        return len(self.trunk) + sum(len(branch.ids) for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Pass:
    """The trees of one forward pass."""

    trees: tuple[Tree, ...]

    @property
    def tokens(self) -> int:
        """Return how many tokens the pass computes."""
        return sum(tree.tokens for tree in self.trees)


@dataclass(frozen=True, slots=True)
class Plan:
    """All passes, and the prompts that fit into no window."""

    passes: tuple[Pass, ...]
    too_long: tuple[int, ...]
    asked_tokens: int
    """Tokens of all prompts, each counted as often as it was asked."""

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens the passes compute."""
        return sum(one.tokens for one in self.passes)


def plan(prompts: Sequence[TokenPrompt], *, budget_tokens: int, window_tokens: int) -> Plan:
    """Group prompts by prefix and pack them.

    The passes depend on which prompts there are, not on their order.  A prompt longer than the budget but within the
    window gets a pass of its own; one beyond the window is in no pass.
    """
    too_long = tuple(i for i, prompt in enumerate(prompts) if len(prompt) > window_tokens)
    left_out = set(too_long)
    trees: dict[Ids, dict[Ids, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, prompt in enumerate(prompts):
        if i not in left_out:
            trees[prompt.prefix][prompt.suffix].append(i)
    ordered = sorted(trees.items(), key=lambda item: (len(item[0]), item[0]))
    pieces = (
        piece
        for trunk, leaves in ordered
        for piece in _pieces(trunk, [Branch(ids, tuple(leaves[ids])) for ids in sorted(leaves)], budget_tokens)
    )
    asked = sum(len(prompt) for i, prompt in enumerate(prompts) if i not in left_out)
    return Plan(tuple(_pack(pieces, budget_tokens)), too_long, asked)


def _pieces(trunk: Ids, branches: Iterable[Branch], budget_tokens: int) -> Iterator[Tree]:
    """Cut a tree whose branches exceed the budget into several with the same trunk."""
    taken: list[Branch] = []
    size = len(trunk)
    for branch in branches:
        if taken and size + len(branch.ids) > budget_tokens:
            yield Tree(trunk, tuple(taken))
            taken, size = [], len(trunk)
        taken.append(branch)
        size += len(branch.ids)
    yield Tree(trunk, tuple(taken))


def _pack(trees: Iterable[Tree], budget_tokens: int) -> Iterator[Pass]:
    """Fill passes with trees in the given order."""
    taken: list[Tree] = []
    size = 0
    for tree in trees:
        if taken and size + tree.tokens > budget_tokens:
            yield Pass(tuple(taken))
            taken, size = [], 0
        taken.append(tree)
        size += tree.tokens
    if taken:
        yield Pass(tuple(taken))
