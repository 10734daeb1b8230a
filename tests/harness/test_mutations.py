"""Ten thousand damaged files of cases: a clear answer each time, and no good row lost."""

import gzip
import json
import random
from pathlib import Path

import pytest

from minicheck_eval.errors import CasesError
from minicheck_eval.harness.cases import Case, Problem, load, read_cases
from minicheck_eval.harness.files import encode

FILES = 10_000
NAMES = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")
WRONG = (None, True, 7, -1.5, "text", [], {}, [[]], {"a": {}}, [None], 10**300, "\ud800", "\x00", "x" * 5000)
JUNK = (
    b"\0",
    b"\0" * 40,
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\r",
    b"\n",
    b'"',
    b"{",
    b"]",
    b"\\",
    b"\\ud800",
    b"NaN",
)


def base_rows() -> list[dict]:
    return [
        {
            "id": name,
            "question": f"What of {name}? äöü 漢字",
            "slice": "ab"[i % 2],
            "documents": [
                "A plain text.",
                {"id": f"d{i}", "text": 'Line one,\nline "two"; {x} [y]', "metadata": {"p": i}},
            ],
            "answer": f"It is {name}; lone \ud800." if i == 0 else f"It is {name}.",
            "must_retrieve": [f"d{i}"],
            "label": i % 2 == 0,
            "date": "2026-08-31",
            "in_scope": True,
            "metadata": {"deep": [1, {"k": 2.5}]},
        }
        for i, name in enumerate(NAMES)
    ]


def as_jsonl(rows: list[dict]) -> bytes:
    return b"".join(encode(row) + b"\n" for row in rows)


def as_json(rows: list[dict]) -> bytes:
    return b"[\n" + b",\n".join(encode(row) for row in rows) + b"\n]\n"


def as_csv(rows: list[dict]) -> bytes:
    def cell(value: object) -> str:
        text = value if isinstance(value, str) else encode(value).decode()
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(rows[0]), *(",".join(cell(row.get(key, "")) for key in rows[0]) for row in rows)]
    return "\r\n".join(lines).encode("utf-8", "replace")


FORMATS = {".jsonl": as_jsonl, ".json": as_json, ".csv": as_csv}


def damage_row(generator: random.Random, row: dict) -> dict:
    """Give one row a wrong type, a huge field, a wrong or a missing key."""
    key = generator.choice(list(row))
    match generator.randrange(4):
        case 0:
            return {**row, key: generator.choice(WRONG)}
        case 1:
            return {**row, "x" * generator.randrange(1, 100): 1}
        case 2:
            return {name: value for name, value in row.items() if name != key}
        case _:
            deep: object = "x"
            for _ in range(generator.choice((3, 90, 300))):
                deep = [deep]
            return {**row, "metadata": {"deep": deep, "huge": "y" * generator.randrange(20_000)}}


def damage_bytes(generator: random.Random, data: bytes) -> bytes:
    """Cut, flip, insert, repeat or remove bytes."""
    at, to = sorted(generator.randrange(len(data) + 1) for _ in range(2))
    match generator.randrange(6):
        case 0:
            return data[:at]
        case 1:
            flipped = bytearray(data)
            for _ in range(generator.randrange(1, 4)):
                flipped[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
            return bytes(flipped)
        case 2:
            return data[:at] + generator.choice(JUNK) + data[at:]
        case 3:
            return data[:at] + data[min(to, at + 200) :]
        case 4:
            lines = data.splitlines(keepends=True)
            lines.insert(generator.randrange(len(lines)), generator.choice(lines))
            return b"".join(lines)
        case _:
            return data.replace(b"\n", generator.choice((b"\r\n", b"\n\n", b"\n \t\n")))


def encoded(generator: random.Random, data: bytes) -> bytes:
    """Write the same text in another encoding, now and then."""
    if generator.random() < 0.8:
        return data
    encoding = generator.choice(("utf-8-sig", "utf-16", "utf-16-be"))
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    return (mark + data.decode("utf-8", "replace")).encode(encoding)


def mutate(generator: random.Random, suffix: str, rows: list[dict]) -> bytes:
    if generator.random() < 0.35:
        place = generator.randrange(len(rows))
        rows = [*rows[:place], damage_row(generator, rows[place]), *rows[place + 1 :]]
        return encoded(generator, FORMATS[suffix](rows))
    return damage_bytes(generator, encoded(generator, FORMATS[suffix](rows)))


def untouched(data: bytes, good: dict[bytes, str]) -> set[str]:
    """Name the good rows whose lines still stand in a file as they were."""
    return {good[line] for line in data.split(b"\n") if line in good}


def check_file(path: Path, *, skip_bad: bool) -> set[str]:
    """Read a file both ways; whatever comes can be written and printed.  Return the ids of its cases."""
    found = list(read_cases(path))
    cases = [item for item in found if isinstance(item, Case)]
    problems = [item for item in found if isinstance(item, Problem)]
    assert len(found) == len(cases) + len(problems) > 0
    for case in cases:
        assert json.loads(encode(case.to_json())) == case.to_json()
        assert 64 == len(case.digest)
    for problem in problems:
        assert str(problem).encode()
        assert 500 > len(problem.message)
    check_load(path, cases, problems, skip_bad=skip_bad)
    return {case.id for case in cases}


def check_load(path: Path, cases: list[Case], problems: list[Problem], *, skip_bad: bool) -> None:
    """Load a file; only problems, or nothing to judge, are errors."""
    if problems and not (skip_bad and cases):
        with pytest.raises(CasesError) as caught:
            load(path, skip_bad=skip_bad)
        assert str(path) in str(caught.value)
    else:
        assert cases == list(load(path, skip_bad=skip_bad).cases)


def test_ten_thousand_damaged_files(tmp_path):
    """Each gives cases or problems and never another error, and every line of JSON Lines left as it was is read."""
    generator = random.Random(10_000)
    rows = base_rows()
    good = {encode(row): row["id"] for row in rows}
    lost, clean = [], 0
    for i in range(FILES):
        suffix = generator.choice(list(FORMATS))
        data = mutate(generator, suffix, rows)
        stored = data
        if generator.random() < 0.2:
            stored = gzip.compress(data, 1)
            if generator.random() < 0.5:
                stored, data = damage_bytes(generator, stored), b""
        # A new name each time: emptying a file that exists waits for the disk.
        path = tmp_path / f"cases-{i}{suffix}{'.gz' if stored is not data else ''}"
        path.write_bytes(stored)
        found = check_file(path, skip_bad=i % 2 == 0)
        path.unlink()
        clean += len(found) == len(rows)
        if suffix == ".jsonl" and not untouched(data, good) <= found:
            lost.append((i, untouched(data, good) - found, stored))
    assert [] == lost
    assert FILES / 10 < clean < FILES * 9 / 10
