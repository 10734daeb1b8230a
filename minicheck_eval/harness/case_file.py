"""Cases on the disk: in memory is only where each of them stands, so that a run may have millions."""

from __future__ import annotations

import marshal
import weakref
from array import array
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from threading import Lock
from typing import Any, overload

from minicheck_eval.contract import Document
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.files import writing

__all__ = ["CaseFile"]


class CaseFile(Sequence[Case]):
    """A sequence of cases in a temporary file, which goes with it; each is read when it is asked for."""

    def __init__(self) -> None:
        self._folder = Path(gettempdir())
        with writing(self._folder):
            self._file = TemporaryFile()  # noqa: SIM115 - it is closed with the sequence
        self._starts = array("Q", [0])
        self._lock = Lock()  # an application may be asked in another thread
        weakref.finalize(self, self._file.close)

    def append(self, case: Case) -> None:
        """Add a case at the end; a disk that is full raises `CouldNotJudge`."""
        line = marshal.dumps(_packed(case))
        with self._lock, writing(self._folder):
            self._file.seek(self._starts[-1])
            self._file.write(line)
            self._starts.append(self._starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, place: int) -> Case: ...
    @overload
    def __getitem__(self, place: slice) -> list[Case]: ...
    def __getitem__(self, place: int | slice) -> Case | list[Case]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        start = self._starts[place]
        with self._lock, writing(self._folder):
            self._file.seek(start)
            line = self._file.read(self._starts[place + 1] - start)
        # This very process wrote it.
        return _unpacked(marshal.loads(line))  # noqa: S302


def _packed(case: Case) -> tuple[Any, ...]:
    own = case.id, case.question, case.slice, case.answer, case.must_retrieve, case.label, case.date, case.in_scope
    documents = [(document.text, document.id, dict(document.metadata)) for document in case.documents]
    return own, dict(case.metadata), documents


def _unpacked(packed: tuple[Any, ...]) -> Case:
    (name, question, part, answer, must_retrieve, label, date, in_scope), metadata, documents = packed
    return Case(
        id=name,
        question=question,
        slice=part,
        documents=tuple(Document(*document) for document in documents),
        answer=answer,
        must_retrieve=must_retrieve,
        label=label,
        date=date,
        in_scope=in_scope,
        metadata=metadata,
    )
