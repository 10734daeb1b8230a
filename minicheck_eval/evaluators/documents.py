"""How verdicts name documents: by id where that tells them apart, else by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from minicheck_eval.contract import Document

__all__ = ["document_names", "find_document"]


def document_names(documents: Sequence[Document]) -> list[str | int]:
    """Name each document: by its id, or by its place where it has none or shares it with another."""
    counts = Counter(document.id for document in documents)
    return [
        place if document.id is None or counts[document.id] > 1 else document.id
        for place, document in enumerate(documents)
    ]


def find_document(documents: Sequence[Document], name: str | int) -> Document:
    """Return the document that `document_names` gave a name to."""
    return documents[document_names(documents).index(name)]
