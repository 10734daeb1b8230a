"""How fast this machine multiplies matrices: the ceiling that engines are held against."""

from __future__ import annotations

import json
import time
from pathlib import Path

import torch

from hotpath.memory import peak_resident_bytes
from hotpath.settings import Run, Settings
from hotpath.shapes import SHAPES, read_shape

__all__ = ["Peak"]

LEAST_WIDTH = 256
"""Narrower matrices are no measure of a machine."""
SECONDS_A_SIZE = 0.25


class Peak:
    """Dense products as a linear layer does them: a square one, and those of the model's own blocks with many rows."""

    def __init__(self, settings: Settings) -> None:
        torch.set_num_threads(settings.threads)
        self.device, self.dtype = torch.device(settings.device), getattr(torch, settings.dtype)
        shape = read_shape(Path(settings.model)) if settings.model else SHAPES[str(settings.shape)]
        square, many = (8192, (16384,)) if self.device.type == "cuda" else (4096, (1024, 4096))
        own = [(rows, *sizes) for rows in many for sizes in shape.matrices() if min(sizes) >= LEAST_WIDTH]
        self.sizes = [(square, square, square), *own] if own else [(1024, 1024, 1024)]
        self.note = json.dumps(self.sizes)

    def warm(self) -> None:
        """Multiply each once."""
        for rows, outputs, inputs in self.sizes:
            self._measure(rows, outputs, inputs, seconds=0.0)

    def run(self) -> Run:
        """Return the best rate of each size."""
        began = time.perf_counter()
        rates = {f"{r}×{k}×{n}": self._measure(r, n, k, seconds=SECONDS_A_SIZE) for r, n, k in self.sizes}
        return Run(time.perf_counter() - began, peak_flops=rates)

    def peak_bytes(self) -> int | None:
        """Return the peak memory of the process."""
        return peak_resident_bytes()

    @torch.inference_mode()
    def _measure(self, rows: int, outputs: int, inputs: int, *, seconds: float) -> float:
        left = torch.randn(rows, inputs, device=self.device, dtype=self.dtype)
        weight = torch.randn(outputs, inputs, device=self.device, dtype=self.dtype)
        best, until = 0.0, time.perf_counter() + seconds
        while not best or time.perf_counter() < until:
            self._wait()
            began = time.perf_counter()
            torch.nn.functional.linear(left, weight)
            self._wait()
            best = max(best, 2 * rows * outputs * inputs / (time.perf_counter() - began))
        return best

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
