"""Attention over the tree with FlashAttention's kernels for sequences of different lengths, as PyTorch carries them.

Two calls: what stands above a group of short nodes, and what stands inside it; the two parts are merged by their
log-sum-exp (Hydragen, arXiv 2402.05099).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from minicheck_eval.engine.layout import Layout, Range

__all__ = ["sequences", "varlen"]

Kernel = Callable[..., tuple[torch.Tensor, torch.Tensor]]


class _Sequence(NamedTuple):
    queries: Range
    keys: tuple[Range, ...]


def sequences(layout: Layout) -> tuple[list[_Sequence], list[_Sequence]]:
    """Return the causal sequences, which have every token as a query once, and those that see all of their keys.

    The last query of a causal sequence sees all of its keys, the one before it all but one.
    """
    causal: list[_Sequence] = []
    full: list[_Sequence] = []
    nodes = list(zip(layout.ranges, layout.ends, strict=True))
    place = 0
    for segment in layout.segments:
        inside = []
        while place < len(nodes) and nodes[place][0][0] < segment.queries[1]:
            inside.append(nodes[place])
            place += 1
        if segment.is_chain:
            causal.append(_Sequence(segment.queries, (*segment.above, segment.queries)))
            continue
        if segment.above:
            full.append(_Sequence(segment.queries, segment.above))
        path: list[tuple[Range, int]] = []
        for node, end in inside:
            path = [(above, stop) for above, stop in path if stop > node[0]]
            path.append((node, end))
            causal.append(_Sequence(node, tuple(above for above, _ in path)))
    return causal, full


def varlen(
    layout: Layout, device: torch.device, kernel: Kernel | None = None
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the attention of one pass; `kernel` stands in for PyTorch's on a device that has none."""
    causal, full = sequences(layout)
    inner, outer = _Call(causal, device, (-1, 0)), _Call(full, device, (-1, -1)) if full else None
    run = kernel or _flash

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)  # [tokens, heads, head size]
        found, inner_sum = inner(run, q, k, v)
        if outer is not None:
            above, outer_sum = outer(run, q, k, v)
            share = torch.sigmoid(outer_sum - inner_sum[outer.queries])[..., None]  # [tokens, heads, 1]
            rows = found[outer.queries].float()
            found[outer.queries] = torch.lerp(rows, above.float(), share).to(found.dtype)
        return found.transpose(0, 1)

    return attend


class _Call:
    """One call of the kernel."""

    def __init__(self, asked: Sequence[_Sequence], device: torch.device, window: tuple[int, int]) -> None:
        self.queries = _places([one.queries for one in asked], device)
        self._keys = _places([part for one in asked for part in one.keys], device)
        queries = [one.queries[1] - one.queries[0] for one in asked]
        keys = [sum(end - start for start, end in one.keys) for one in asked]
        until = [torch.tensor([0, *accumulate(sizes)], dtype=torch.int32, device=device) for sizes in (queries, keys)]
        self._shape = {
            "queries_until": until[0],
            "keys_until": until[1],
            "most_queries": max(queries),
            "most_keys": max(keys),
            "window": window,
        }

    def __call__(
        self, run: Kernel, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the attention of the sequences' queries and its log-sum-exp: [queries, heads, …]."""
        return run(q[self.queries], k[self._keys], v[self._keys], **self._shape)


def _places(ranges: Sequence[Range], device: torch.device) -> torch.Tensor:
    return torch.cat([torch.arange(start, end) for start, end in ranges]).to(device)


def _flash(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    queries_until: torch.Tensor,
    keys_until: torch.Tensor,
    most_queries: int,
    most_keys: int,
    window: tuple[int, int],
) -> tuple[torch.Tensor, torch.Tensor]:
    from torch.nn.attention import varlen as library

    settings: dict[str, Any] = {
        "window_size": window,
        "enable_gqa": True,
        "return_aux": library.AuxRequest(lse=True),
        # One split: a result that depends on its own sequence alone.
        "num_splits": 1,
    }
    found, log_sums = library.varlen_attn(q, k, v, queries_until, keys_until, most_queries, most_keys, **settings)
    return found, _by_token(log_sums, found)


def _by_token(log_sums: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Return log-sums as [tokens, heads]: the kernel gives [heads, tokens], whatever its documentation says."""
    if log_sums.shape != found.shape[1::-1]:
        raise RuntimeError(f"log-sums of shape {tuple(log_sums.shape)} for an output of {tuple(found.shape)}")
    return log_sums.T
