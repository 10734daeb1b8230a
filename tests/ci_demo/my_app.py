"""A retriever that always finds the same: the documents that share the most words with the question."""

import json
import re
from pathlib import Path


def retrieve(question):
    """Return the two documents that share the most words with the question."""
    rows = [json.loads(line) for line in Path("cases.jsonl").read_text(encoding="utf-8").splitlines()]
    documents = {document["id"]: document for row in rows for document in row["documents"]}
    asked = words(question)
    best = sorted(documents.values(), key=lambda document: (-len(asked & words(document["text"])), document["id"]))
    return {"answer": "", "documents": best[:2]}


def words(text):
    """Return the beginnings of the longer words."""
    return {word[:5] for word in re.findall(r"\w{4,}", text.lower())}
