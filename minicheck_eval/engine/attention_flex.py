"""Attention over the tree with PyTorch's flex attention: a kernel compiled for the mask, which skips what it hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad

from minicheck_eval.engine.layout import Layout

__all__ = ["flex"]

LEAST = 512
"""Passes are padded to a power of two, and to this at least: for each length a kernel is compiled, and PyTorch's
compiler gives up after eight (torch._dynamo.config.recompile_limit).  Padding is hidden, and hidden blocks are skipped.
"""


def flex(layout: Layout, device: torch.device) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the attention of one pass; on a CPU the kernel is not compiled, and slow."""
    from torch.nn.attention.flex_attention import create_block_mask

    tokens = layout.ranges[-1][1]
    padded = max(LEAST, 1 << (tokens - 1).bit_length())
    # What is padded is seen by nothing.
    seen_until = torch.tensor(layout.seen_until + [0] * (padded - tokens), device=device)

    def sees(_batch: Any, _head: Any, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (key <= query) & (query < seen_until[key])

    mask = create_block_mask(sees, None, None, padded, padded, device=device)
    kernel = _kernel(device.type)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (pad(states, (0, 0, 0, padded - tokens))[None] for states in (q, k, v))
        found: torch.Tensor = kernel(q, k, v, block_mask=mask, enable_gqa=True)
        return found[0, :, :tokens]

    return attend


_compiled: dict[str, Any] = {}


def _kernel(device: str) -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    if device == "cpu":
        return flex_attention
    # One for the process, since what it has compiled goes with it.
    return _compiled.setdefault(device, torch.compile(flex_attention, dynamic=False))
