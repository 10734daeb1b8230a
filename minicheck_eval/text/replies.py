"""The one rule by which a reply in words is read as yes or no.

The reply is cut into pieces at punctuation, symbols and line ends; markdown, quotes, emoji and a number in front
("1. Yes.") are thereby gone.  The first piece must be a word for yes or for no and nothing else ("Yes, because…", not
"No doubt…"), and no later piece may be, or end with, the opposite ("Yes, No, Yes").  A block of thought in `<think>`
tags before the answer is skipped.  Whatever else is said has no reading.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from minicheck_eval.errors import BadInput
from minicheck_eval.identity import digest

__all__ = ["ReplyRule", "after_thought"]

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_NUMBER = re.compile(r"[\W_]*\d{1,3}\s*[.):\]]")
# A hyphen or an apostrophe inside a word belongs to it: "no-one" is no no.
_LOOSE_JOINER = re.compile(r"(?<![^\s'-])['-]|['-](?![^\s'-])")
_JOINERS = {"'": "'", "’": "'", "-": "-", "‐": "-"}


def after_thought(text: str) -> str | None:
    """Return what follows the block of thought, or the text where there is none; None where its end is not certain.

    The opening tag may be missing: some chat templates put it into the prompt.
    """
    marks = list(_THINK.finditer(text))
    if not marks:
        return text
    kinds = [mark[1] for mark in marks]
    opened_first = kinds == ["", "/"] and not text[: marks[0].start()].strip()
    return text[marks[-1].end() :] if opened_first or kinds == ["/"] else None


@dataclass(frozen=True, slots=True)
class ReplyRule:
    """Which words count as yes and as no.

    With `strict` a reply is yes where it equals "yes" as a whole, ignoring case and trimming nothing, and no in every
    other case, as in Spring AI 2.0.0: for measuring what that costs.
    """

    yes: tuple[str, ...] = ("yes",)
    no: tuple[str, ...] = ("no",)
    strict: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.yes, str) or isinstance(self.no, str) or not (self.yes and self.no):
            raise BadInput(f"the words are {self.yes!r} and {self.no!r}", hint='give tuples: yes=("yes", "ja")')
        for word in (*self.yes, *self.no):
            if len(_pieces(word)) != 1:
                raise BadInput(f"{word!r} is no word that can be found in a reply", hint="leave out punctuation")
        both = {_pieces(word)[0] for word in self.yes} & {_pieces(word)[0] for word in self.no}
        if both:
            raise BadInput(f"{sorted(both)} would mean yes and no", hint="give each word to one of them")
        if self.strict and (self.yes, self.no) != (("yes",), ("no",)):
            raise BadInput('the strict comparison knows "yes" alone', hint="leave out the words or strict")

    @property
    def first_tokens(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return what a first token must read to be a yes, and to be a no, in lower case."""
        return frozenset(map(str.casefold, self.yes)), frozenset(map(str.casefold, self.no))

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the rule, in hexadecimal."""
        return digest([list(self.yes), list(self.no), self.strict])

    def read(self, text: str) -> Literal["yes", "no"] | None:
        """Read a reply; None where it is neither a yes nor a no."""
        if self.strict:
            return "yes" if text.casefold() == "yes" else "no"
        answer = after_thought(text)
        if answer is None:
            return None
        found = self._read_answer(answer)
        # What was taken for thought may be an answer that quotes a closing tag.
        thought = self._read_answer(_THINK.split(text)[0])
        return None if found and thought and thought != found else found

    def _read_answer(self, text: str) -> Literal["yes", "no"] | None:
        pieces = _pieces(text)
        yes = {_pieces(word)[0] for word in self.yes}
        no = {_pieces(word)[0] for word in self.no}
        if not pieces or pieces[0] not in yes | no:
            return None
        found: Literal["yes", "no"] = "yes" if pieces[0] in yes else "no"
        # "…, so no" takes back what came before; "there is no contradiction" does not.
        ends = {piece.rpartition(" ")[2] for piece in pieces}
        return None if (no if found == "yes" else yes) & (ends | set(pieces)) else found


def _pieces(text: str) -> list[str]:
    """Return what stands between punctuation, symbols and line ends, in one case and without a number in front."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    number = _NUMBER.match(plain)
    marked = "".join(map(_marked, plain[number.end() :] if number else plain))
    pieces = (" ".join(piece.split()) for piece in _LOOSE_JOINER.sub("\n", marked).split("\n"))
    return [piece for piece in pieces if piece]


def _marked(character: str) -> str:
    """Return what a character is for the rule: itself within a word, a space, nothing, or a border."""
    category = unicodedata.category(character)
    if character.isalnum() or category.startswith("M"):
        return character
    if character == "\t" or category == "Zs":
        return " "
    # Formatting characters cannot be seen.
    return "" if category == "Cf" else _JOINERS.get(character, "\n")
