"""Turns a published pickle of tensors into safetensors, once; the judge itself never reads a pickle."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from safetensors.torch import save_file

from minicheck_eval.errors import IntegrityError

__all__ = ["convert"]


def convert(source: Path, target: Path) -> None:
    """Write the tensors of `source` to `target` under the same names; anything but tensors is refused.

    Tensors that share their memory are written out each, so that whoever ties them again finds them all.
    """
    try:
        # weights_only: torch's restricted reader, which builds tensors and plain containers and runs nothing.
        tensors = torch.load(source, map_location="cpu", weights_only=True, mmap=True)
    except (pickle.UnpicklingError, OSError, RuntimeError, ValueError, EOFError) as error:
        raise IntegrityError(f"{source} is not a file of tensors: {error}", hint="fetch it again") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise IntegrityError(f"{source} holds something else than named tensors", hint="fetch it again")
    seen: set[int] = set()
    separate = {}
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        separate[name] = tensor.clone().contiguous() if place in seen else tensor.contiguous()
        seen.add(place)
    save_file(separate, target, metadata={"format": "pt"})
