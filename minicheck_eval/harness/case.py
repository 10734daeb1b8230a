"""A case, and the check of the row that it comes from."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from minicheck_eval.border import Strict, explain
from minicheck_eval.contract import Document, EvaluationRequest
from minicheck_eval.errors import BadInput
from minicheck_eval.identity import digest

__all__ = ["Case", "CaseRow", "case_from_row", "unknown_keys"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a data set."""

    id: str
    question: str = ""
    slice: str = "all"
    documents: tuple[Document, ...] = ()
    answer: str | None = None
    must_retrieve: tuple[str, ...] = ()
    """Ids of documents that retrieval has to find."""
    label: bool | None = None
    """What a person said: is the answer supported?"""
    date: str | None = None
    in_scope: bool = True
    """Whether the application is meant to answer such a question from evidence."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_request(self) -> EvaluationRequest:
        """Return what a judge is asked."""
        return EvaluationRequest(self.question, self.documents, self.answer or "")

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON-ready values, with the names of the file's columns."""
        return {
            "id": self.id,
            "slice": self.slice,
            "question": self.question,
            "answer": self.answer,
            "documents": [document.to_json() for document in self.documents],
            "must_retrieve": list(self.must_retrieve),
            "label": self.label,
            "date": self.date,
            "in_scope": self.in_scope,
            "metadata": dict(self.metadata),
        }

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the content, in hexadecimal."""
        return digest(self.to_json())


def case_from_row(row: object) -> Case:
    """Check a row and return its case, or raise `BadInput` that names each wrong field."""
    if not isinstance(row, dict):
        raise BadInput(f"a row should be an object, not {_kind(row)}")
    if complaint := unknown_keys(row, CaseRow.model_fields):
        raise BadInput(complaint)
    try:
        # null says the same as a key that is not there.
        return CaseRow.model_validate({key: value for key, value in row.items() if value is not None}).to_case()
    except ValidationError as error:
        raise BadInput(explain(error)) from error


def unknown_keys(given: Mapping[str, Any], known: Mapping[str, Any]) -> str | None:
    """Name the keys that are not known, each with the nearest that is."""
    parts = []
    for key in given.keys() - known.keys():
        near = difflib.get_close_matches(key.lower(), known, 1) if len(key) <= _LONGEST_KEY else []
        parts.append(_quote(key) + (f" (did you mean {_quote(near[0])}?)" if near else ""))
    return f"unknown key {', '.join(sorted(parts)[:_MOST_KEYS])}" if parts else None


_LONGEST_KEY = 60
_MOST_KEYS = 5
_KINDS = {
    str: "a string",
    list: "a list",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "an object")


def _quote(text: str) -> str:
    return json.dumps(text[:_LONGEST_KEY])


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "{message}", {"message": message})


def _text(value: object) -> str:
    # By hand, because a lone surrogate is text to Python and need not be to a validator.
    if not isinstance(value, str):
        raise _wrong(f"should be a string, not {_kind(value)}")
    return value


def _text_or_null(value: object) -> str | None:
    return None if value is None else _text(value)


def _identifier(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = _text(value)
    if not text.strip():
        raise _wrong("should not be empty")
    return text


def _truth(value: object) -> bool:
    if value is True or value is False:
        return bool(value)
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise _wrong("should be true, false, 1 or 0")


def _date(value: object) -> str:
    text = _text(value)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise _wrong("should be a date like 2026-08-31 or 2026-08-31T12:00:00Z") from None
    return text


def _metadata(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(f"should be an object, not {_kind(value)}")
    return value


def _document(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise _wrong(f"should be a string or an object, not {_kind(value)}")
    if complaint := unknown_keys(value, DocumentRow.model_fields):
        raise _wrong(complaint)
    return {key: item for key, item in value.items() if item is not None or key == "text"}


Text = Annotated[str, PlainValidator(_text)]
Identifier = Annotated[str, PlainValidator(_identifier)]
Truth = Annotated[bool, PlainValidator(_truth)]
Metadata = Annotated[dict[str, Any], PlainValidator(_metadata)]


class DocumentRow(Strict):
    """One document of a row; a bare string is its text."""

    text: Annotated[str | None, PlainValidator(_text_or_null)]
    id: Annotated[str | None, PlainValidator(_identifier)] = None
    metadata: Metadata = Field(default_factory=dict)

    def to_document(self) -> Document:
        """Return what the rest of the package works with."""
        return Document(self.text, self.id, self.metadata)


class CaseRow(Strict):
    """A row of a file of cases."""

    id: Identifier
    question: Text = ""
    slice: Identifier = "all"
    documents: list[Annotated[DocumentRow, BeforeValidator(_document)]] = Field(default_factory=list)
    answer: Annotated[str | None, PlainValidator(_text)] = None
    must_retrieve: list[Identifier] = Field(default_factory=list)
    label: Annotated[bool | None, PlainValidator(_truth)] = None
    date: Annotated[str | None, PlainValidator(_date)] = None
    in_scope: Truth = True
    metadata: Metadata = Field(default_factory=dict)

    def to_case(self) -> Case:
        """Return what the rest of the package works with."""
        return Case(
            id=self.id,
            question=self.question,
            slice=self.slice,
            documents=tuple(document.to_document() for document in self.documents),
            answer=self.answer,
            must_retrieve=tuple(self.must_retrieve),
            label=self.label,
            date=self.date,
            in_scope=self.in_scope,
            metadata=self.metadata,
        )
