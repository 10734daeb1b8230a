"""What can be read from files of cases, and what is said about the rest."""

import gzip
import json
from pathlib import Path

import pytest

from minicheck_eval.contract import Document, EvaluationRequest
from minicheck_eval.errors import CasesError
from minicheck_eval.harness.cases import Case, Problem, load, read_cases

ROW = {"id": "a", "question": "What?", "documents": ["It is so."], "answer": "It is so."}


def write(tmp_path: Path, name: str, content: bytes | str) -> Path:
    data = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def rows(*ids: str) -> str:
    return "".join(json.dumps({**ROW, "id": name}) + "\n" for name in ids)


def ids(path: Path) -> list[str]:
    return [item.id if isinstance(item, Case) else f"line {item.line}" for item in read_cases(path)]


def messages(path: Path) -> list[tuple[int, str]]:
    return [(item.line, item.message) for item in read_cases(path) if isinstance(item, Problem)]


def test_a_full_row_becomes_a_case(tmp_path):
    """Every column of a row arrives in its field."""
    row = {
        "id": 7,
        "question": "q",
        "slice": "billing",
        "documents": ["plain", {"id": 3, "text": "t", "metadata": {"page": 1}}, {"text": None}],
        "answer": "a",
        "must_retrieve": ["3", 4],
        "label": 1,
        "date": "2026-08-31T10:00:00Z",
        "in_scope": False,
        "metadata": {"nested": [1, 2.5, None]},
    }
    case = load(write(tmp_path, "c.jsonl", json.dumps(row))).cases[0]
    assert case == Case(
        id="7",
        question="q",
        slice="billing",
        documents=(Document("plain"), Document("t", "3", {"page": 1}), Document(None)),
        answer="a",
        must_retrieve=("3", "4"),
        label=True,
        date="2026-08-31T10:00:00Z",
        in_scope=False,
        metadata={"nested": [1, 2.5, None]},
    )
    assert EvaluationRequest("q", case.documents, "a") == case.to_request()


def test_what_is_absent_or_null_has_its_default(tmp_path):
    """A row of an id alone is a case in scope, in the slice `all`, without an answer; null says the same."""
    nulls = dict.fromkeys(
        ["question", "slice", "documents", "answer", "must_retrieve", "label", "date", "in_scope", "metadata"]
    )
    text = json.dumps({"id": "a"}) + "\n" + json.dumps({"id": "b", **nulls})
    first, second = load(write(tmp_path, "c.jsonl", text)).cases
    assert Case(id="a") == first
    assert Case(id="b") == second
    assert ("all", True, None, "") == (first.slice, first.in_scope, first.answer, first.to_request().response)


