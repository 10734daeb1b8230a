"""Claims: the sentences of an answer that can be checked against evidence.

Left out is only what states no fact: code, titles, header rows of tables, rules, lead-ins of lists, questions, anything
without a letter or digit, and the fillers listed here. A title that ends like a sentence is a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from minicheck_eval.text.blocks import read_blocks
from minicheck_eval.text.language import language_of
from minicheck_eval.text.lines import Block, Kind
from minicheck_eval.text.sentences import block_sentences
from minicheck_eval.text.spans import Span

__all__ = ["FILLERS", "split_claims"]

FILLERS = frozenset(
    {
        # English
        "absolutely",
        "certainly",
        "good question",
        "great question",
        "happy to help",
        "hello",
        "here is the answer",
        "here's the answer",
        "hi",
        "hi there",
        "i hope that helps",
        "i hope this helps",
        "let me know if you have any more questions",
        "let me know if you have any other questions",
        "let me know if you have any questions",
        "of course",
        "sure",
        "sure thing",
        "thank you",
        "thanks",
        "you're welcome",
        # German
        "danke",
        "gern",
        "gern geschehen",
        "gerne",
        "guten tag",
        "hallo",
        "hier ist die antwort",
        "ich hoffe, das hilft",
        "ich hoffe, das hilft dir",
        "ich hoffe, das hilft ihnen",
        "klar",
        "natürlich",
        "selbstverständlich",
        "sicher",
        "vielen dank",
    }
)
"""Sentences that are no claims, in lower case and without the punctuation around them; only a whole match counts."""

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_QUESTION_MARKS = "?？؟\u037e"
# A question mark within closing quotation marks ends what somebody asked, and that they asked it is a fact.
_CLOSING = "\"'”’»›」』)）]"
# "Answer:" announces, whatever follows.
_LABEL = re.compile(r"\W*+[^\W\d]++\W*[:：][\W_]*$")
_TITLE_SENTENCE = re.compile(r"[.。!！।][\"'”’»)*_\s]*$")
# Only what announces a list and nothing else: "The shop has three branches:" states a fact.
_LEAD_IN = re.compile(
    r"\W*(?:(?:here(?:'s|’s| is| are)|these are|this is|the following|as follows|below|in short|in summary"
    r"|hier (?:ist|sind)|das sind|folgende|im folgenden|wie folgt|kurz gesagt|zusammengefasst)\b"
    r"|以下|如下|次の|فيما يلي)[^\d]{0,60}[:：][*_\s]*$"
    r"|\W*(?:\w+ ){0,2}(?:are|is|were|was|includes?|sind|ist|lauten) ?[:：][*_\s]*$"
    r"|\W*(?:its|the|our|their|your|some|key|main|die|unsere|ihre|seine) [^\W\d]++[:：][*_\s]*$",
    re.IGNORECASE,
)
_MARKS_BEFORE = re.compile(r"[>\s]*")
_ROW_EDGES = "| \t"


def split_claims(answer: str) -> list[Span]:
    """Return the claims of an answer, in order and without marks before them; none when nothing can be checked."""
    language = language_of(answer)
    blocks = [block for block in read_blocks(answer) if block.kind is not Kind.RULE]
    claims = []
    for index, block in enumerate(blocks):
        sentences = list(_candidates(answer, block, language))
        if sentences and _leads_in(answer, sentences[-1], blocks[index + 1 : index + 2]):
            sentences.pop()
        claims += [sentence for sentence in sentences if _states_something(sentence.of(answer))]
    return claims


def _candidates(answer: str, block: Block, language: str) -> Iterator[Span]:
    if block.kind in (Kind.CODE, Kind.HEADER):
        return
    if block.kind is Kind.HEADING and not _TITLE_SENTENCE.search(answer, block.body, block.end):
        return
    if block.kind is Kind.ROW:
        row = answer[block.body : block.end]
        start = block.body + len(row) - len(row.lstrip("> " + _ROW_EDGES))
        yield Span(start, max(start, block.body + len(row.rstrip(_ROW_EDGES))))
        return
    for sentence in block_sentences(answer, block, language, uncut=True):
        start = max(sentence.start, block.body)
        marks = _MARKS_BEFORE.match(answer, start, sentence.end)
        yield Span(marks.end() if marks else start, sentence.end)


def _leads_in(answer: str, sentence: Span, following: Sequence[Block]) -> bool:
    listed = following and following[0].kind in (Kind.ITEM, Kind.HEADER, Kind.ROW)
    return bool(listed and _LEAD_IN.match(answer, sentence.start, sentence.end))


def _states_something(sentence: str) -> bool:
    if not any(map(str.isalnum, sentence)) or _asks(sentence) or _LABEL.match(sentence):
        return False
    words = " ".join(_EDGES.sub("", sentence).casefold().replace("’", "'").split())
    return words not in FILLERS


def _asks(sentence: str) -> bool:
    for character in reversed(sentence):
        if character in _QUESTION_MARKS:
            return True
        if character in _CLOSING or character.isalnum() or character == "_":
            return False
    return False
