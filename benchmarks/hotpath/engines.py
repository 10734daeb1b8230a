"""The engines that run on torch: ours, padded generation, one prompt at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from hotpath.memory import peak_resident_bytes
from hotpath.models import load
from hotpath.settings import Run, Settings
from hotpath.workloads import Case, Synthetic, prompts
from minicheck_eval.backends.local import LocalBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.engine.plan import plan
from minicheck_eval.scoring import Failure, Score

__all__ = ["OneByOne", "Ours", "Padded", "Stream"]

WARM_UP_PROMPTS = 6
TUNING_PROMPTS = 32
PLANNED_TOKENS = 4096
"""For timing the planning where the engine chooses its budget: what a plan takes hardly depends on it."""
DOCUMENTS_PER_BATCH = 64
"""Of a stream: enough for full passes, few enough to be forgotten soon."""


class _TorchEngine:
    """A model, and what is told of every engine that runs on torch."""

    def __init__(self, settings: Settings) -> None:
        torch.set_num_threads(settings.threads)
        self.settings = settings
        self.model = load(settings)
        self.note = f"transformers {transformers.__version__}, torch {torch.__version__}"

    def peak_bytes(self) -> int | None:
        """Return the peak of the device's memory, on a CPU that of the process."""
        if self.settings.device.startswith("cuda"):
            return int(torch.cuda.max_memory_allocated())
        return peak_resident_bytes()


class _Backend(_TorchEngine):
    """Our engine by its public path."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.tokenizer = PromptTokenizer(Path(settings.tokenizer))
        self.window = self.model.config.max_position_embeddings
        chosen: dict[str, Any] = {"attention": settings.attention} if settings.attention else {}
        self.backend = LocalBackend(
            self.model,
            self.tokenizer,
            yes=["Yes"],
            no=["No"],
            window_tokens=self.window,
            budget_tokens=settings.budget,
            **chosen,
        )
        self.note = f"{self.backend.name}, attention {settings.attention or 'as the backend chooses'}"


class Ours(_Backend):
    """All prompts in one call."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        cases = json.loads(Path(settings.workload).read_text(encoding="utf-8"))["cases"]
        self.prompts = prompts([Case(document, tuple(claims)) for document, claims in cases])

    def warm(self) -> None:
        """Score a few prompts."""
        self.backend.score(self.prompts[:WARM_UP_PROMPTS])

    def run(self) -> Run:
        """Score all prompts, and tokenise and plan once more to see what that takes."""
        before = self.backend.usage.computed_tokens
        began = time.perf_counter()
        scores = self.backend.score(self.prompts)
        seconds = time.perf_counter() - began
        computed = self.backend.usage.computed_tokens - before
        began = time.perf_counter()
        encoded = self.tokenizer.encode(self.prompts)
        plan(encoded, budget_tokens=self.settings.budget or PLANNED_TOKENS, window_tokens=self.window)
        prepare_seconds = time.perf_counter() - began
        return Run(seconds, [_support(one) for one in scores], computed, prepare_seconds, len(scores))


def _support(one: Score | Failure) -> float | None:
    return one.support if isinstance(one, Score) else None


class Stream(_Backend):
    """Prompts that are made while they are scored, none of which is kept; cut short where the time is over."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        wanted = json.loads(Path(settings.workload).read_text(encoding="utf-8"))
        words, claim_words = tuple(wanted.pop("words")), tuple(wanted.pop("claim_words"))
        self.workload = Synthetic(**wanted, words=words, claim_words=claim_words)

    def warm(self) -> None:
        """Score the first document's prompts."""
        self.backend.score(next(iter(self.workload.batches(1)))[:WARM_UP_PROMPTS])

    def run(self) -> Run:
        """Stream all prompts, or those for which there is time."""
        before, done = self.backend.usage.computed_tokens, 0
        began = time.perf_counter()
        most = self.settings.max_seconds or float("inf")
        enough = (batch for batch in self.workload.batches(DOCUMENTS_PER_BATCH) if time.perf_counter() - began < most)
        for scores in self.backend.stream(enough):
            done += len(scores)
        seconds = time.perf_counter() - began
        return Run(seconds, [], self.backend.usage.computed_tokens - before, prompts=done)


