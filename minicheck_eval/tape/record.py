"""One line of a tape: its key, what was asked in words, what was answered, and a seal over all that.

    {"key": "…", "recorded": "2026-11-30", "kind": "score", "template": "…", "prefix": "…", …, "seal": "…"}

`template` and `prefix` name lines of the kind "text", so that what many prompts share is written once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from minicheck_eval.errors import IntegrityError
from minicheck_eval.harness.files import encode
from minicheck_eval.identity import digest
from minicheck_eval.scoring import Failure, Prompt, Reply, Score

__all__ = [
    "ID_DIGITS",
    "Question",
    "answer_json",
    "answer_of",
    "count_key",
    "is_line",
    "key_of",
    "line_of",
    "read_line",
    "recorded_on",
    "same_answer",
    "text_line",
]

START = b'{"key": "'
KEY = slice(len(START), len(START) + 64)
BETWEEN = b'", "recorded": "'
MIDDLE = slice(KEY.stop, KEY.stop + len(BETWEEN))
RECORDED = slice(MIDDLE.stop, MIDDLE.stop + 10)
SEAL = b', "seal": "'
SEAL_DIGITS = 16
END = len(SEAL) + SEAL_DIGITS + 3
ID_DIGITS = 16
"""Of a text's key, where a prompt names it."""
_DECODER = json.JSONDecoder()
TOO_LONG = "too_long"
"""The one failure that is an answer: it says what to ask in its place, and it is the same each time."""


@dataclass(frozen=True)
class Question:
    """A prompt, and how its answer is wanted."""

    prompt: Prompt
    kind: Literal["score", "reply"] = "score"
    schema: Mapping[str, Any] | None = None
    most_tokens: int = 0
    repeat: int = 0

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 over all that shapes the answer, but the judge."""
        how = f"{self.kind} {self.repeat} {self.most_tokens} {self._schema} {self.prompt.digest}"
        return sha256(how.encode()).hexdigest()

    @property
    def template(self) -> list[str]:
        """Return the judge's own words: the instruction, and what stands around the texts."""
        prompt = self.prompt
        return [prompt.system or "", *(text for text, trusted in prompt.prefix + prompt.suffix if trusted)]

    @property
    def prefix(self) -> list[str]:
        """Return the texts that the prompt begins with: the document, say."""
        return [text for text, trusted in self.prompt.prefix if not trusted]

    @property
    def suffix(self) -> list[str]:
        """Return the texts that the prompt ends with: the claim, say."""
        return [text for text, trusted in self.prompt.suffix if not trusted]

    def to_json(self) -> dict[str, Any]:
        """Return what a record tells of the question."""
        asked: dict[str, Any] = {"template": text_id(self.template), "prefix": text_id(self.prefix)}
        asked |= {"suffix": self.suffix}
        if self.kind == "reply":
            asked |= {"schema": self._schema, "most_tokens": self.most_tokens}
        return asked | ({"repeat": self.repeat} if self.repeat else {})

    @property
    def _schema(self) -> str:
        return "" if self.schema is None else digest(self.schema)[:ID_DIGITS]


def count_key(texts: list[str]) -> str:
    """Return the key of the token counts of some texts."""
    return digest(["count", texts])


def text_key(texts: list[str]) -> str:
    """Return the key of texts that prompts share."""
    return digest(["text", texts])


def text_id(texts: list[str]) -> str:
    """Return the name of texts that prompts share."""
    return text_key(texts)[:ID_DIGITS]


def text_line(texts: list[str], today: str) -> bytes:
    """Write texts that prompts share."""
    return line_of(text_key(texts), today, "text", {"texts": texts})


def line_of(key: str, today: str, kind: str, content: Mapping[str, Any]) -> bytes:
    """Write a record as one sealed line."""
    body = encode({"key": key, "recorded": today, "kind": kind, **content})[:-1]
    return body + SEAL + _seal(body) + b'"}\n'


def answer_json(said: Score | Reply | Failure) -> dict[str, Any] | None:
    """Return what a record tells of an answer; None for a failure that may be gone tomorrow."""
    match said:
        case Score():
            answer: dict[str, Any] = {"support": said.support, "refute": said.refute, "top": said.top}
            answer |= {"said": said.reply} if said.reply else {}
        case Reply():
            answer = {"text": said.text} | ({} if said.complete else {"complete": False})
        case Failure():
            return {"failure": said.reason, "message": said.message} if said.reason == TOO_LONG else None
    return answer | ({"neutralised": True} if said.neutralised else {})


def answer_of(record: Mapping[str, Any]) -> Score | Reply | Failure:
    """Return the answer that a record holds."""
    neutralised = record.get("neutralised", False)
    if "failure" in record:
        return Failure(record["failure"], record["message"])
    if record["kind"] == "reply":
        return Reply(record["text"], record.get("complete", True), neutralised)
    return Score(record["support"], record["refute"], record["top"], record.get("said", ""), neutralised)


def is_line(line: bytes) -> bool:
    """Tell whether a line has the form of a record, without reading all of it."""
    return (
        line.startswith(START)
        and line[MIDDLE] == BETWEEN
        and line.endswith(b'"}\n')
        and line[-END : -END + len(SEAL)] == SEAL
    )


def key_of(line: bytes) -> str:
    """Return the key of a line."""
    return line[KEY].decode("ascii", "replace")


def recorded_on(line: bytes) -> str:
    """Return the day on which a line was recorded."""
    return line[RECORDED].decode("ascii", "replace")


def same_answer(one: bytes, other: bytes) -> bool:
    """Tell whether two lines say the same, on whatever days."""
    return one[RECORDED.stop : -END] == other[RECORDED.stop : -END]


def read_line(line: bytes, where: str) -> dict[str, Any]:
    """Read a line, or raise `IntegrityError` where it is not as it was written."""
    body = line[:-END]
    if not is_line(line) or line[-END + len(SEAL) : -3] != _seal(body):
        raise IntegrityError(
            f"{where} is not as it was recorded: {line[:60]!r}…",
            hint="restore the file from version control, or remove that line and record again",
        )
    record: dict[str, Any] = _DECODER.decode(body.decode() + "}")
    return record


def _seal(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:SEAL_DIGITS].encode()
