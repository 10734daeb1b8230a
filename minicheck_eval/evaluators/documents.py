"""How verdicts name documents: by id where that tells them apart, else by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from minicheck_eval.contract import Document

__all__ = ["document_names", "find_document", "find_recorded"]


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


def find_recorded(documents: Sequence[Mapping[str, Any]], name: str | int | None) -> int | None:
    """Return the place of a document in a record, by the name that a verdict has for it; None where it is not there."""
    if isinstance(name, int):
        return name if name < len(documents) else None
    return next((place for place, found in enumerate(documents) if name is not None and found.get("id") == name), None)
