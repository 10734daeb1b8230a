"""What a process that runs one engine is told, and what it answers: plain values, without any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Engine", "Run", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """One engine, its model and its work."""

    engine: str
    """ours, generate, single, vllm, llama.cpp, stream or peak."""
    workload: str
    """A JSON file: for `stream` what the texts are made from, for all others the texts and the token ids of prompts."""
    tokenizer: str
    shape: str | None = None
    """The name of a shape, for random weights, where there is no `model`."""
    model: str | None = None
    """A folder of weights; for llama.cpp a GGUF file."""
    dtype: str = "bfloat16"
    device: str = "cpu"
    threads: int = 1
    seed: int = 0
    budget: int | None = None
    attention: str | None = None
    batch_sizes: tuple[int, ...] = (4, 8, 32)
    """Among which padded generation chooses."""
    block_size: int | None = None
    """Of vLLM's cache, in tokens: only whole blocks are shared."""
    server: str | None = None
    """A program or URL of llama.cpp's server."""
    max_seconds: float | None = None
    yes: int = 0
    no: int = 0
    probe: tuple[int, ...] = ()
    """A prompt without document and claim, for random weights to be set up by."""
    kv_bytes_per_token: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over all prompts."""

    seconds: float
    support: list[float | None] = field(default_factory=list)
    """P(yes) of each prompt in input order, None where the engine did not tell it."""
    tokens_computed: int | None = None
    """Positions that went through the model, padding among them."""
    prepare_seconds: float | None = None
    """Tokenising and planning alone, beside the run."""
    prompts: int = 0
    """How many were scored."""
    peak_flops: dict[str, float] = field(default_factory=dict)
    """Of the machine, by the sizes of the product."""


class Engine(Protocol):
    """What a process runs again and again."""

    note: str
    """Version and choices, for the reader of the table."""

    def warm(self) -> None:
        """Run a small part of the work, untimed, and settle what has to be chosen."""

    def run(self) -> Run:
        """Run all of the work, remembering nothing of an earlier run."""
        ...

    def peak_bytes(self) -> int | None:
        """Return the most memory that was held, or None where this process cannot know."""
        ...
