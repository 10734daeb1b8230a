"""report.md."""

import io
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from minicheck_eval.harness.gates import GateRule
from minicheck_eval.reports.markdown import MOST_CHARACTERS, MarkdownReport, code


@pytest.fixture
def report(view):
    """Write report.md and return its text."""

    def write(records, **options):
        found, stream = view(records, **options), io.BytesIO()
        writer = MarkdownReport(found, stream)
        for case, record in found.cases():
            writer.add(case, record)
        writer.finish()
        return stream.getvalue().decode()

    return write


def rows(text: str) -> list[list[str]]:
    """Render the tables and return the cells of each row."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    found: list[list[str]] = []
    for before, token in pairwise(tokens):
        if before.type == "tr_open":
            found.append([])
        if before.type in ("td_open", "th_open"):
            found[-1].append("".join(child.content for child in token.children))
    return found


def test_the_decision_stands_on_top_of_the_rates(report, record):
    """Title, reasons, and a line for each slice with its counts, rate, interval and coverage."""
    records = [record(f"r{i}", "fail" if i < 2 else "pass", "returns") for i in range(20)] + [record("o", part="other")]
    text = report(records, rule=GateRule(min_rate=0.8))
    assert text.startswith("## ✅ Passed\n")
    assert ["returns", "18/20", "90.0 %", "69.9–97.2 %", "100.0 %", "0", "0", "0"] in rows(text)
    assert ["overall", "19/21", "90.5 %", "71.1–97.3 %", "100.0 %", "0", "0", "0"] in rows(text)


def test_a_failing_case_stands_with_its_claim_and_evidence(report, record, claim):
    """The claim that failed is shown with its support and the best chunk, the one that passed is not."""
    text = report([record("c1", "fail", claims=[claim("Fine.", 0.9), claim("60 days.", 0.031)])])
    assert "support 0.031: `60 days.`" in text
    assert "best evidence, `policy.md`: `Goods may be returned within 30 days.`" in text
    assert "Fine." not in text


def test_hostile_text_is_only_ever_code(report, record, hostile):
    """Nothing from a case is markup: no element, no link, no heading, no cell too many, no mention."""
    records = [record(f"{i}{odd}", "fail", f"{i}{odd}", answer=odd) for i, odd in enumerate(hostile)]
    for case, odd in zip(records, hostile, strict=True):
        case["documents"][0]["text"] = odd
    text = report(records)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    assert {"text", "code_inline", "strong_open", "strong_close", "softbreak", "html_inline"} >= {
        t.type for t in inline
    }
    html = {token.content.strip() for token in inline if token.type == "html_inline"}
    assert {"<sub>", "</sub>"} >= html
    assert {10} >= {len(row) + 2 for row in rows(text)}
    outside = "".join(token.content for token in inline if token.type == "text")
    assert "@" not in outside
    assert "javascript" not in outside


@pytest.mark.parametrize("text", ["`", "``a`", "a|b", " ", "", "`` ` ``", "\n", "a\\"])
def test_code_holds_any_text(text):
    """A span of code shows the text, whatever backticks it has."""
    (paragraph,) = [t for t in MarkdownIt("commonmark").parse(f"x{code(text)}y") if t.type == "inline"]
    assert ["text", "code_inline", "text"] == [child.type for child in paragraph.children]
    assert text.strip() == paragraph.children[1].content.strip()


def test_a_long_report_fits_into_a_comment(report, record, claim):
    """Cases are left out, and counted, before the text is too long."""
    claims = [claim("x" * 1000, 0.1) for _ in range(5)]
    records = [record(f"c{i}-{o}", o, claims=claims) for o in ("fail", "invalid", "error") for i in range(2000)]
    for place, case in enumerate(records):
        case["slice"] = f"slice {place % 300}"
        case["documents"][0]["text"] = "y" * 1000
    text = report(records)
    assert MOST_CHARACTERS + 1000 > len(text)
    assert "and 250 more" in text
    assert "more, in results.jsonl" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_baseline_stands_beside_the_rates(report, record):
    """The table has the baseline and the difference, and the cases that changed are named."""
    before = [record(f"r{i}", "fail" if i < 2 else "pass") for i in range(20)]
    text = report([record(f"r{i}", "fail" if i < 5 else "pass") for i in range(20)], baseline=before)
    assert ["18/20 = 90.0 %", "-15.0 [-35.5, +4.5]"] == rows(text)[1][-2:] or "18/20 = 90.0 %" in rows(text)[1]
    assert "**3 newly failing**: `r2`, `r3`, `r4`" in text
    assert "not a drop one can see" in text


def test_what_broke_and_what_was_replayed_are_told(report, record):
    """A case that failed says whether retrieval or generation broke, and the foot names the recording."""
    tapes = {"fake": {"folder": "tape", "mode": "replay-only", "first": "2026-01-01", "last": "2026-01-02"}}
    text = report([record("a", "fail", broken_part="generation")], tapes=tapes, app={"name": "app:ask"})
    assert "`generation` broke" in text
    assert "answered by `app:ask`" in text
    assert "`fake` from the tape `tape`, `replay-only, recorded 2026-01-01 to 2026-01-02`" in text


def test_one_is_not_many(report, record, claim):
    """One case, one row and one more claim are told as one."""
    cases = {"path": "cases.jsonl", "sha256": "c" * 64, "count": 1, "left_out": [{}]}
    text = report([record("a", "fail", claims=[claim("x", 0.1)] * 4)], cases=cases)
    for words in ("on 1 case of `cases.jsonl`", "**1 bad row was left out**", "and 1 more claim\n"):
        assert words in text
