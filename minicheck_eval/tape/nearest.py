"""Explains a miss: the recorded question that is nearest to the one that was asked, and where the two differ."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from minicheck_eval.tape.record import Question
from minicheck_eval.tape.tape import Tape

__all__ = ["Nearest"]

MOST_READ = 20_000
MOST_COMPARED = 200
MOST_EXPLAINED = 100
AROUND = 24
WORDS = {
    "template": "the template (the judge's own words)",
    "prefix": "the texts it begins with (the document)",
    "suffix": "the texts it ends with (the claim)",
    "schema": "the schema of the reply",
    "most_tokens": "the most tokens of the reply",
    "repeat": "the number of the repetition",
}


class Nearest:
    """Finds the nearest recorded question; the tape is read at the first miss, as far as is bearable."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._read = False
        self._explained = 0
        self._records: list[dict[str, Any]] = []
        self._documents: dict[str, set[str]] = {}
        self._by: dict[str, defaultdict[str, list[dict[str, Any]]]] = {}

    def explain(self, question: Question) -> str:
        """Say what was recorded in the place of a question, and which field differs."""
        self._explained += 1
        if self._explained > MOST_EXPLAINED:
            return "not on the tape"
        self._load()
        asked = question.to_json()
        found = self._nearest(question, asked)
        if found is None:
            return f"not on the tape, which has no {question.kind} at all"
        fields = [name for name in WORDS if found.get(name) != asked.get(name)]
        said = [self._difference(name, found, question) for name in fields if name in ("prefix", "suffix")]
        words = " and ".join(WORDS[name] for name in fields)
        return f"not on the tape; the nearest recorded question differs in {words}{''.join(said)}"

    def _load(self) -> None:
        if self._read:
            return
        self._read = True
        self._by = {name: defaultdict(list) for name in ("prefix", "suffix")}
        for _, record in zip(range(MOST_READ), self._tape.records(), strict=False):
            if record["kind"] in ("score", "reply"):
                self._records.append(record)
                for name, by in self._by.items():
                    by[str(record[name])].append(record)

    def _nearest(self, question: Question, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        kind = question.kind
        near = [record for name, by in self._by.items() for record in by.get(str(asked[name]), ())][:MOST_COMPARED]
        candidates = [record for record in near or self._records if record["kind"] == kind]
        claim = _words(question.suffix)
        # Where nothing is the same all that was read is compared, and that by the claim alone.
        document = _words(question.prefix) if near else set()

        def nearness(record: Mapping[str, Any]) -> tuple[int, float, str]:
            same = sum(record.get(name) == asked.get(name) for name in WORDS)
            alike = _alike(claim, _words(record["suffix"]))
            alike += _alike(document, self._words_of(record["prefix"])) if document else 0.0
            return same, alike, record["key"]

        return max(candidates, key=nearness, default=None)

    def _words_of(self, prefix: str) -> set[str]:
        if prefix not in self._documents:
            self._documents[prefix] = _words(self._tape.texts(prefix))
        return self._documents[prefix]

    def _difference(self, name: str, found: Mapping[str, Any], question: Question) -> str:
        recorded = self._tape.texts(found["prefix"]) if name == "prefix" else found["suffix"]
        asked = question.prefix if name == "prefix" else question.suffix
        one, other = _excerpts(" | ".join(recorded), " | ".join(asked))
        return f"; recorded {one!r}, asked {other!r}"


def _words(texts: Sequence[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts).lower()))


def _alike(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _excerpts(one: str, other: str) -> tuple[str, str]:
    """Return both texts around the first place where they differ."""
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    begin = max(0, start - AROUND)
    return tuple(_cut(text, begin, start + AROUND) for text in (one, other))  # type: ignore[return-value]


def _cut(text: str, start: int, end: int) -> str:
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