class _IdsEngine(_TorchEngine):
    """An engine that is given token ids, so that it does not pay for tokenising; positions it embeds are counted."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        ids = json.loads(Path(settings.workload).read_text(encoding="utf-8"))["ids"]
        self.ids: list[torch.Tensor] = [torch.tensor(one) for one in ids]
        self.embedded = 0
        self.model.get_input_embeddings().register_forward_hook(self._count)

    def _count(self, _module: Any, inputs: tuple[Any, ...], _output: Any) -> None:
        self.embedded += inputs[0].numel()

    def timed(self, work: Callable[[], list[float | None]]) -> Run:
        """Run once; reading the answers has waited for the device."""
        self.embedded = 0
        began = time.perf_counter()
        support = work()
        return Run(time.perf_counter() - began, support, self.embedded, prompts=len(support))

    def yes(self, logits: torch.Tensor) -> list[float]:
        """Return P(yes) by the softmax over the whole vocabulary."""
        found: list[float] = logits.float().softmax(-1)[:, self.settings.yes].tolist()
        return found


class OneByOne(_IdsEngine):
    """A plain forward pass for each prompt."""

    def warm(self) -> None:
        """Score a few prompts."""
        self._score(self.ids[:WARM_UP_PROMPTS])

    def run(self) -> Run:
        """Score all prompts."""
        return self.timed(lambda: self._score(self.ids))

    @torch.inference_mode()
    def _score(self, all_ids: Sequence[torch.Tensor]) -> list[float | None]:
        found: list[float | None] = []
        for ids in all_ids:
            row = ids[None].to(self.settings.device)
            logits = self.model(input_ids=row, use_cache=False, logits_to_keep=1).logits  # [1, 1, vocabulary]
            found += self.yes(logits[:, -1])
        return found


class Padded(_IdsEngine):
    """`generate(max_new_tokens=1)` over batches of similar length, padded on the left, at the best of some sizes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.order = sorted(range(len(self.ids)), key=lambda i: -len(self.ids[i]))
        self.size = settings.batch_sizes[0]

    def warm(self) -> None:
        """Try each batch size on neighbours in length, and keep the fastest."""
        middle = max(0, (len(self.order) - TUNING_PROMPTS) // 2)
        some = self.order[middle : middle + TUNING_PROMPTS]
        self._score(some[:WARM_UP_PROMPTS], 1)
        seconds = {}
        for size in self.settings.batch_sizes:
            began = time.perf_counter()
            try:
                self._score(some, size)
            except torch.OutOfMemoryError:
                break
            seconds[size] = time.perf_counter() - began
        self.size = min(seconds, key=lambda size: seconds[size])
        tried = ", ".join(map(str, seconds))
        self.note += f", batches of {self.size} (best of {tried})"

    def run(self) -> Run:
        """Score all prompts."""
        return self.timed(lambda: self._score(self.order, self.size))

    @torch.inference_mode()
    def _score(self, order: Sequence[int], size: int) -> list[float | None]:
        found: dict[int, float] = {}
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            ids, mask = self._pad(batch)
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=1,
                do_sample=False,
                output_logits=True,
                return_dict_in_generate=True,
                pad_token_id=2,
            )
            found.update(zip(batch, self.yes(out.logits[0]), strict=True))
        return [found[i] for i in sorted(found)]

    def _pad(self, batch: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(len(self.ids[i]) for i in batch)
        ids = torch.full((len(batch), longest), 2)
        mask = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, i in enumerate(batch):
            ids[row, longest - len(self.ids[i]) :] = self.ids[i]
            mask[row, longest - len(self.ids[i]) :] = 1
        return ids.to(self.settings.device), mask.to(self.settings.device)
