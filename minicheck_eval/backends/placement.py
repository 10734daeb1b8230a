"""Where a model is put and in which number format: what was asked for, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Self

from minicheck_eval.errors import BadInput

__all__ = ["DTYPES", "QUANTIZATIONS", "Placement"]

DTYPES = ("auto", "float32", "bfloat16", "float16")
QUANTIZATIONS = ("8bit", "4bit")
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
ENTRY = re.compile(r"(cpu|\d+)=(\d+(\.\d+)?\s*[KMGT]i?B)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Placement:
    """What a caller asked for."""

    dtype: str = "auto"
    device: str = "auto"
    max_memory: Mapping[str | int, str] = field(default_factory=dict)
    """GPU number or "cpu" → most memory for weights there; empty: what is free."""
    quantization: str = ""
    """The bits of the weights and the library that holds them; empty: weights as they are."""

    @classmethod
    def read(cls, *, dtype: str, device: str, max_memory: str | None, quantize: str | None) -> Self:
        """Read what was given, or raise `BadInput`."""
        if dtype not in DTYPES:
            raise BadInput(f"dtype {dtype!r} is not known", hint=f"choose one of {', '.join(DTYPES)}")
        if not DEVICE.fullmatch(device):
            raise BadInput(f"device {device!r} is not known", hint="choose auto, cpu, mps, cuda or cuda:NUMBER")
        if max_memory and device != "auto":
            raise BadInput(f"max_memory is given, and the device {device}", hint="leave one of the two away")
        return cls(dtype, device, _memory(max_memory or ""), _quantization(quantize))


def _memory(text: str) -> dict[str | int, str]:
    memory: dict[str | int, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        match = ENTRY.fullmatch(entry)
        if not match:
            raise BadInput(
                f"max_memory {entry!r} is not understood", hint="write for example 0=20GiB,1=20GiB,cpu=30GiB"
            )
        memory[match[1].lower() if match[1].lower() == "cpu" else int(match[1])] = match[2]
    return memory


def _quantization(quantize: str | None) -> str:
    if not quantize:
        return ""
    if quantize not in QUANTIZATIONS:
        raise BadInput(f"quantize {quantize!r} is not known", hint=f"choose one of {', '.join(QUANTIZATIONS)}")
    try:
        return f"{quantize} (bitsandbytes {version('bitsandbytes')})"
    except PackageNotFoundError:
        raise BadInput(
            f"{quantize} weights need bitsandbytes, which is not installed", hint="pip install 'minicheck-eval[quant]'"
        ) from None
