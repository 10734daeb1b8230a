"""Rows of CSV."""

import csv
import io

import pytest

from minicheck_eval.contract import Document
from minicheck_eval.harness.cases import Case, load, read_cases

HEADER = "id,question,slice,documents,answer,must_retrieve,label,date,in_scope,metadata"


def read(tmp_path, text: str | bytes) -> list[str]:
    path = tmp_path / "c.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [f"{i.id}" if isinstance(i, Case) else f"{i.line}: {i.message}" for i in read_cases(path)]


def case_of(tmp_path, **cells: str) -> Case:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["id", *cells])
    writer.writeheader()
    writer.writerow({"id": "a", **cells})
    path = tmp_path / "c.csv"
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")
    return load(path).cases[0]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("plain text", (Document("plain text"),)),
        ("two\nlines", (Document("two\nlines"),)),
        ("[1] A footnote", (Document("[1] A footnote"),)),
        ("{braces}", (Document("{braces}"),)),
        ('["one", {"id": 2, "text": "two"}]', (Document("one"), Document("two", "2"))),
        ('{"id": "x", "text": "t"}', (Document("t", "x"),)),
        ("[]", ()),
        ("", ()),
    ],
)
def test_cells_of_documents(tmp_path, cell, expected):
    """A cell holds a list or an object of JSON, or plain text, which is one document."""
    assert expected == case_of(tmp_path, documents=cell).documents


def test_other_cells(tmp_path):
    """Lists, truth values and metadata are read; an empty cell is one that is not there."""
    case = case_of(
        tmp_path, must_retrieve="a; b;", label="TRUE", in_scope="0", metadata='{"k": 1}', date="2026-08-31", slice=""
    )
    assert (("a", "b"), True, False, {"k": 1}) == (case.must_retrieve, case.label, case.in_scope, case.metadata)
    assert ("2026-08-31", "all", None) == (case.date, case.slice, case.answer)
    assert ("c d",) == case_of(tmp_path, must_retrieve='["c d"]').must_retrieve


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,answer\n1,x\n\n2,y", ["1", "2"]),
        ("\n id , answer \r\n1,x\r\n", ["1"]),
        ('id,answer\n1,"x\ny"\n2,z\n', ["1", "2"]),
        ("id,answer\n1,x,z\n2,y\n", ["2: the row has 3 cells, the header has 2", "2"]),
        ("id,answer\n1\n2,y\n", ["2: the row has 1 cells, the header has 2", "2"]),
        ('id,answer\n1,"x\n2,y\n3,z\n', ["2: is not CSV: unexpected end of data", "2", "3"]),
        ('id,answer\n1,"x\n2,"y"\n3,z\n', ["2: is not CSV: ',' expected after '\"'", "2", "3"]),
        ("id,answer\n1,x\0\n2,y\n", ["2: a NUL byte", "2"]),
        ("id,label\n1,maybe\n2,1\n", ["2: label: should be true, false, 1 or 0 (given: 'maybe')", "2"]),
        (
            'id,metadata\n1,{oops\n2,"{""a"": 1}"\n',
            ["2: metadata: the cell is not JSON: expecting property name enclosed in double quotes", "2"],
        ),
        ("id,anwser\n1,x\n", ['1: unknown key "anwser" (did you mean "answer"?); the rows are not read']),
        ("id,id\n1,x\n", ["1: the header has the column 'id' twice; the rows are not read"]),
        ("id,answer\n1,x\n1,y\n", ["1", "3: the id '1' is already that of line 2"]),
    ],
)
def test_good_rows_around_bad_ones(tmp_path, text, expected):
    """A bad row is a problem at the line where it begins, and the rows after it are read."""
    assert expected == read(tmp_path, text)


def test_bad_bytes_spoil_their_row_alone(tmp_path):
    """A byte that is no UTF-8 leaves the other rows."""
    found = read(tmp_path, b"id,answer\n1,x\n2,\xff\n3,z\n")
    assert ["1", "3: bytes that are no text in the file's encoding, at character 3", "3"] == found


def test_a_long_cell_and_the_limit_of_the_process(tmp_path):
    """A cell beyond the csv module's limit is read, and the limit of the process is as before."""
    before = csv.field_size_limit()
    assert 1_000_000 == len(case_of(tmp_path, answer="x" * 1_000_000).answer)
    assert before == csv.field_size_limit()
