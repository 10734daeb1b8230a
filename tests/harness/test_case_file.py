"""Cases that lie on the disk read as they were written."""

import gc
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.contract import Document
from minicheck_eval.errors import CouldNotJudge
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.case_file import CaseFile

TEXTS = st.text(st.characters(codec=None))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
METADATA = st.dictionaries(TEXTS, VALUES, max_size=3)
DOCUMENTS = st.builds(Document, st.none() | TEXTS, st.none() | TEXTS, METADATA)
CASES = st.builds(
    Case,
    id=TEXTS,
    question=TEXTS,
    slice=TEXTS,
    documents=st.lists(DOCUMENTS, max_size=3).map(tuple),
    answer=st.none() | TEXTS,
    must_retrieve=st.lists(TEXTS, max_size=3).map(tuple),
    label=st.none() | st.booleans(),
    date=st.none() | TEXTS,
    in_scope=st.booleans(),
    metadata=METADATA,
)


def kept(cases):
    """Put cases on the disk."""
    found = CaseFile()
    for case in cases:
        found.append(case)
    return found


@given(st.lists(CASES, max_size=4))
def test_cases_read_as_they_were_written(cases):
    """Any case, lone surrogates and nested metadata included, comes back equal, in its place."""
    found = kept(cases)
    assert (len(cases), cases, cases[::-1]) == (len(found), list(found), [*reversed(found)])
    assert cases[1:3] == found[1:3]


def test_a_case_may_be_added_after_one_was_read():
    """Reading moves no case that is written later."""
    found = kept([Case(id="a")])
    assert "a" == found[0].id
    found.append(Case(id="b", answer="B"))
    assert ["a", "b"] == [case.id for case in found]
    assert "B" == found[-1].answer
    with pytest.raises(IndexError):
        found[2]


def test_the_file_goes_with_the_cases():
    """Nothing is left open, and no warning is given, when the cases are let go."""
    found = kept([Case(id="a")])
    stream = found._file
    del found
    gc.collect()
    assert stream.closed


def test_a_full_disk_is_told(monkeypatch):
    """What cannot be written raises an error that names the folder of temporary files."""
    found = kept([Case(id="a")])

    class Full:
        def seek(self, _):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(found, "_file", Full())
    with pytest.raises(CouldNotJudge, match=f"{Path(tempfile.gettempdir())} cannot be written: No space left"):
        found.append(replace(Case(id="b"), answer="c"))
