"""Blocks: the lines of a text that belong together, with hard-wrapped prose joined again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from minicheck_eval.text.lines import STOPS, Block, Kind, read_lines

__all__ = ["read_blocks"]

_TURN = re.compile(r"[>\s*]*[^\W\d_][\w .'’-]{0,30}[:：]\s")


def read_blocks(text: str) -> list[Block]:
    """Read the text as blocks: every character that is no white space is in exactly one of them."""
    return [block for run in _runs(text, read_lines(text)) for block in _unwrapped(text, run)]


def _runs(text: str, lines: Sequence[Block]) -> Iterator[list[Block]]:
    """Group each line with those below it that might continue it."""
    run: list[Block] = []
    for line in lines:
        follows = run and run[-1].kind in (Kind.TEXT, Kind.ITEM) and line.kind is Kind.TEXT and line.adjoins
        if follows and text[run[-1].end - 1] not in ":：" and not _TURN.match(text, line.start, line.end):
            run.append(line)
            continue
        if run:
            yield run
        run = [line]
    if run:
        yield run


def _unwrapped(text: str, run: Sequence[Block]) -> Iterator[Block]:
    """Join the lines that were only wrapped.

    A line that begins in lower case continues the one above. Where one does so in mid-sentence, the run is wrapped
    prose, and a line also continues the one above when its first word would not have fitted there.
    """
    wrapped = any(text[b.body].islower() and not text[a.start : a.end].endswith(STOPS) for a, b in pairwise(run))
    longest = max(line.end - line.start for line in run)
    block = run[0]
    for above, line in pairwise(run):
        first_word = text[line.body : line.end].split(maxsplit=1)[0]
        too_long = above.end - above.start + 1 + len(first_word) > longest
        if text[line.body].islower() or (wrapped and too_long):
            block = block._replace(end=line.end)
        else:
            yield block
            block = line
    yield block
