"""Rows of one JSON document, also of a broken one."""

import json

import pytest

from minicheck_eval.harness.cases import Case, read_cases


def read(tmp_path, text: str | bytes) -> list[str]:
    path = tmp_path / "c.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [f"{i.id}" if isinstance(i, Case) else f"{i.line}: {i.message}" for i in read_cases(path)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"id": "a"}, {"id": "b"}]', ["a", "b"]),
        ('\n [\n{"id": "a"}\n,{"id": "b"}\n]\n', ["a", "b"]),
        ('{"cases": [{"id": "a"}, {"id": "b"}]}', ["a", "b"]),
        ('[{"id": "a"}, {"id": "b"', ["a", "1: the file ends in the middle (expecting ',' delimiter)"]),
        ('[{"id": "a"},\n {"id": "b"}', ["a", "b", "2: the file ends in the middle (expected , or ])"]),
        ('[{"id": "a"},\n', ["a", "2: the file ends in the middle (expecting value)"]),
        ("[", ["1: the file ends in the middle (expecting value)"]),
        ('[{"id": "a"},\n{"id": oops},\n{"id": "c"}]', ["a", "2: is not JSON: expecting value", "c"]),
        (
            '[{"id": "a"}, {"id": NaN}, {"id": "c"}]',
            ["a", "1: NaN is not a value of JSON; leave the key out or write null", "c"],
        ),
        (
            '[oops, {"id": "b"}, "x", {"id": "c"}, nul]',
            [
                "1: is not JSON: expecting value",
                "b",
                "1: a row should be an object, not a string",
                "c",
                "1: is not JSON: expecting value",
            ],
        ),
        ('["abc', ["1: the file ends in the middle (unterminated string starting at)"]),
        ('[{"id": "a"},]', ["a", "1: is not JSON: expecting value"]),
        ('[{"id": "a", "id": "b"}, {"id": "c"}]', ['1: the key "id" stands twice in one object', "c"]),
        ('[{"id": "a"},\n7,\n{"id": "c"}]', ["a", "2: a row should be an object, not a number", "c"]),
        (
            '{"cases": [{"id": "a"}], "casses": 1}',
            ["a", '1: unknown key "casses" (did you mean "cases"?) beside cases'],
        ),
        ('{"id": "a"}', ['1: the file should hold a list of rows, or {"cases": [...]}; what follows is not read']),
        ("7", ['1: the file should hold a list of rows, or {"cases": [...]}; what follows is not read']),
        (
            '[{"id": "a"}]\n[]',
            ["a", "2: more text after the end; one row a line belongs into a .jsonl file; what follows is not read"],
        ),
    ],
)
def test_good_rows_of_a_document(tmp_path, text, expected):
    """Good rows are read before a tear and around a broken row; problems name the line."""
    assert expected == read(tmp_path, text)


def test_bad_bytes_spoil_their_row_alone(tmp_path):
    """A byte that is no UTF-8 inside one row leaves the others."""
    found = read(tmp_path, b'[{"id": "a"},\n{"id": "\xff"},\n{"id": "c"}]')
    assert ["a", "2: bytes that are no text in the file's encoding, at character 9", "c"] == found


def test_a_deep_row_spoils_itself_alone(tmp_path):
    """A row that is nested without end is passed over, and the next is read."""
    deep = '{"id": "b", "metadata": {"a": ' + "[" * 5000 + "]" * 5000 + "}}"
    assert ["a", "1: nested more than 100 levels deep", "c"] == read(
        tmp_path, f'[{{"id": "a"}}, {deep}, {{"id": "c"}}]'
    )


def test_every_tear_keeps_the_rows_before_it(tmp_path):
    """A document cut anywhere gives exactly the rows that are complete, and says that it is torn."""
    rows = [{"id": f"c{i}", "answer": 'a "quoted" [text] {with} brackets\\'} for i in range(4)]
    text = json.dumps(rows)
    ends = [len(json.dumps(rows[: i + 1])) - 1 for i in range(len(rows))]
    for cut in range(1, len(text)):
        complete = sum(end <= cut for end in ends)
        found = read(tmp_path, text[:cut])
        assert [row["id"] for row in rows[:complete]] == found[:complete]
        assert 1 == len(found) - complete
        assert "the file ends in the middle" in found[-1]


@pytest.mark.parametrize(
    "text", ['["' + '\\"' * 500_000, "[" + "{" * 500_000, "[" + '{"a":"' * 100_000, '["' + "\\" * 500_001]
)
def test_hostile_documents_are_read_in_one_pass(tmp_path, text):
    """What opens and never closes is one problem, found without going over the text again and again."""
    (message,) = read(tmp_path, text)
    assert "the file ends in the middle" in message


def test_many_bad_rows_are_read_in_one_pass(tmp_path):
    """Each of 20,000 broken rows is named with its line."""
    found = read(tmp_path, "[" + ",\n".join(f'{{"id": "{i}", "label": x}}' for i in range(20_000)) + "]")
    assert 20_000 == len(found)
    assert "20000: is not JSON: expecting value" == found[-1]
