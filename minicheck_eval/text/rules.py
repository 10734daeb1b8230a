"""The seam between judging and splitting: how an answer becomes claims, and a document chunks; and our own rules."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from minicheck_eval.text.chunks import Measure, split_chunks
from minicheck_eval.text.claims import split_claims
from minicheck_eval.text.sentences import SPLITTER
from minicheck_eval.text.spans import Span, trimmed

__all__ = ["OwnRules", "Piece", "TextRules"]


class Piece(NamedTuple):
    """A claim or a chunk: where it stands in its source, and what the judge is shown of it."""

    span: Span
    text: str


class TextRules(Protocol):
    """What cuts texts."""

    @property
    def name(self) -> str:
        """Name the rules and their version: a part of a judge's identity."""
        ...

    def claims(self, answer: str, *, whole: bool) -> list[Piece]:
        """Return the claims of an answer, in order; the `whole` answer is one."""
        ...

    def chunks(self, document: str, limit: int, measure: Measure) -> list[Piece]:
        """Return the chunks of a document that a judge is asked about, in order, of about `limit` units each."""
        ...


class OwnRules:
    """Verbatim pieces, and none without words."""

    name = SPLITTER

    @staticmethod
    def claims(answer: str, *, whole: bool) -> list[Piece]:
        """Return the claims of an answer, in order; the `whole` answer is one."""
        spans = [trimmed(answer, 0, len(answer))] if whole else split_claims(answer)
        return [Piece(span, text) for span in spans if (text := span.of(answer))]

    @staticmethod
    def chunks(document: str, limit: int, measure: Measure) -> list[Piece]:
        """Return the chunks that hold a word, each of at most `limit` units."""
        # A chunk without a letter or digit says nothing, and a judge asked about nothing may say yes.
        spans = [span for span in split_chunks(document, limit, measure) if any(map(str.isalnum, span.of(document)))]
        return [Piece(span, span.of(document)) for span in spans]
