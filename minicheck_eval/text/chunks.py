"""Chunks of evidence: whole sentences packed up to a limit, each chunk a verbatim piece of the document."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from minicheck_eval.text.sentences import split_sentences
from minicheck_eval.text.spans import Span, trimmed

__all__ = ["Measure", "split_chunks"]

Measure = Callable[[Sequence[str]], list[int]]
"""Counts the units (tokens, say) of each text of a batch."""

_SPACES = re.compile(r"\s*")
_CLAUSE_END = re.compile(r"[,;:.!?،؛][\"'”’»)\]]*(?=\s)|[，、；：。！？](?!\d)")
_JOINER = "\u200d"


class _Piece(NamedTuple):
    """A sentence or a part of one; `size` counts the white space up to `stop`, and `overhead` only once a chunk."""

    start: int
    end: int
    stop: int
    size: int


def split_chunks(text: str, limit: int, measure: Measure) -> list[Span]:
    """Split into chunks that measure at most `limit` units each; only a single character may measure more.

    Chunks are in order, trimmed, and together all that is no white space. A sentence beyond the limit is cut at clause
    punctuation, else at white space, else anywhere.
    """
    if limit < 1:
        raise ValueError(f"a chunk holds at least 1 unit, not {limit}")
    sentences = split_sentences(text)
    if not sentences:
        return []
    overhead = measure([""])[0]
    pending = _packed(_fitting_pieces(text, sentences, limit, overhead, measure), limit, overhead)
    chunks: list[Span] = []
    # The size of a text is not the sum of its parts': each chunk is measured whole, and divided if it must be.
    while pending:
        spans = [Span(group[0].start, group[-1].end) for group in pending]
        sizes = measure([span.of(text) for span in spans])
        smaller: list[list[_Piece]] = []
        for group, span, size in zip(pending, spans, sizes, strict=True):
            if size <= limit or span.end - span.start == 1:
                chunks.append(span)
            elif len(group) == 1:
                smaller += [[_Piece(*part, part.end, 0)] for part in _cut(text, span, limit, size, overhead)]
            else:
                estimate = overhead + sum(piece.size for piece in group)
                smaller += _packed(group, limit * estimate // size - 1, overhead)
        pending = smaller
    return sorted(chunks)


def _fitting_pieces(text: str, sentences: Iterable[Span], limit: int, overhead: int, measure: Measure) -> list[_Piece]:
    """Measure all sentences at once, and cut those beyond the limit until every part fits."""
    pending = [_Piece(*span, _spaces_end(text, span.end), 0) for span in sentences]
    fitting: list[_Piece] = []
    while pending:
        sizes = measure([text[piece.start : piece.stop] for piece in pending])
        retry: list[_Piece] = []
        for piece, size in zip(pending, sizes, strict=True):
            start, end, stop, _ = piece
            if size <= limit or stop - start == 1:
                fitting.append(piece._replace(size=size - overhead))
            elif stop > end:
                # The white space behind it would be trimmed, so it may fit without.
                retry.append(piece._replace(stop=end))
            else:
                parts = _cut(text, Span(start, end), limit, size, overhead)
                retry += [_Piece(*part, min(end, _spaces_end(text, part.end)), 0) for part in parts]
        pending = retry
    return sorted(fitting)


def _packed(pieces: Sequence[_Piece], limit: int, overhead: int) -> list[list[_Piece]]:
    """Put as many pieces into each group as fit by their sizes; a group holds at least one."""
    groups: list[list[_Piece]] = []
    used = 0
    for piece in pieces:
        trailing_space = int(piece.stop > piece.end)
        if not groups or used + piece.size - trailing_space > limit:
            groups.append([])
            used = overhead
        groups[-1].append(piece)
        used += piece.size
    return groups


def _cut(text: str, span: Span, limit: int, size: int, overhead: int) -> Iterator[Span]:
    """Cut a span of at least two characters into two parts or more, of about the limit by its mean density."""
    characters = span.end - span.start
    most = (limit - overhead) * characters // max(1, size - overhead)
    # At least a quarter is cut off, so that a measure that is not proportional cannot make this slow.
    most = max(1, min(most, characters * 3 // 4))
    start = span.start
    while span.end - start > most:
        end = _break(text, start, start + most)
        yield trimmed(text, start, end)
        start = _spaces_end(text, end)
    if start < span.end:
        yield Span(start, span.end)


def _break(text: str, start: int, end: int) -> int:
    """Return the best place to break, after `start` and not after `end`."""
    middle = (start + end) // 2
    clause_ends = [match.end() for match in _CLAUSE_END.finditer(text, middle, end + 1) if match.end() <= end]
    if clause_ends:
        return clause_ends[-1]
    for position in range(end, start, -1):
        if text[position].isspace():
            return position
    for position in range(end, start, -1):
        if not _joined(text, position):
            return position
    return end


def _joined(text: str, position: int) -> bool:
    """Tell whether the characters around the position make one visible character."""
    before, after = text[position - 1], text[position]
    return (
        unicodedata.category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )


def _spaces_end(text: str, start: int) -> int:
    match = _SPACES.match(text, start)
    return match.end() if match else start
