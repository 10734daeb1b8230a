"""Decide which prompts go through the model together: pure Python, no tensors.

The prompts of a pass form a tree of shared prefixes (system head → document chunk → claim): a node holds the tokens
that all prompts below it share, and is computed once.  A pass keeps to a budget of tokens and has no padding; where a
shared prefix fills the budget, it is stretched, so that the prefix is not computed anew for every prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

__all__ = ["Leaf", "Node", "Pass", "Plan", "TokenPrompt", "plan"]

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, order=True)
class TokenPrompt:
    """A prompt as token ids: what it may share with others, and what is its own."""

    prefix: Ids
    suffix: Ids

    def __len__(self) -> int:
        return len(self.prefix) + len(self.suffix)


@dataclass(frozen=True, slots=True)
class Node:
    """Tokens that follow those of the parent."""

    parent: int
    """The place of the parent in the pass, or -1."""
    depth: int
    """How many tokens stand above: the position of the first token."""
    ids: Ids


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a prompt ends: the last token of a node; a prompt that is asked twice has two places in the input."""

    node: int
    prompts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: nodes in depth-first order, each after its parent and before its parent's next sibling."""

    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]

    @property
    def tokens(self) -> int:
        """Return how many tokens the pass computes."""
        return sum(len(node.ids) for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Plan:
    """All passes, and the prompts that fit into no window."""

    passes: tuple[Pass, ...]
    too_long: tuple[int, ...]
    asked_tokens: int
    """Tokens of all planned prompts, each counted as often as it was asked."""

    @property
    def computed_tokens(self) -> int:
        """Return how many tokens the passes compute."""
        return sum(one.tokens for one in self.passes)


STRETCH = 4
"""Beside a long prefix there is room for a part of the budget, or of the prefix, whichever is more: a fourth."""


def plan(prompts: Sequence[TokenPrompt], *, budget_tokens: int, window_tokens: int, stretched: bool = True) -> Plan:
    """Pack prompts into passes so that each shared token of a pass is computed once.

    The passes depend on which prompts there are, not on their order.  A prompt longer than the budget but within the
    window is in a pass by itself or, `stretched`, with a few that share its prefix; one beyond the window, or without
    tokens, is in no pass.  A budget of one token means that each prompt is alone.
    """
    places: dict[TokenPrompt, list[int]] = defaultdict(list)
    too_long: list[int] = []
    asked = 0
    for i, prompt in enumerate(prompts):
        if 0 < len(prompt) <= window_tokens:
            places[prompt].append(i)
            asked += len(prompt)
        else:
            too_long.append(i)
    # Sorted, prompts that share a prefix are neighbours.
    ordered = [(prompt, tuple(places[prompt])) for prompt in sorted(places)]
    return Plan(tuple(_pack(ordered, budget_tokens, stretched=stretched)), tuple(too_long), asked)


def _pack(
    ordered: Iterable[tuple[TokenPrompt, tuple[int, ...]]], budget_tokens: int, *, stretched: bool
) -> Iterator[Pass]:
    """Fill passes with prompts in the given order."""
    growing = _Growing()
    for prompt, places in ordered:
        shared = growing.shared(prompt)
        room = budget_tokens
        if stretched and budget_tokens > 1 and shared >= len(prompt.prefix):
            room = max(room, shared + max(budget_tokens, shared) // STRETCH)
        if growing.leaves and growing.tokens + len(prompt) - shared > room:
            yield growing.done()
            growing, shared = _Growing(), 0
        growing.add(prompt, places, shared)
    if growing.leaves:
        yield growing.done()


@dataclass(slots=True)
class _Growing:
    """A pass that is being filled; `path` leads from the root to the end of the last prompt."""

    nodes: list[Node] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    last: TokenPrompt | None = None
    tokens: int = 0

    def shared(self, prompt: TokenPrompt) -> int:
        """Return how many first tokens the prompt shares with the last one."""
        if self.last is None:
            return 0
        # Neighbours mostly have the same prefix, and comparing that again token by token would be most of the work.
        if prompt.prefix == self.last.prefix:
            return len(prompt.prefix) + _common(prompt.suffix, self.last.suffix)
        return _common(prompt.prefix + prompt.suffix, self.last.prefix + self.last.suffix)

    def add(self, prompt: TokenPrompt, places: tuple[int, ...], shared: int) -> None:
        parent = self._end_path_at(shared)
        for start, ids in ((0, prompt.prefix), (len(prompt.prefix), prompt.suffix)):
            own = ids[max(0, shared - start) :]
            if own:
                # The prefix gets a node of its own: that is where the next prompt will branch off.
                depth = start + len(ids) - len(own)
                self.nodes.append(Node(parent, depth, own))
                parent = len(self.nodes) - 1
                self.path.append(parent)
                self.tokens += len(own)
        self.leaves.append(Leaf(parent, places))
        self.last = prompt

    def _end_path_at(self, shared: int) -> int:
        """Leave the path after `shared` tokens, cutting a node in two where that is inside it; return the last node."""
        while self.path and self.nodes[self.path[-1]].depth >= shared:
            self.path.pop()
        if not self.path:
            return -1
        last = self.path[-1]
        node = self.nodes[last]
        if node.depth + len(node.ids) > shared:
            self._cut(last, shared - node.depth)
        return last

    def _cut(self, place: int, length: int) -> None:
        """Cut a node after `length` tokens; what stood below it stands below the new, lower part."""
        node = self.nodes[place]
        lower = place + 1
        self.nodes[place] = Node(node.parent, node.depth, node.ids[:length])
        below = [
            Node(lower if n.parent == place else n.parent + 1 if n.parent > place else n.parent, n.depth, n.ids)
            for n in self.nodes[lower:]
        ]
        self.nodes[lower:] = [Node(place, node.depth + length, node.ids[length:]), *below]
        self.leaves = [Leaf(leaf.node + (leaf.node >= place), leaf.prompts) for leaf in self.leaves]

    def done(self) -> Pass:
        return Pass(tuple(self.nodes), tuple(self.leaves))


def _common(one: Ids, other: Ids) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