def test_the_digest_is_that_of_the_content():
    """Equal cases have equal digests, and any other text another; a lone surrogate has one too."""
    assert Case(id="a", answer="x").digest == Case(id="a", answer="x").digest
    assert 3 == len({Case(id="a", answer=answer).digest for answer in ("x", "y", "\ud800")})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"id": "a", "anwser": "x"}, 'unknown key "anwser" (did you mean "answer"?)'),
        ({"id": "a", "Question": "x"}, 'unknown key "Question" (did you mean "question"?)'),
        ({"id": "a", "zzz": 1}, 'unknown key "zzz"'),
        ({"id": "a", "\ud800": 1}, 'unknown key "\\ud800"'),
        ({"id": "a", "documents": [{"txt": "x"}]}, 'unknown key "txt" (did you mean "text"?)'),
        ({"id": "a", "documents": [{"id": "x"}]}, "documents.0.text: Field required"),
        ({"id": "a", "documents": "x"}, "documents: Input should be a valid list"),
        ({"id": "a", "documents": [3]}, "documents.0: should be a string or an object, not a number"),
        ({"id": "a", "documents": [{"text": 3}]}, "documents.0.text: should be a string, not a number"),
        ({"id": "a", "must_retrieve": "x"}, "must_retrieve: Input should be a valid list"),
        ({"question": "x"}, "id: Field required"),
        ({"id": None}, "id: Field required"),
        ({"id": " "}, "id: should not be empty"),
        ({"id": 1.5}, "id: should be a string, not a number"),
        ({"id": True}, "id: should be a string, not a truth value"),
        ({"id": "a", "answer": ["x"]}, "answer: should be a string, not a list"),
        ({"id": "a", "label": "yes"}, "label: should be true, false, 1 or 0"),
        ({"id": "a", "label": 2}, "label: should be true, false, 1 or 0"),
        ({"id": "a", "in_scope": "true"}, "in_scope: should be true, false, 1 or 0"),
        ({"id": "a", "date": "31.8.2026"}, "date: should be a date like"),
        ({"id": "a", "date": "\ud800"}, "date: should be a date like"),
        ({"id": "a", "metadata": []}, "metadata: should be an object, not a list"),
        (["a"], "a row should be an object, not a list"),
        (None, "a row should be an object, not null"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, row, expected):
    """Each wrong key or type is a problem in words, and the row after it is read."""
    path = write(tmp_path, "c.jsonl", json.dumps(row) + "\n" + rows("good"))
    ((line, message),) = messages(path)
    assert 1 == line
    assert expected in message
    assert ["good"] == [case.id for case in load(path, skip_bad=True).cases]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"id": "x', "is not JSON: unterminated string"),
        (b'{"id": "x"} {"id": "y"}', "is not JSON: more text after the value, at character 13"),
        (b'{"id": "x\x00"}', "is not JSON: invalid control character"),
        (b"\x00\x00\x00", "is not JSON: expecting value"),
        (b'{"id": "x", "question": "\xff"}', "bytes that are no text in the file's encoding, at character 26"),
        (b'{"id": "x", "question": "\xed\xa0\x80"}', "bytes that are no text"),
        (b'{"id": "x", "metadata": {"a": NaN}}', "NaN is not a value of JSON"),
        (b'{"id": "x", "metadata": {"a": -Infinity}}', "-Infinity is not a value of JSON"),
        (b'{"id": "x", "metadata": {"a": 1e999}}', "the number 1e999 is too large"),
        (b'{"id": ' + b"9" * 5000 + b"}", "a number of 5000 digits is too large"),
        (b'{"id": "x", "metadata": {"a": ' + b"[" * 150 + b"]" * 150 + b"}}", "nested more than 100 levels deep"),
        (b'{"id": "x", "metadata": {"a": ' + b"[" * 99999, "nested more than 100 levels deep"),
        (b'{"id": "x", "id": "y"}', 'the key "id" stands twice'),
    ],
)
def test_a_broken_line_is_alone(tmp_path, line, expected):
    """A line that is no JSON is a problem with its number, and both its neighbours are read."""
    path = write(tmp_path, "c.jsonl", rows("before").encode() + line + b"\n" + rows("after").encode())
    ((number, message),) = messages(path)
    assert 2 == number
    assert expected in message
    assert ["before", "line 2", "after"] == ids(path)


def test_a_torn_last_line_says_so(tmp_path):
    """The row in whose middle a file ends is called torn; a whole row without a line end is a row."""
    assert ["a", "b"] == ids(write(tmp_path, "whole.jsonl", rows("a", "b").rstrip("\n")))
    path = write(tmp_path, "torn.jsonl", rows("a", "b")[:-20])
    ((line, message),) = messages(path)
    assert 2 == line
    assert message.startswith("the file ends in the middle of this row")


def test_a_second_id_names_the_first(tmp_path):
    """Of two rows with one id the first is kept; a string and a number that read alike are one id."""
    path = write(tmp_path, "c.jsonl", rows("1", "2") + '{"id": 1}\n')
    assert [(3, "the id '1' is already that of line 1")] == messages(path)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("c.jsonl", b"", "the file holds no cases"),
        ("c.json", b"", "the file holds no cases"),
        ("c.json", b"[]", "the file holds no cases"),
        ("c.csv", b"id,answer\n", "the file holds no cases"),
        ("c.jsonl", b"\n \r\n", "the file holds no cases"),
        ("c.jsonl.gz", b"", "the file holds no cases"),
        ("c.txt", b"x", "the name should end in .jsonl, .ndjson, .json, .csv"),
    ],
)
def test_a_file_without_cases_is_an_error_even_when_bad_rows_are_skipped(tmp_path, name, content, expected):
    """Nothing to judge is never a run."""
    path = write(tmp_path, name, content)
    for skip_bad in (False, True):
        with pytest.raises(CasesError, match=expected):
            load(path, skip_bad=skip_bad)


