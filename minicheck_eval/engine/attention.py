"""Attention over the tree of a pass: each token sees the tokens on its path, and nothing else.

Every kind gives the same result; which one is fastest depends on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
from torch.nn.functional import scaled_dot_product_attention

from minicheck_eval.engine.attention_flex import flex
from minicheck_eval.engine.attention_varlen import varlen
from minicheck_eval.engine.layout import Layout, Range, Segment

__all__ = ["ATTENTIONS", "Attend", "AttentionKind", "prepare_attention", "tree_mask"]

AttentionKind = Literal["segments", "masked", "flex", "varlen"]

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes queries [heads, tokens, head size], keys and values [key heads, tokens, head size]; returns as the queries."""


def tree_mask(layout: Layout, queries: Range, device: torch.device) -> torch.Tensor:
    """Return which query (row) of a range sees which token (column) of the same range: [tokens, tokens]."""
    return _mask(torch.tensor(layout.seen_until), queries, device)


def _mask(seen_until: torch.Tensor, queries: Range, device: torch.device) -> torch.Tensor:
    start, end = queries
    place = torch.arange(start, end)
    # A key is seen by what comes later in its own subtree.
    return ((place[None, :] <= place[:, None]) & (place[:, None] < seen_until[None, start:end])).to(device)


def prepare_attention(kind: AttentionKind, layout: Layout, device: torch.device) -> Attend:
    """Return the attention of one pass, to be called once for each layer."""
    return ATTENTIONS[kind](layout, device)


def _masked(layout: Layout, device: torch.device) -> Attend:
    mask = tree_mask(layout, (0, layout.ranges[-1][1]), device)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, enable_gqa=True)[0]

    return attend


def _segmented(layout: Layout, device: torch.device) -> Attend:
    seen_until = torch.tensor(layout.seen_until)
    masks = [_segment_mask(seen_until, segment, device) for segment in layout.segments]

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(q)
        for segment, mask in zip(layout.segments, masks, strict=True):
            start, end = segment.queries
            path = (*segment.above, segment.queries)
            queries = _gather(q, path) if segment.repeats_above else q[:, start:end]
            keys, values = _gather(k, path), _gather(v, path)
            found = scaled_dot_product_attention(
                queries[None], keys[None], values[None], attn_mask=mask, is_causal=mask is None, enable_gqa=True
            )[0]
            out[:, start:end] = found[:, start - end :]
        return out

    return attend


def _segment_mask(seen_until: torch.Tensor, segment: Segment, device: torch.device) -> torch.Tensor | None:
    if segment.repeats_above:
        return None
    start, end = segment.queries
    above = torch.ones(end - start, segment.depth, dtype=torch.bool, device=device)
    return torch.cat([above, _mask(seen_until, segment.queries, device)], dim=1)


def _gather(states: torch.Tensor, path: tuple[Range, ...]) -> torch.Tensor:
    """Return the states of the tokens of a path, one after the other."""
    if all(one[1] == other[0] for one, other in pairwise(path)):
        return states[:, path[0][0] : path[-1][1]]
    return torch.cat([states[:, start:end] for start, end in path], dim=1)


ATTENTIONS: dict[AttentionKind, Callable[[Layout, torch.device], Attend]] = {
    "segments": _segmented,
    "masked": _masked,
    "flex": flex,
    "varlen": varlen,
}
