"""Ask each question once, however often it comes up in a run."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from threading import Lock

from minicheck_eval.scoring import Backend, Failure, Prompt, Score, score_stream

__all__ = ["score_once"]

REMEMBERED = 100_000
"""How many answers are kept: about 20 MB."""

UNANSWERED = Failure("backend", "the prompt was not answered")
"""Stands for an answer that is on its way."""


def score_once(
    backend: Backend, batches: Iterable[Sequence[Prompt]], *, remembered: int = REMEMBERED
) -> Generator[list[Score | Failure], None, None]:
    """Score batch after batch in order; a prompt that was asked before, in this batch or another, is not asked again.

    Only the answers asked for last are remembered, so that memory stays bounded.
    """
    answers: OrderedDict[bytes, Score | Failure] = OrderedDict()
    waiting: deque[tuple[list[bytes], list[bytes]]] = deque()
    lock = Lock()  # batches may be read in another thread

    def new_ones() -> Iterator[list[Prompt]]:
        for batch in batches:
            keys = [bytes.fromhex(prompt.digest) for prompt in batch]
            with lock:
                fresh = {key: prompt for key, prompt in zip(keys, batch, strict=True) if key not in answers}
                for key in keys:
                    answers.setdefault(key, UNANSWERED)
                    answers.move_to_end(key)
                waiting.append((keys, list(fresh)))
            yield list(fresh.values())

    with closing(score_stream(backend, new_ones())) as answered:
        for scores in answered:
            with lock:
                keys, fresh = waiting.popleft()
                answers.update(zip(fresh, scores, strict=True))
                # All batches before this one are answered, so whatever it shares with them is known by now.
                found = [answers[key] for key in keys]
                # What later batches wait for was touched last, and is not among the oldest.
                kept = remembered + sum(len(later) for later, _ in waiting)
                while len(answers) > kept:
                    answers.popitem(last=False)
            yield found