def test_a_file_that_is_not_there_or_no_file_is_an_error(tmp_path):
    """A missing file, a folder and a .gz that is none are said to be that."""
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "plain.jsonl.gz").write_bytes(rows("a").encode())
    assert [(0, "there is no such file")] == messages(tmp_path / "none.jsonl")
    assert [(0, "cannot be read: it is not a file")] == messages(tmp_path / "folder.jsonl")
    assert [(0, "cannot be read: it is named .gz but is not gzip")] == messages(tmp_path / "plain.jsonl.gz")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["c.jsonl", "c.ndjson.gz", "c.json", "c.csv", "c.csv.gz"])
def test_encodings_and_line_ends(tmp_path, name, encoding, end):
    """Byte order marks of UTF-8 and UTF-16 and both line ends are read in every format."""
    # ਊ is U+0A0A: both its bytes are those of a line end.
    texts = ["Grüße ਊ 漢字 😀", "zweite"]
    if ".csv" in name:
        text = "id,answer\n" + "".join(f"{i},{answer}\n" for i, answer in enumerate(texts))
    else:
        lines = [json.dumps({"id": i, "answer": answer}, ensure_ascii=False) for i, answer in enumerate(texts)]
        text = "[\n" + ",\n".join(lines) + "\n]" if name == "c.json" else "\n".join(lines) + "\n"
    mark = b"" if encoding.startswith("utf-8") else "\ufeff".encode(encoding)
    path = write(tmp_path, name, mark + text.replace("\n", end).encode(encoding))
    assert texts == [case.answer for case in load(path).cases]


def test_joined_files_with_a_mark_in_the_middle(tmp_path):
    """A byte order mark at the beginning of any line is passed over."""
    path = write(tmp_path, "c.jsonl", rows("a").encode("utf-8-sig") + rows("b").encode("utf-8-sig"))
    assert ["a", "b"] == ids(path)


def test_half_a_unit_of_utf_16(tmp_path):
    """A file of UTF-16 that ends within a character loses only its last row."""
    text = ("\ufeff" + rows("a", "b")).encode("utf-16-le")[:-1]
    assert ["a", "line 2"] == ids(write(tmp_path, "c.jsonl", text))


def test_a_truncated_gzip_gives_what_stands_before(tmp_path):
    """The rows before the end of a cut .gz are read, and the cut is a problem."""
    names = [f"case-{i:05d}" for i in range(3000)]
    data = gzip.compress(rows(*names).encode())
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    found = ids(path)
    assert names[: len(found) - 1] == found[:-1]
    assert 1000 < len(found)
    assert "the compressed file ends in the middle; what follows is lost" == messages(path)[-1][1]


def test_a_line_of_50_mb(tmp_path):
    """A row of 50 MB is a case like any other, and a broken one is a short problem."""
    long = "x" * 50_000_000
    path = write(tmp_path, "c.jsonl", f'{{"id": "long", "answer": "{long}"}}\n{{"id": "{long}\n' + rows("good"))
    first, problem, last = read_cases(path)
    assert len(long) == len(first.answer)
    assert (2, "good") == (problem.line, last.id)
    assert 200 > len(problem.message)


def test_a_list_of_problems_is_capped(tmp_path):
    """The error names file and line of the first ten problems, counts the others, and says how to go on."""
    path = write(tmp_path, "c.jsonl", rows("good") + "x\n" * 25)
    with pytest.raises(CasesError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert 11 == len(lines)
    assert lines[0].startswith(f"{path}:2: is not JSON")
    assert "and 15 more" == lines[-1]
    assert "mend these rows, or go on with 1 good row: --skip-bad" == caught.value.hint


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    """Leaving bad rows out does not change which file it was."""
    path = write(tmp_path, "c.jsonl", rows("a") + "x\n")
    loaded = load(path, skip_bad=True)
    assert 64 == len(loaded.digest)
    assert (1, 1) == (len(loaded.cases), len(loaded.problems))
    assert load(write(tmp_path, "d.jsonl", rows("a")), skip_bad=True).digest != loaded.digest
