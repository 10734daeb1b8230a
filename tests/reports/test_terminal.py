"""The report on a terminal, in a pipe and on a stream that knows only ASCII."""

import io
import json

import pytest
from rich.console import Console

from minicheck_eval.harness.gates import GateRule, check
from minicheck_eval.harness.run import Run
from minicheck_eval.harness.summary import summarise
from minicheck_eval.reports.terminal import print_report

ODD = [
    "[red]markup[/red] [/] [",
    "\x1b]0;title\x07\x1b[2J",
    "\ud800 lone",
    "漢字" * 30,
    "\u202eevil",
    "x" * 3000,
    "\x00",
    "",
]


def record(name: str, outcome: str = "pass", part: str = "all", **verdict) -> dict:
    score = {"pass": 0.9, "fail": 0.1}.get(outcome)
    found = {"pass": outcome == "pass", "outcome": outcome, "score": score, "feedback": "said so", "metadata": {}}
    documents = [
        {"id": "policy.md", "text": "Goods may be returned within 30 days. Not later.", "metadata": {}},
        {"id": None, "text": "Another.", "metadata": {}},
    ]
    return {"id": name, "slice": part, "documents": documents, "verdicts": {"fact-checking": {**found, **verdict}}}


@pytest.fixture
def report(tmp_path):
    """Print the report of some records and return it as text."""

    def print_it(records: list[dict], *, encoding: str = "utf-8", width: int = 80, left_out: int = 0, **options) -> str:
        rule = options.pop("rule", GateRule())
        (tmp_path / "results.jsonl").write_bytes(b"".join(json.dumps(r).encode() + b"\n" for r in records))
        summary = summarise(records)
        cases = {"count": len(records), "path": "cases.jsonl", "left_out": [{}] * left_out}
        header = {"judge": {"judge": "fake"}, "cases": cases, "usage": options.pop("usage", {})}
        run = Run(directory=tmp_path, header=header, summary=summary, decision=check(summary, rule))
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
        print_report(run, Console(file=stream, width=width), **options)
        stream.flush()
        return raw.getvalue().decode(encoding)

    return print_it


def flat(text: str) -> str:
    return " ".join(text.split())


def test_rates_stand_with_counts_interval_and_coverage(report):
    """Each slice has a line with k/n, rate, Wilson interval, coverage and the counts of what has no verdict."""
    records = [record(f"r{i}", "fail" if i < 2 else "pass", "returns") for i in range(20)]
    records += [record("i", "invalid", "odd"), record("e", "error", "odd"), record("n", "not_checkable", "odd")]
    text = report(records, rule=GateRule(min_rate=0.9, max_unjudged=2))
    assert "fake on 23 cases of cases.jsonl" in text
    assert "UNDECIDED" in text
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert ["18/20", "90.0", "%", "69.9-97.2", "100.0", "%", "0", "0", "0"] == lines["returns"][1:]
    assert ["0/0", "none", "none", "0.0", "%", "1", "1", "1"] == lines["odd"][1:]
    assert ["18/20", "90.0", "%", "69.9-97.2", "87.0", "%", "1", "1", "1"] == lines["overall"][1:]


def test_a_failing_case_shows_claim_and_evidence(report):
    """The failed claim stands with its support and the best chunk; the claims that passed do not."""
    claims = [
        {"text": "Fine.", "outcome": "pass", "support": 0.9, "document": "policy.md", "chunk": {"start": 0, "end": 3}},
        {
            "text": "60 days.",
            "outcome": "fail",
            "support": 0.031,
            "document": "policy.md",
            "chunk": {"start": 0, "end": 37},
        },
        {"text": "By place.", "outcome": "fail", "support": 0.2, "document": 1, "chunk": {"start": 0, "end": 8}},
    ]
    text = flat(report([record("c1", "fail", "returns", metadata={"claims": claims})]))
    assert "FAILED" in text
    assert "fact-checking: 1 case failed c1 [returns], support 0.100" in text
    assert "claim (support 0.031): 60 days. best evidence, policy.md: Goods may be returned within 30 days." in text
    assert "claim (support 0.200): By place. best evidence, 1: Another." in text
    assert "Fine." not in text


