"""What the tests of reports share: a finished run in a folder, made of records and without a judge."""

import json
import shutil

import pytest

from minicheck_eval.harness.files import encode
from minicheck_eval.harness.gates import GateRule, check
from minicheck_eval.harness.summary import summarise
from minicheck_eval.reports.view import open_view

POLICY = "Goods may be returned within 30 days. Not later."
HOSTILE = [
    "</script><script>window.hit = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hit = 1'>",
    '" onmouseover="window.hit = 1" x=\'',
    "{{ 7 * 7 }} {% raw %}",
    "\u202egnp.exe\u2066 \x07\x00",
    "\ud800 lone",
    "مرحبا بالعالم, שלום",
    "👩‍👩‍👧 astral 𝒳",
    "]]> & &amp; &lt;",
    "` `` ``` | @everyone #1 [a](javascript:alert(1)) **b** </details>",
]
JUDGE = {
    "judge": "fake", "model": "none", "revision": "1", "backend": "fake", "dtype": "none", "quantization": "",
    "threshold": 0.5, "chunk_aggregation": "max", "claim_aggregation": "min", "package": "1",
}  # fmt: skip


def make_claim(text: str, support: float | None, start: int = 0, **changes) -> dict:
    outcome = "invalid" if support is None else "pass" if support > 0.5 else "fail"
    chunk = {"document": "policy.md", "chunk": {"start": 0, "end": 37}}
    span = {"start": start, "end": start + len(text)}
    return {"text": text, **span, "outcome": outcome, "support": support, **chunk, **changes}


def make_record(name: str, outcome: str = "pass", part: str = "all", **changes) -> dict:
    """Make the record of a case with one claim, which is its answer."""
    support = {"pass": 0.9, "fail": 0.1}.get(outcome)
    answer = changes.pop("answer", f"The answer of {name}.")
    claims = changes.pop("claims", [make_claim(answer, support)])
    metadata = {"threshold": 0.5, "claims": claims}
    verdict = {"pass": outcome == "pass", "outcome": outcome, "score": support, "feedback": "said so"}
    documents = [{"id": "policy.md", "text": POLICY, "metadata": {"title": "The policy"}}]
    return {
        "id": name, "slice": part, "question": f"What of {name}?", "answer": answer, "documents": documents,
        "verdicts": {"fact-checking": {**verdict, "metadata": metadata}}, "label": None, "date": None,
        "in_scope": True, "metadata": {}, **changes,
    }  # fmt: skip


@pytest.fixture
def record():
    """Make the record of a case."""
    return make_record


@pytest.fixture
def claim():
    """Make a claim of a record."""
    return make_claim


@pytest.fixture
def hostile():
    """Texts that try to be more than text."""
    return HOSTILE


@pytest.fixture
def run_folder(tmp_path):
    """Put a finished run into a folder."""

    def put(records, *, rule=None, name="run", **changes):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "results.jsonl").write_bytes(b"".join(encode(record) + b"\n" for record in records))
        summary = summarise(json.loads(encode(record)) for record in records)
        decision = check(summary, rule or GateRule())
        cases = {"path": "cases.jsonl", "sha256": "c" * 64, "count": len(records), "left_out": []}
        header = {
            "schema": 1, "status": "finished", "judge": JUDGE, "judge_digest": "d" * 64, "cases": cases,
            "packages": {"python": "3"}, "git": None, "arguments": {}, "meta": {}, "usage": {},
            "started_at": "2026-01-01T00:00:00+00:00", "finished_at": "2026-01-01T00:01:00+00:00",
            "summary": summary.to_json(), "decision": decision.to_json(),
        }  # fmt: skip
        (folder / "run.json").write_bytes(encode({**header, **changes}))
        return folder

    return put


@pytest.fixture
def view(run_folder):
    """View a run made of records, and beside it a baseline."""

    def open_it(records, *, baseline=None, **options):
        other = None if baseline is None else run_folder(baseline, name="baseline")
        return open_view(run_folder(records, **options), other)

    return open_it


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium; tests that need it are skipped where there is none."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("there is no Chromium on the path")
    with sync_playwright() as playwright:
        # A container has no user namespaces for the sandbox, and the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
