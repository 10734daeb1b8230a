"""What an application answered, and the evidence that it had, read from whatever it returns.

Results of LangChain, LlamaIndex and Haystack are told by their shape; none of these is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from minicheck_eval.contract import Document, Observation
from minicheck_eval.errors import BadInput

__all__ = ["read_observation"]

ANSWERS = ("answer", "result", "response", "output", "data")
"""Where an answer is: first in a dict of one's own, then of LangChain, LlamaIndex and Haystack."""
DOCUMENTS = ("documents", "source_documents", "context", "contexts", "source_nodes")
TEXTS = ("page_content", "content", "text")
"""Where a document or message has its text: LangChain's, Haystack's, LlamaIndex's."""
IDS = ("id", "node_id", "id_")
SOURCES = ("id", "source")
"""Where a document's metadata name it, if it has no id."""
HINT = "return Observation(answer, documents), or a dict with answer and documents"


def read_observation(value: object) -> Observation:
    """Read what an application returned, or raise `BadInput` that says what it was."""
    if isinstance(value, Observation):
        return value
    piped = _from_pipeline(value) if isinstance(value, Mapping) and _part(value, ANSWERS) is None else None
    found = value if piped is None else piped
    answer, documents = _part(found, ANSWERS), _part(found, DOCUMENTS)
    if answer is None:
        raise BadInput(f"the application returned {_kind(value)}, without an answer", hint=HINT)
    if documents is None:
        raise BadInput(f"the application returned {_kind(value)}, without documents", hint=HINT)
    if isinstance(documents, str | Mapping) or not isinstance(documents, Sequence):
        raise BadInput(f"the documents of the application are {_kind(documents)}", hint="return a list of them")
    return Observation(_text(answer), tuple(_document(document) for document in documents))


def _from_pipeline(value: Mapping[Any, Any]) -> Any:
    """Return the answer of a Haystack pipeline, which tells by component, with its documents; None where it is none."""
    components = [part for part in value.values() if isinstance(part, Mapping)]
    for name in ("answers", "replies"):
        found = [part[name][0] for part in components if isinstance(part.get(name), Sequence) and part[name]]
        if not found:
            continue
        if _part(found[0], DOCUMENTS) is not None:
            return found[0]
        retrieved = [part["documents"] for part in components if part.get("documents") is not None]
        # The last component with documents, such as a ranker, gave those that the answer was made from.
        return {"answer": found[0], "documents": retrieved[-1] if retrieved else None}
    return None


def _document(value: object) -> Document:
    if isinstance(value, Document):
        return value
    if value is None or isinstance(value, str):
        return Document(value)
    inner = _part(value, ("node",))  # LlamaIndex puts a score around a node
    text = _part(value if inner is None else inner, TEXTS)
    holder = value if inner is None else inner
    if text is None and not (isinstance(holder, Mapping) and any(name in holder for name in TEXTS)):
        raise BadInput(f"a document of the application is {_kind(value)}, without text", hint=HINT)
    given = _part(holder, ("metadata", "meta"))
    metadata = _plain(given) if isinstance(given, Mapping) else {}
    name = _part(holder, IDS)
    if name is None:
        name = next((metadata[key] for key in SOURCES if metadata.get(key) is not None), None)
    return Document(None if text is None else str(text), None if name is None else str(name), metadata)


def _text(answer: object) -> str:
    """Return the words of an answer: a string, or a message."""
    found = answer if isinstance(answer, str) else next(filter(_is_text, _parts(answer, TEXTS)), None)
    if found is None:
        raise BadInput(f"the answer of the application is {_kind(answer)}", hint="return a string")
    return str(found)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _part(value: object, names: Sequence[str]) -> Any:
    """Return the first part of a dict or an object that is there, by one of some names."""
    return next(_parts(value, names), None)


def _parts(value: object, names: Sequence[str]) -> Iterator[Any]:
    for name in names:
        part = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if part is not None and not callable(part):
            yield part


def _plain(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Make metadata of JSON values; what is none is written as text."""
    content = {str(key): item for key, item in metadata.items()}
    return dict(json.loads(json.dumps(content, default=str), parse_constant=str))


def _kind(value: object) -> str:
    if isinstance(value, Mapping):
        return f"a dict with {', '.join(map(str, value)) or 'nothing'}"
    return "nothing" if value is None else f"a {type(value).__name__}"