def test_a_claim_without_outcome_is_compared_with_the_threshold(report):
    """Claims in the documented shape are enough: text, support, document and chunk."""
    claims = [
        {"text": name, "support": support, "document": None, "chunk": None}
        for name, support in (("good", 0.8), ("bad", 0.3))
    ]
    text = flat(report([record("c1", "fail", metadata={"claims": claims, "threshold": 0.7})]))
    assert "claim (support 0.300): bad" in text
    assert "good" not in text


def test_a_case_without_claims_shows_its_feedback(report):
    """An error says why, and a claim that was not judged says what stood in the way."""
    claims = [
        {
            "text": "Too long.",
            "outcome": "invalid",
            "support": None,
            "document": None,
            "chunk": None,
            "detail": "9 tokens",
        }
    ]
    text = flat(
        report(
            [
                record("e", "error", feedback="The judge failed: boom"),
                record("i", "invalid", metadata={"claims": claims}),
            ]
        )
    )
    assert "COULD NOT JUDGE" in text
    assert "1 case got no answer e [all] The judge failed: boom" in text
    assert "1 case got no usable answer i [all] claim (no support known): Too long. best evidence: 9 tokens" not in text
    assert "claim (no support known): Too long. why: 9 tokens" in text


def test_many_failures_are_capped_and_counted(report):
    """The first cases and claims are shown, and how many more there are."""
    claims = [
        {"text": f"claim {i}", "outcome": "fail", "support": 0.1, "document": None, "chunk": None} for i in range(5)
    ]
    text = flat(report([record(f"c{i}", "fail", metadata={"claims": claims}) for i in range(25)], most_cases=4))
    assert "25 cases failed" in text
    assert "c3 [all]" in text
    assert "c4 [all]" not in text
    assert "and 2 more claims" in text
    assert "and 21 more, in results.jsonl" in text


def test_what_was_left_out_is_said(report):
    """A report over a part of the file says so."""
    assert "3 bad rows were left out" in report([record("a")], left_out=3)
    assert "left out" not in report([record("a")])


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("width", [20, 80, 200])
def test_odd_text_never_ends_a_report(report, encoding, width):
    """Markup, control codes, lone surrogates, wide and endless text come out as text in any encoding and width."""
    records = []
    for i, odd in enumerate(ODD):
        claim = {"text": odd, "outcome": "fail", "support": 0.1, "document": odd, "chunk": {"start": 0, "end": 9999}}
        records.append(record(f"{odd}{i}", "fail", odd, feedback=odd, metadata={"claims": [claim] if i % 2 else []}))
        records[-1]["documents"] = [{"id": odd, "text": odd, "metadata": {}}]
    text = report(records, encoding=encoding, width=width)
    assert not set(text) & {chr(i) for i in range(32) if i != 10} - {""}
    assert "\u202e" not in text
    assert width < 80 or "[red]markup[/red] [/] [" in text
    assert "FAILED" in text


def test_80_columns_hold_the_table(report):
    """No line is wider than the terminal, with long names of slices and large counts."""
    records = [
        record(f"c{i}", "pass" if i % 10 else "fail", f"a-rather-long-name-of-a-slice-{i % 2}") for i in range(2000)
    ]
    text = report(records)
    assert 80 >= max(len(line) for line in text.splitlines())
    assert {"800/1000", "1000/1000", "1800/2000"} <= set(text.split())


def test_a_pipe_gets_no_colours(report):
    """Without a terminal there are no escape sequences."""
    assert "\x1b" not in report([record("a", "fail")])


def test_the_cost_of_each_judge_and_who_decided_are_told(report):
    """With a fallback one sees how often each judge was asked, what that cost, and how many verdicts it gave."""
    records = [record(f"r{i}", metadata={"decided_by": "small" if i else "large"}) for i in range(5)]
    small = {"prompts": 1200, "asked_tokens": 50000, "computed_tokens": 20000, "reply_tokens": 0, "calls": 7}
    large = {"prompts": 1, "asked_tokens": 80, "computed_tokens": 80, "reply_tokens": 12, "calls": 2}
    usage = {"fact-checking": {"small": {**small, "seconds": 2.5}, "large": {**large, "seconds": 0.75}}}
    text = flat(report(records, usage=usage, width=120))
    assert (
        "fact-checking, small: 1,200 prompts, 50,000 tokens (20,000 computed), 7 calls, 2.5 s; it decided 4 cases"
    ) in text
    assert "fact-checking, large: 1 prompt, 80 tokens, 12 tokens of replies, 2 calls, 0.8 s; it decided 1 case" in text
