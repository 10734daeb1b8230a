"""vLLM with prefix caching, in the interpreter where it is installed; needs nothing else of the project."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotpath.memory import peak_resident_bytes
from hotpath.settings import Run, Settings

__all__ = ["Vllm"]

WARM_UP_PROMPTS = 6
GIBIBYTE = 2**30


class Vllm:
    """The engine is kept over all runs, its prefix cache is emptied before each."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ids: list[list[int]] = json.loads(Path(settings.workload).read_text(encoding="utf-8"))["ids"]
        cache_bytes = settings.kv_bytes_per_token * sum(map(len, self.ids))
        # In this process: no second one that could poll while others are measured, and its memory is seen.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(min(8, max(1, math.ceil(cache_bytes / GIBIBYTE))))
        cores = sorted(os.sched_getaffinity(0))[: settings.threads]
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch
        import vllm

        self.model = vllm.LLM(
            model=str(settings.model),
            skip_tokenizer_init=True,
            dtype=settings.dtype,
            enable_prefix_caching=True,
            max_model_len=max(map(len, self.ids)) + 1,
            seed=settings.seed,
            **({"block_size": settings.block_size} if settings.block_size else {}),
            **({"gpu_memory_utilization": 0.5} if settings.device.startswith("cuda") else {}),
        )
        self.sampling = vllm.SamplingParams(
            max_tokens=1, temperature=0.0, detokenize=False, logprob_token_ids=[settings.yes, settings.no]
        )
        block = self.model.llm_engine.vllm_config.cache_config.block_size
        self.note = f"vllm {vllm.__version__}, torch {torch.__version__}, prefixes cached in blocks of {block} tokens"

    def warm(self) -> None:
        """Score a few prompts."""
        self._score(self.ids[:WARM_UP_PROMPTS])

    def run(self) -> Run:
        """Empty the cache and score all prompts."""
        if not self.model.reset_prefix_cache():
            raise RuntimeError("the prefix cache could not be emptied")
        began = time.perf_counter()
        outputs = self._score(self.ids)
        seconds = time.perf_counter() - began
        support = [self._support(one.outputs[0].logprobs[0]) for one in outputs]
        computed = sum(len(one.prompt_token_ids) - (one.num_cached_tokens or 0) for one in outputs)
        return Run(seconds, support, computed, prompts=len(support))

    def peak_bytes(self) -> int | None:
        """Return the peak memory of the process; on a GPU it takes what it is allowed, which says nothing."""
        return None if self.settings.device.startswith("cuda") else peak_resident_bytes()

    def _score(self, ids: Sequence[list[int]]) -> list[Any]:
        asked = [{"prompt_token_ids": one} for one in ids]
        outputs: list[Any] = self.model.generate(asked, self.sampling, use_tqdm=False)
        return outputs

    def _support(self, found: Any) -> float | None:
        yes = found.get(self.settings.yes)
        return None if yes is None else math.exp(yes.logprob)
