"""Opens the local backend of a judge: places the model on this machine and joins it with its tokenizer."""

from __future__ import annotations

from pathlib import Path

import torch

from minicheck_eval.backends.local import LocalBackend
from minicheck_eval.backends.local_llama import load_llama
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.errors import BadInput
from minicheck_eval.manifest import Manifest
from minicheck_eval.parity import SAFE, Parity

__all__ = ["open_local"]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def open_local(
    manifest: Manifest,
    weights: Path,
    tokenizer: Path,
    *,
    dtype: str = "auto",
    device: str = "auto",
    parity: Parity = SAFE,
) -> LocalBackend:
    """Load the model in `weights`, a folder of safetensors in the format of transformers.

    `dtype` is "float32", "bfloat16", "float16" or "auto" (bfloat16 on a GPU, float32 on a CPU); `device` is a torch
    device or "auto".
    """
    place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    name = ("float32" if place.type == "cpu" else "bfloat16") if dtype == "auto" else dtype
    if name not in DTYPES:
        raise BadInput(f"dtype {dtype!r} is not known", hint=f"choose auto or one of {', '.join(DTYPES)}")
    return LocalBackend(
        load_llama(weights, dtype=DTYPES[name], device=place, rope_theta=parity.rope_theta),
        PromptTokenizer(tokenizer, parse_control_tokens=parity.parse_control_tokens, double_bos=parity.double_bos),
        yes=manifest.labels.yes,
        no=manifest.labels.no,
        window_tokens=manifest.limits.window_tokens,
        top5_rule=parity.top5_rule,
    )
