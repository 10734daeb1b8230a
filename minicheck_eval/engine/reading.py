"""Read an answer from the logits of the first reply token."""

from __future__ import annotations

from typing import NamedTuple

import torch

__all__ = ["Reading", "read"]


class Reading(NamedTuple):
    """What was read at some leaves, in their order."""

    yes: torch.Tensor  # [leaves]: P(yes)
    no: torch.Tensor  # [leaves]: P(no)
    top: torch.Tensor  # [leaves]: the likeliest token


def read(logits: torch.Tensor, yes_ids: torch.Tensor, no_ids: torch.Tensor, *, top5: bool = False) -> Reading:
    """Read P(yes) and P(no) from the softmax over the full vocabulary; `logits` is [leaves, vocabulary], in float32.

    With `top5` a yes-token outside the five likeliest tokens counts 0, as in the MiniCheck package.
    """
    probabilities = logits.softmax(-1)
    yes = probabilities[:, yes_ids]  # [leaves, yes tokens]
    if top5:
        listed = logits.topk(5).indices  # [leaves, 5]
        yes = yes * (listed[:, :, None] == yes_ids).any(1)
    return Reading(yes.sum(-1), probabilities[:, no_ids].sum(-1), logits.argmax(-1))
