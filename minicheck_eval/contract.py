"""The wire contract: documents, a request, a response, and the evaluator that turns one into the other.

It follows Spring AI's `Evaluator`, `EvaluationRequest` and `EvaluationResponse`, and adds the outcome: *no* and *no
answer* are different things.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Protocol, Self, runtime_checkable

from pydantic import Field, model_validator

from minicheck_eval.border import Strict, read
from minicheck_eval.errors import BadInput

__all__ = [
    "Document",
    "DocumentModel",
    "EvaluationRequest",
    "EvaluationResponse",
    "Evaluator",
    "Observation",
    "Outcome",
    "StreamingEvaluator",
    "evaluate_stream",
    "supporting_text",
]


class Outcome(StrEnum):
    """What came of evaluating a request."""

    PASS = "pass"
    FAIL = "fail"
    INVALID = "invalid"
    """The judge answered, but not usably."""
    ERROR = "error"
    """There was no answer."""
    NOT_CHECKABLE = "not_checkable"
    """There was nothing to check, or no evidence to check it against."""

    @property
    def judged(self) -> bool:
        """Tell whether the outcome counts in a rate."""
        return self in (Outcome.PASS, Outcome.FAIL)


@dataclass(frozen=True, slots=True)
class Document:
    """One piece of evidence."""

    text: str | None
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str | None) or not isinstance(self.id, str | None):
            kinds = f"{type(self.text).__name__} and {type(self.id).__name__}"
            raise BadInput(f"the text and id of a document are {kinds}", hint="give strings or None")

    def to_json(self) -> dict[str, Any]:
        """Return the document as JSON-ready values."""
        return {"id": self.id, "text": self.text, "metadata": dict(self.metadata)}


@dataclass(frozen=True, slots=True)
class Observation:
    """What an application answered, and the documents that it had for that, in their order."""

    answer: str
    documents: tuple[Document, ...]

    def __init__(self, answer: str, documents: Sequence[Document | str]) -> None:
        # As with a request: any sequence is taken, and a text is a document.
        if not isinstance(answer, str):
            raise BadInput(f"the answer is a {type(answer).__name__}", hint="give a string; no answer is an empty one")
        if isinstance(documents, str) or not all(isinstance(document, Document | str) for document in documents):
            raise BadInput("documents are not all texts or of type Document", hint="give a list of them")
        given = tuple(Document(document) if isinstance(document, str) else document for document in documents)
        object.__setattr__(self, "answer", answer)
        object.__setattr__(self, "documents", given)


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """What the user asked, the documents that were retrieved for it, and what the application answered."""

    user_text: str = ""
    documents: tuple[Document, ...] = ()
    response: str = ""

    def __init__(self, user_text: str = "", documents: Sequence[Document] = (), response: str = "") -> None:
        # Written out so that any sequence of documents is taken and none can be changed afterwards.
        if not (isinstance(user_text, str) and isinstance(response, str)):
            kinds = f"{type(user_text).__name__} and {type(response).__name__}"
            raise BadInput(
                f"user_text and response are {kinds}", hint="give strings; an answer that is missing is empty"
            )
        if isinstance(documents, str) or not all(isinstance(document, Document) for document in documents):
            raise BadInput("documents are not all of type Document", hint="wrap texts: Document(text)")
        object.__setattr__(self, "user_text", user_text)
        object.__setattr__(self, "documents", tuple(documents))
        object.__setattr__(self, "response", response)

    @classmethod
    def from_question(cls, user_text: str, response: str) -> EvaluationRequest:
        """Build a request from a question and its answer, without documents."""
        return cls(user_text, (), response)

    @classmethod
    def from_documents(cls, documents: Sequence[Document], response: str) -> EvaluationRequest:
        """Build a request from documents and an answer, without a question."""
        return cls("", documents, response)

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON-ready values."""
        documents = [document.to_json() for document in self.documents]
        return {"user_text": self.user_text, "documents": documents, "response": self.response}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EvaluationRequest:
        """Read what `to_json` wrote; an unknown key raises `BadInput`."""
        return read(_RequestModel, value).to_request()


@dataclass(frozen=True, slots=True)
class EvaluationResponse:
    """The verdict on one request.

    `score` is P(supported) in [0, 1], or None where there is no number: it is never filled in.
    """

    outcome: Outcome
    score: float | None = None
    feedback: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Tell whether the outcome is `pass`; silence never is."""
        return self.outcome is Outcome.PASS

    def to_json(self) -> dict[str, Any]:
        """Return the response as JSON-ready values; `passed` is called `pass` there."""
        return {
            "pass": self.passed,
            "outcome": self.outcome.value,
            "score": self.score,
            "feedback": self.feedback,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EvaluationResponse:
        """Read what `to_json` wrote; without `outcome`, `pass` decides between pass and fail.

        An unknown key, a score outside [0, 1], or a `pass` that contradicts the outcome raises `BadInput`.
        """
        return read(_ResponseModel, value).to_response()


@runtime_checkable
class Evaluator(Protocol):
    """Turns requests into responses."""

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """Evaluate one request: a batch of one."""
        ...

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        """Evaluate many requests; the responses come back in input order."""
        ...


@runtime_checkable
class StreamingEvaluator(Evaluator, Protocol):
    """An evaluator that prepares the next requests while it evaluates some."""

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, in order; the iterable may be read ahead, in another thread."""
        ...


def evaluate_stream(
    evaluator: Evaluator, batches: Iterable[Sequence[EvaluationRequest]]
) -> Generator[list[EvaluationResponse], None, None]:
    """Evaluate batch after batch, ahead of need where the evaluator can."""
    if isinstance(evaluator, StreamingEvaluator):
        return evaluator.evaluate_stream(batches)
    return (evaluator.evaluate_batch(batch) for batch in batches)


def supporting_text(request: EvaluationRequest) -> str:
    """Join the texts of all documents with the line separator, skipping documents without text."""
    return "\n".join(document.text for document in request.documents if document.text)


class DocumentModel(Strict):
    """One piece of evidence on the wire."""

    text: str | None
    id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def to_document(self) -> Document:
        """Return what the rest of the package works with."""
        return Document(self.text, self.id, self.metadata)


class _RequestModel(Strict):
    """A request on the wire."""

    user_text: str = ""
    documents: list[DocumentModel] = Field(default_factory=list)
    response: str = ""

    def to_request(self) -> EvaluationRequest:
        return EvaluationRequest(self.user_text, [d.to_document() for d in self.documents], self.response)


class _ResponseModel(Strict):
    """A response on the wire."""

    passed: bool = Field(alias="pass")
    outcome: Annotated[Outcome | None, Field(strict=False)] = None
    score: Annotated[float | None, Field(ge=0, le=1)] = None
    feedback: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.outcome is not None and self.passed != (self.outcome is Outcome.PASS):
            raise ValueError(f"pass is {self.passed} but outcome is {self.outcome.value}")
        return self

    def to_response(self) -> EvaluationResponse:
        outcome = self.outcome or (Outcome.PASS if self.passed else Outcome.FAIL)
        return EvaluationResponse(outcome, self.score, self.feedback, self.metadata)
