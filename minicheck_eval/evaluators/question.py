"""What is asked about one request, and what came of it: every claim against every chunk."""

from __future__ import annotations

from dataclasses import dataclass

from minicheck_eval.scoring import Failure, Score
from minicheck_eval.text import Piece, Span

__all__ = ["Asked", "Chunk", "Question"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one document."""

    document: int
    """The place of the document in the request."""
    span: Span
    text: str
    """What the judge is shown of it; rules may rewrite white space."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one request: every claim against every chunk."""

    claims: tuple[Piece, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one claim was asked against, and the answer."""

    place: int
    """Of the chunk among the question's chunks."""
    chunk: Chunk
    """That chunk, or a part of it."""
    score: Score | Failure
