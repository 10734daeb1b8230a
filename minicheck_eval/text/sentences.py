"""Sentences: the maintained splitter `sentencex`, given one block of prose at a time, and our few rules around it."""

from __future__ import annotations

import re
from importlib.metadata import version
from itertools import pairwise
from typing import cast

import sentencex

from minicheck_eval.text.blocks import read_blocks
from minicheck_eval.text.language import language_of
from minicheck_eval.text.lines import Block, Kind
from minicheck_eval.text.masks import masked
from minicheck_eval.text.spans import Span, trimmed

__all__ = ["SPLITTER", "block_sentences", "split_sentences"]

RULES = 1
"""Raised with every change to this folder that may move a span."""

SPLITTER = f"sentencex {version('sentencex')} / rules {RULES}"
"""Names the splitter and our rules: a part of a judge's identity."""

# The splitter's time grows with the square of a text full of quotation marks.
_WINDOW_CHARACTERS = 4000

_CLOSING = re.compile("(?:[\"'”’»›)）\\]}」』】》〉*_~]|\\[\\d{1,3}\\])+")
_WRAP_BEHIND = re.compile(r"[\n\r][>\s]*\Z")
_ENUMERATOR = re.compile(r"\W*\d{1,2}[.)]\W*")


def split_sentences(text: str) -> list[Span]:
    """Split into sentences: trimmed, in order, and together all that is no white space."""
    language = language_of(text)
    return [span for block in read_blocks(text) for span in block_sentences(text, block, language)]


def block_sentences(text: str, block: Block, language: str, *, uncut: bool = False) -> list[Span]:
    """Split one block; `language` is what the whole text is in, for blocks that do not show theirs.

    A sentence of thousands of characters is cut in several, unless it must be `uncut`.

    Marks before the body belong to the first sentence. Rows of tables, code and rules stay whole.
    """
    if block.kind in (Kind.HEADER, Kind.ROW, Kind.CODE, Kind.RULE) or block.body >= block.end:
        return [Span(block.start, block.end)]
    language = language_of(text[block.body : block.end], language)
    first, *others = _prose_sentences(text, block.body, block.end, language, uncut=uncut)
    return [Span(block.start, first.end), *others]


def _prose_sentences(text: str, start: int, end: int, language: str, *, uncut: bool) -> list[Span]:
    spans: list[Span] = []
    continues = False
    while start < end:
        window = text[start : min(end, start + _WINDOW_CHARACTERS)]
        ends = _sentence_ends(window, language)
        if start + len(window) < end:
            # The last sentence may go on behind the window; one that fills it is cut at white space.
            whole = ends[:-1]
            ends = whole or [_last_space(window)]
        else:
            whole = ends
        found = [trimmed(text, start + a, start + b) for a, b in pairwise([0, *ends])]
        if continues:
            found[0] = Span(spans.pop().start, found[0].end)
        spans += found
        continues = uncut and not whole
        start += ends[-1]
    return [span for span in spans if span.end > span.start]


def _last_space(window: str) -> int:
    head, space, _ = window.rpartition(" ")
    return len(head) if space and head.strip() else len(window)


def _sentence_ends(window: str, language: str) -> list[int]:
    """Return where each sentence of the window ends; the last of them is the window's end."""
    ends: list[int] = []
    start = position = 0
    for part in _split(masked(window, language), language):
        position += len(part)
        end = max(position, start)
        if end > start and not window[end - 1].isspace() and (closing := _CLOSING.match(window, end)):
            end = closing.end()
        elif wrap := _WRAP_BEHIND.search(window, start, end):
            # The quote marks of the next line belong to the next sentence.
            end = wrap.start()
        piece = window[start:end]
        worded = any(map(str.isalnum, piece))
        if worded and not _ENUMERATOR.fullmatch(piece):
            ends.append(end)
            start = end
        elif ends and not worded:
            # Stray marks belong to what stands before them.
            ends[-1] = start = end
    return [*(end for end in ends if end < len(window)), len(window)]


def _split(text: str, language: str) -> list[str]:
    try:
        parts = cast("list[str]", sentencex.segment(language, text))
    except BaseException as error:
        # A panic of the splitter's Rust code is no Exception, and must not end a run over millions of texts.
        if type(error).__name__ != "PanicException":
            raise
        return [text]
    return parts if sum(map(len, parts)) == len(text) else [text]
