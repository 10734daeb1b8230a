"""Writing several reports at once."""

import pytest

from minicheck_eval.errors import BadInput, CouldNotJudge
from minicheck_eval.reports.writing import FORMATS, file_names, read_formats, write_reports


def test_all_reports_are_written_from_one_reading(view, record, tmp_path):
    """Each format has its file, and a second time each has the same bytes."""
    found = view([record("a"), record("b", "fail")])
    paths = file_names(read_formats(", ".join(FORMATS)), tmp_path / "out")
    contents = []
    for _ in range(2):
        write_reports(found, paths)
        contents.append({name: path.read_bytes() for name, path in paths.items()})
    assert contents[0] == contents[1]
    assert {"report.html", "report.json", "report.md", "junit.xml"} == {p.name for p in (tmp_path / "out").iterdir()}


def test_an_unknown_format_is_refused():
    """The error names those that there are."""
    for formats in ("html,pdf", "", ","):
        with pytest.raises(BadInput) as error:
            read_formats(formats)
        assert "html" in error.value.hint


def test_an_old_report_stays_where_a_new_one_cannot_be_made(view, record, tmp_path):
    """A file is replaced as a whole or not at all, and nothing else is left behind."""
    found = view([record("a")])
    path = tmp_path / "out" / "report.json"
    write_reports(found, {"json": path})
    before = path.read_bytes()
    with (found.directory / "results.jsonl").open("ab") as stream:
        stream.write(b'{"id": "b", "slice": "s", "verdicts": {"x": {"outcome": "pass", "metadata": {"claims": [{}]}}}}')
    with pytest.raises(KeyError):
        write_reports(found, {"json": path, "html": tmp_path / "out" / "report.html"})
    assert before == path.read_bytes()
    assert ["report.json"] == [p.name for p in path.parent.iterdir()]


def test_a_file_that_cannot_be_written_is_named(view, record, tmp_path):
    """The error says which and why."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CouldNotJudge, match="cannot be written"):
        write_reports(view([record("a")]), {"json": tmp_path / "file" / "report.json"})
