"""report.html as a file: what is in it without a browser."""

import io
import re
from html.parser import HTMLParser

import pytest

from minicheck_eval.reports.html import HtmlReport


@pytest.fixture
def report(view):
    """Write report.html and return its text."""

    def write(records, **options):
        found, stream = view(records, **options), io.BytesIO()
        writer = HtmlReport(found, stream)
        for case, record in found.cases():
            writer.add(case, record)
        writer.finish()
        writer.close()
        return stream.getvalue().decode()

    return write


class Elements(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_page_needs_nothing_else(report, record):
    """No element loads anything, and the policy of the page forbids it."""
    text = report([record("a", "fail")])
    elements = Elements(text).found
    assert not [name for tag, attributes in elements for name in attributes if name in ("src", "srcset", "action")]
    assert {"link", "img", "iframe", "object", "embed", "base"}.isdisjoint(tag for tag, _ in elements)
    hrefs = {a["href"] for _, a in elements if "href" in a}
    assert {"#cases"} == hrefs
    (policy,) = [a["content"] for tag, a in elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_rates_can_be_read_without_a_script(report, record):
    """Decision, reasons, rates and intervals are in the page itself."""
    text = report([record(f"r{i}", "fail" if i < 2 else "pass", "returns") for i in range(20)])
    plain = re.sub(r"<[^>]*>", " ", text.split("<script")[0])
    assert {"Failed", "18/20", "90.0", "returns"} <= set(plain.split())
    assert "69.9–97.2 %" in plain


def test_the_interval_is_drawn_where_it_is(report, record):
    """The bar goes from the lower to the upper bound and the dot stands at the rate."""
    text = report([record(f"r{i}", "fail" if i < 2 else "pass") for i in range(20)])
    elements = Elements(text).found
    bars = [a for tag, a in elements if tag == "rect" and a.get("class") == "range"]
    dots = [a for tag, a in elements if tag == "circle"]
    assert ["69.90%", "27.32%"] == [bars[0]["x"], bars[0]["width"]]
    assert "90.00%" == dots[0]["cx"]


def test_hostile_text_adds_no_element(report, record, hostile):
    """Names and texts of every kind leave the elements of the page as they are."""

    def elements(texts):
        records = [record(f"{i}{odd}", "fail", f"{i}{odd}", answer=odd) for i, odd in enumerate(texts)]
        records[0]["verdicts"]["z<b>x</b>" if texts is hostile else "z"] = records[0]["verdicts"]["fact-checking"]
        changes = {"meta": {texts[0]: texts[2]}, "name": f"run{texts is hostile}"}
        return [tag for tag, a in Elements(report(records, **changes)).found if a.get("class") != "odd"]

    assert elements(["plain"] * len(hostile)) == elements(hostile)


def test_what_turns_or_hides_text_is_shown(report, record):
    """A right-to-left override in the name of a slice is written out, and turns nothing."""
    text = report([record("a", part="\u202egnp")])
    head = text.split('id="documents-data"')[0]
    assert "\u202e" not in head
    assert '<span class="odd">U+202E</span>gnp' in head


def test_the_same_run_makes_the_same_page(report, record):
    """Nothing of the time or the machine is in it."""
    assert report([record("a")], name="one") == report([record("a")], name="two")


def test_the_foot_tells_where_it_all_comes_from(report, record):
    """Judge, digests, application and recordings stand at the foot, whatever their names are."""
    tapes = {"fake": {"folder": "tapes/<b>", "mode": "replay-only", "first": "2026-01-01", "records": {"score": 3}}}
    text = report([record("a")], tapes=tapes, app={"name": "app:<i>ask"}).split('<footer class="provenance">')[1]
    foot = text.split("</footer>")[0]
    for words in ("d" * 64, "c" * 64, "app:&lt;i&gt;ask", "tapes/&lt;b&gt;", "replay-only", "2026-01-01"):
        assert words in foot


def test_one_is_not_many(report, record):
    """One case, one prompt and one call are told as one."""
    cost = {"prompts": 1, "asked_tokens": 20, "computed_tokens": 20, "calls": 1, "seconds": 1.0}
    text = re.sub(r"<[^>]*>", "", report([record("a")], usage={"fact-checking": {"fake": cost}}))
    assert "on 1 case of" in text
    assert "1 prompt, 20 tokens, 20 computed, 1 call, 1.0 s" in text
