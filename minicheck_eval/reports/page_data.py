"""The cases that a page carries: as many as a browser handles well, those with trouble first, each document once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import IO, Any

from minicheck_eval.harness.files import compact
from minicheck_eval.identity import digest
from minicheck_eval.reports.case_view import CaseResult, ClaimResult, VerdictResult

__all__ = ["PageData"]

MOST_CASES = 10_000
MOST_BYTES = 64 * 1024 * 1024
HIGHEST_16_BIT = "\uffff"


class _Lines:
    """Lines of JSON on disk, at most so many bytes; they may stand in a script element, which nothing in them ends."""

    def __init__(self) -> None:
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed with the page
        self.count = 0

    def add(self, line: bytes) -> None:
        self._file.write(line)
        self.count += 1

    def __iter__(self) -> Iterator[str]:
        self._file.seek(0)
        for line in self._file:
            yield line.decode()

    def close(self) -> None:
        self._file.close()


class PageData:
    """Takes every case and keeps those that the page will hold.

    Half of the room is for cases that failed or could not be judged, so that no number of good ones crowds them out.
    """

    def __init__(self, *, most_cases: int = MOST_CASES, most_bytes: int = MOST_BYTES) -> None:
        self.total = 0
        self.documents = _Lines()
        self._most_cases = most_cases
        self._rooms = {True: most_bytes // 2, False: most_bytes // 2}
        self._lines = {True: _Lines(), False: _Lines()}
        self._places: dict[str, int] = {}

    @property
    def count(self) -> int:
        """Count the cases that are kept."""
        return min(self._most_cases, sum(lines.count for lines in self._lines.values()))

    def add(self, case: CaseResult, record: Mapping[str, Any]) -> None:
        """Take a case, and keep it where there is room."""
        place, bad = self.total, case.bad
        self.total += 1
        lines = self._lines[bad]
        if lines.count >= self._most_cases or self._rooms[bad] <= 0:
            return
        documents = record.get("documents") or ()
        names = [digest(document) for document in documents]
        new = {
            name: _line({"id": document.get("id"), "text": document.get("text"), "title": _title(document)})
            for name, document in zip(names, documents, strict=True)
            if name not in self._places
        }
        places = {name: self._places.get(name) for name in names}
        places |= {name: len(self._places) + i for i, name in enumerate(new)}
        line = _line(_case(case, record, place, [places[name] for name in names]))
        size = len(line) + sum(map(len, new.values()))
        if size > self._rooms[bad]:
            return
        self._rooms[bad] -= size
        lines.add(line)
        for name, document_line in new.items():
            self._places[name] = len(self._places)
            self.documents.add(document_line)

    def cases(self) -> Iterator[str]:
        """Return the lines of the cases, those with trouble first."""
        left = self._most_cases
        for lines in self._lines.values():
            for line in lines:
                if not left:
                    return
                left -= 1
                yield line

    def close(self) -> None:
        """Let the temporary files go."""
        self.documents.close()
        for lines in self._lines.values():
            lines.close()


def _line(value: Any) -> bytes:
    return compact(value).replace(b"<", b"\\u003c") + b"\n"


def _title(document: Mapping[str, Any]) -> str | None:
    title = (document.get("metadata") or {}).get("title")
    return title if isinstance(title, str) else None


def _case(case: CaseResult, record: Mapping[str, Any], place: int, documents: Sequence[int | None]) -> dict[str, Any]:
    texts = [document.get("text") or "" for document in record.get("documents") or ()]
    return {
        "place": place,
        "id": case.id,
        "slice": case.slice,
        "question": case.question,
        "answer": case.answer,
        "label": case.label,
        "date": case.date,
        "broken": case.broken_part,
        "metadata": record.get("metadata") or {},
        "documents": documents,
        "outcome": case.outcome,
        "verdicts": {name: _verdict(verdict, case.answer, texts) for name, verdict in case.verdicts.items()},
    }


def _verdict(verdict: VerdictResult, answer: str, texts: Sequence[str]) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "score": verdict.score,
        "feedback": verdict.feedback,
        "threshold": verdict.threshold,
        "claims": [_claim(claim, answer, texts) for claim in verdict.claims],
    }


def _claim(claim: ClaimResult, answer: str, texts: Sequence[str]) -> dict[str, Any]:
    found = claim.evidence
    span = None if claim.start is None or claim.end is None else _units(answer, claim.start, claim.end)
    evidence = found and {"document": found.place, "span": _units(texts[found.place], found.start, found.end)}
    return {
        "text": claim.text,
        "span": span,
        "outcome": claim.outcome,
        "support": claim.support,
        "why": claim.why,
        "evidence": evidence,
    }


def _units(text: str, start: int, end: int) -> list[int]:
    """Return a span in UTF-16 units, which browsers count in."""
    if text.isascii() or max(text) <= HIGHEST_16_BIT:
        return [start, end]
    before, inside = (len(part.encode("utf-16-le", "surrogatepass")) // 2 for part in (text[:start], text[start:end]))
    return [before, before + inside]
