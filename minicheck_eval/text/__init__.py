"""Sentences, claims and chunks of a text in any language, as spans of the original."""

from __future__ import annotations

from minicheck_eval.text.chunks import Measure, split_chunks
from minicheck_eval.text.claims import split_claims
from minicheck_eval.text.reference import ReferenceChunking, ReferenceRules
from minicheck_eval.text.rules import OwnRules, Piece, TextRules
from minicheck_eval.text.sentences import SPLITTER, split_sentences
from minicheck_eval.text.spans import Span

__all__ = [
    "SPLITTER",
    "Measure",
    "OwnRules",
    "Piece",
    "ReferenceChunking",
    "ReferenceRules",
    "Span",
    "TextRules",
    "split_chunks",
    "split_claims",
    "split_sentences",
]
