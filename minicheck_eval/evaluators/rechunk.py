"""What a backend finds too long is asked again in parts, until each part fits or cannot be cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from minicheck_eval.evaluators.once import score_once
from minicheck_eval.evaluators.question import Asked, Chunk
from minicheck_eval.scoring import Backend, Failure, Prompt, PromptTemplate, Score
from minicheck_eval.text import Span, split_chunks

__all__ = ["ask_in_parts", "is_too_long"]

SMALLEST = 8
"""A part with less than an eighth of the tokens around it is not cut: that would hardly make its prompt shorter, and a
claim that is too long by itself would be asked about every word."""


def is_too_long(score: Score | Failure) -> bool:
    """Tell whether a prompt did not fit."""
    return isinstance(score, Failure) and score.reason == "too_long"


def ask_in_parts(
    backend: Backend, template: PromptTemplate, claims: Sequence[str], asked: Sequence[Asked]
) -> list[list[Asked]]:
    """Ask each claim against halves of the chunk that was too long for it, halves of those, and so on.

    Returns the parts of each in the order of the text; a part that cannot be cut keeps its failure.
    """
    done: list[list[Asked]] = [[] for _ in asked]
    pending = list(enumerate(asked))
    while pending:
        parts: list[tuple[int, Asked]] = []
        for place, whole in pending:
            halves = _halves(whole.chunk) if _is_worth_it(backend, template, claims[place], whole.chunk) else []
            parts += [(place, replace(whole, chunk=half)) for half in halves]
            done[place] += [] if halves else [whole]
        scores = _score(backend, [template.fill(part.chunk.text, claims[place]) for place, part in parts])
        answered = [(place, replace(part, score=score)) for (place, part), score in zip(parts, scores, strict=True)]
        pending = [(place, part) for place, part in answered if is_too_long(part.score)]
        for place, part in answered:
            done[place] += [] if is_too_long(part.score) else [part]
    return [sorted(parts, key=lambda part: part.chunk.span) for parts in done]


def _score(backend: Backend, prompts: list[Prompt]) -> Sequence[Score | Failure]:
    if not prompts:
        return []
    with closing(score_once(backend, [prompts])) as answered:
        return next(answered)


def _is_worth_it(backend: Backend, template: PromptTemplate, claim: str, chunk: Chunk) -> bool:
    own, *around = backend.count_tokens([chunk.text, claim, *template.own_text])
    return own * SMALLEST > sum(around)


def _halves(chunk: Chunk) -> list[Chunk]:
    """Cut a chunk at sentence ends into parts of at most half its characters; none where it cannot be cut."""
    characters = chunk.span.end - chunk.span.start
    # Where rules have rewritten the text, places in it are none in the document.
    if characters <= 1 or len(chunk.text) != characters:
        return []
    return list(_parts(chunk, split_chunks(chunk.text, (characters + 1) // 2, lambda texts: list(map(len, texts)))))


def _parts(chunk: Chunk, spans: Sequence[Span]) -> Iterator[Chunk]:
    for span in spans:
        text = span.of(chunk.text)
        # A judge asked about nothing may say yes.
        if any(map(str.isalnum, text)):
            yield replace(chunk, span=Span(chunk.span.start + span.start, chunk.span.start + span.end), text=text)
