"""report.html in a browser: filter, search, keyboard, colours, hostile text, and many cases."""

import time

import pytest
from playwright.sync_api import expect

from minicheck_eval.harness.gates import GateRule
from minicheck_eval.reports.page_data import PageData
from minicheck_eval.reports.writing import write_reports

pytestmark = pytest.mark.chromium

OVERLAPS = """rows => rows.flatMap((row) => {
  const cells = [...row.children].filter((c) => c.offsetWidth).map((c) => {
    const range = document.createRange(); range.selectNodeContents(c.querySelector("svg") ?? c);
    return range.getBoundingClientRect(); });
  return cells.filter((a, i) => cells.some((b, j) => i < j && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length; })"""
"""For each row, how many of its cells have text that lies on that of another."""
EVIDENCE = "Goods may be returned within 30 days."


@pytest.fixture
def page(chromium, view, tmp_path):
    """Open the report of some records, with the network off and every fault of the page an error."""
    contexts = []

    def open_page(records, *, width=1280, scheme="light", hash_="", **options):
        path = tmp_path / "report.html"
        write_reports(view(records, **options), {"html": path})
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        contexts.append(context)
        found = context.new_page()
        faults: list[str] = []
        found.on("pageerror", lambda error: faults.append(str(error)))
        found.on("console", lambda message: faults.append(message.text))
        found.on("request", lambda asked: asked.url.startswith("file:") or faults.append(asked.url))
        found.goto(f"{path.as_uri()}{hash_}")
        found.faults = faults
        return found

    yield open_page
    for context in contexts:
        for found in context.pages:
            assert [] == found.faults
        context.close()


def lists(page, *names):
    """Wait until the page lists these cases: it waits itself for a pause in typing."""
    expect(page.locator(".case .id")).to_have_text(list(names))
    return True


def count(page, expected):
    """Wait until the page says how many cases it shows."""
    page.locator("#count", has_text=expected).wait_for()
    return True


def test_cases_are_filtered_by_outcome_slice_and_evaluator(page, record):
    """Each filter leaves the cases that are like it, and says how many those are."""
    records = [record(f"{part}-{o}", o, part) for part in ("a", "b") for o in ("pass", "fail", "invalid")]
    records[0]["verdicts"]["retrieval"] = {"outcome": "fail", "score": 0.0, "feedback": "Missing: x", "metadata": {}}
    found = page(records)
    assert count(found, "6 cases")
    assert lists(found, "a-pass", "a-fail", "b-fail", "a-invalid", "b-invalid", "b-pass")
    found.get_by_label("invalid").check()
    assert count(found, "2 of 6")
    assert lists(found, "a-invalid", "b-invalid")
    found.select_option("#slice", "b")
    assert lists(found, "b-invalid")
    found.get_by_label("invalid").uncheck()
    found.select_option("#slice", "")
    found.select_option("#evaluator", "retrieval")
    assert lists(found, "a-pass")
    found.select_option("#evaluator", "")
    assert ["retrieval"] == found.locator(".others").all_inner_texts()


def test_search_looks_into_answers_and_evidence(page, record):
    """All words have to be there, in the case or in its documents; nothing found can be taken back."""
    records = [record("one", answer="The shop opens at nine."), record("two", answer="The shop is closed.")]
    records[1]["documents"] = [{"id": "hours.md", "text": "Sundays it rests.", "metadata": {}}]
    found = page(records)
    for words, expected in (("SHOP nine", ["one"]), ("sundays", ["two"]), ("hours.md", ["two"]), ("shop", None)):
        found.fill("#search", words)
        assert count(found, "2 cases" if expected is None else "1 of 2")
        assert lists(found, *(expected or ["one", "two"]))
    found.fill("#search", "no such word")
    found.locator("#reset").click()
    assert count(found, "2 cases")


def test_what_was_filtered_is_kept_in_the_address(page, record):
    """A link shows what its sender saw."""
    records = [record("a", "fail"), record("b", "fail", "other"), record("c")]
    found = page(records, hash_="#q=answer&outcome=fail&slice=other")
    assert count(found, "1 of 3")
    assert lists(found, "b")
    assert "answer" == found.input_value("#search")


def test_a_case_shows_its_claims_and_its_evidence(page, record, claim):
    """Claims are marked in the answer with their support; the one chosen has its best evidence marked."""
    answer = "Yes! Thirty days. Sixty days."
    claims = [
        claim("Thirty days.", 0.9, 5, document="b.md", chunk={"start": 0, "end": 6}),
        claim("Sixty days.", 0.1, 18),
    ]
    case = record("a", "fail", answer=answer, claims=claims)
    case["documents"].append({"id": "b.md", "text": "Within a month.", "metadata": {}})
    found = page([case])
    found.locator("summary .id").click()
    without_numbers = "e => [...e.childNodes].map((n) => n.firstChild?.data ?? n.data).join('')"
    assert answer == found.locator(".answer").evaluate(without_numbers)
    assert ["Thirty days.0.900", "Sixty days.0.100"] == found.locator(".claim").all_text_contents()
    # The worst is chosen to begin with.
    assert EVIDENCE == found.locator("mark.evidence").inner_text()
    assert "Not supported" in found.locator(".about").inner_text()
    found.locator(".claim.pass").click()
    assert ["Within"] == found.locator("mark.evidence").all_inner_texts()
    assert "Supported – support 0.900" in found.locator(".about").inner_text()
    colours = found.locator(".claim").evaluate_all("e => e.map((c) => getComputedStyle(c).borderBottomColor)")
    assert 2 == len(set(colours))


def test_a_case_without_its_evidence_says_so_first(page, record, claim):
    """Where retrieval broke, that stands before the claims, and no support, which did not decide, is in the list."""
    one = record("lost", "fail", claims=[claim("It opens at nine.", 0.9)], answer="It opens at nine.")
    missing = "Not retrieved: hours."
    one["verdicts"]["retrieval"] = {"outcome": "fail", "score": 0.0, "feedback": missing, "metadata": {}}
    one["broken_part"] = "retrieval"
    found = page([one, record("good", "pass", claims=[claim("It opens at nine.", 0.9)])])
    assert ["", "0.900"] == found.locator(".case .score").all_inner_texts()
    found.locator(".case summary").first.click()
    assert f"Retrieval broke: {missing}" == found.locator(".case .about").first.inner_text()
    above, claims = (found.locator(name).first.bounding_box()["y"] for name in (".case .about", ".case .answer"))
    assert above < claims


def test_the_keyboard_is_enough(page, record, claim):
    """Search, move, open, go from claim to claim and close without a mouse."""
    claims = [claim("One.", 0.9), claim("Two.", 0.1, 5)]
    records = [record(f"r{i}", "fail", answer="One. Two.", claims=claims) for i in range(3)]
    found = page(records)
    focused = "document.activeElement.closest('.case')?.querySelector('.id').textContent"
    for key, expected in (("j", "r0"), ("j", "r1"), ("k", "r0"), ("j", "r1")):
        found.keyboard.press(key)
        assert expected == found.evaluate(focused)
    found.keyboard.press("Enter")
    found.locator(".case[open] .body").wait_for()
    for expected in ("One.0.900", "Two.0.100"):
        found.keyboard.press("n")
        assert expected == found.evaluate("document.activeElement.textContent")
    found.keyboard.press("Escape")
    assert 0 == found.locator(".case[open]").count()
    assert "r1" == found.evaluate(focused)
    found.keyboard.press("/")
    found.keyboard.type("r2 j/k?")
    assert "r2 j/k?" == found.input_value("#search")
    found.keyboard.press("Escape")
    assert "" == found.input_value("#search")
    found.locator("body").click(position={"x": 1, "y": 1})
    found.keyboard.press("?")
    assert found.locator("#help").is_visible()


def light(colour: str) -> float:
    return sum(map(float, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_page_is_as_dark_as_the_system(page, record, scheme, dark):
    """Light text on dark or dark on light, as the reader's system is, until the button says otherwise."""
    found = page([record("a", "fail")], scheme=scheme)

    def is_dark():
        back, front = (
            found.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color")
        )
        assert abs(light(back) - light(front)) > 120
        return light(back) < light(front)

    assert dark == is_dark()
    found.locator("#theme").click()
    assert not is_dark()
    found.locator("#theme").click()
    assert is_dark()
    found.locator("#theme").click()
    assert dark == is_dark()


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1280])
def test_nothing_is_wider_than_the_screen(page, record, width):
    """Long names and long words break, on a phone as on a desk."""
    records = [record("x" * 200, "fail", "slice-" * 30, answer="w" * 500), record("b")]
    found = page(records, width=width)
    found.locator("summary .outcome").first.click()
    found.locator(".body").wait_for()
    assert width >= found.evaluate("document.documentElement.scrollWidth")
    assert {0} == set(found.locator(".rates tbody tr").evaluate_all(OVERLAPS))


def test_hostile_text_stays_text(page, record, hostile):
    """Markup and scripts in any field are shown as they are, run nothing and turn nothing."""
    records = [record(f"{i}{odd}", "fail", f"{i}{odd}", answer=odd) for i, odd in enumerate(hostile)]
    for case, odd in zip(records, hostile, strict=True):
        case["question"] = case["date"] = odd
        case["documents"] = [{"id": odd, "text": odd, "metadata": {"title": odd}}]
        case["metadata"] = {odd: odd}
        verdict = case["verdicts"]["fact-checking"]
        verdict["feedback"] = odd
        verdict["metadata"]["claims"][0] |= {"document": odd, "chunk": {"start": 0, "end": len(odd)}, "detail": odd}
        case["verdicts"][odd] = verdict
    found = page(records, meta={hostile[0]: hostile[0]})
    found.select_option("#order", "file")
    for place in range(len(hostile)):
        found.locator(".case summary").nth(place).locator(".outcome").click()
    found.locator(".body").nth(len(hostile) - 1).wait_for()
    assert None is found.evaluate("window.hit ?? null")
    assert 0 == found.locator("main img, main script, main [onmouseover]").count()
    shown = found.locator(".case .evidence").all_text_contents()
    assert hostile[:5] == shown[:5]
    assert "U+202Egnp.exeU+2066 U+0007U+0000" == shown[5]
    assert hostile[7:] == shown[7:]
    assert "\u202e" not in found.inner_text("body")


def test_a_document_of_a_megabyte_is_shown_around_its_evidence(page, record, claim):
    """The evidence in the middle is in view at once, and all of the document can be asked for."""
    text = "Filler that says nothing. " * 40_000
    middle = len(text) // 2
    text = f"{text[:middle]}{EVIDENCE}{text[middle:]}"
    chunk = {"start": middle, "end": middle + len(EVIDENCE)}
    case = record("a", "fail", claims=[claim("x", 0.1, chunk=chunk)])
    case["documents"][0]["text"] = text
    found = page([case])
    started = time.perf_counter()
    found.locator("summary .id").click()
    found.locator("mark.evidence").wait_for()
    assert 5 > time.perf_counter() - started
    assert EVIDENCE == found.locator("mark.evidence").inner_text()
    card = found.locator(".document .text")
    assert 25_000 > len(card.text_content())
    found.get_by_role("button", name="Show all").click()
    assert text == card.text_content()


def test_ten_thousand_cases_are_found_at_once(page, record):
    """The page opens, filters, searches and scrolls without waiting."""
    records = [
        record(f"case-{i}", "fail" if i % 10 == 0 else "pass", f"slice-{i % 7}", answer=f"Answer number {i} of many.")
        for i in range(10_000)
    ]
    started = time.perf_counter()
    found = page(records)
    assert count(found, "10,000 cases")
    opened = time.perf_counter() - started
    took = {}
    for words, expected in (("number 4321", "1 of 10,000"), ("30 days", "10,000 cases"), ("case-99", "111 of 10,000")):
        found.evaluate("words => { document.getElementById('search').value = words; }", words)
        took[words] = found.evaluate("() => { const t = performance.now(); refresh(); return performance.now() - t; }")
        assert count(found, expected)
    assert 1000 > max(took.values()), took
    assert 60 > opened
    found.evaluate("reset()")
    assert 100 == found.locator(".case").count()
    found.evaluate("scrollTo(0, document.body.scrollHeight)")
    found.locator(".case").nth(150).wait_for(state="attached")


def test_print_opens_what_is_listed(page, record):
    """On paper each case shows its answer and its evidence, and the tools are gone."""
    found = page([record(f"r{i}", "fail") for i in range(3)])
    found.evaluate("dispatchEvent(new Event('beforeprint'))")
    found.emulate_media(media="print")
    assert 3 == found.locator(".case[open] mark.evidence").count()
    assert not found.locator("#tools").is_visible()
    assert found.locator(".provenance").is_visible()


def test_more_cases_than_fit_are_counted(page, record, monkeypatch):
    """A page over a part of the cases says so."""
    monkeypatch.setattr("minicheck_eval.reports.html.PageData", lambda: PageData(most_cases=2))
    found = page([record("a"), record("b"), record("c", "fail")])
    assert "This page holds 2 of 3 cases" in found.inner_text("#cases")
    assert lists(found, "c", "a")


def test_a_baseline_stands_beside_the_run(page, record):
    """Both intervals are drawn, changed cases are named and marked, and a name opens its case."""
    before = [record(f"r{i}", "fail" if i < 2 else "pass", "returns") for i in range(20)]
    found = page([record(f"r{i}", "fail" if i < 5 else "pass", "returns") for i in range(20)], baseline=before)
    row = found.locator(".rates tbody tr").first
    assert [1, 1] == [row.locator(f"g.{name} .range").count() for name in ("run", "baseline")]
    assert "18/20 = 90.0 %" in row.inner_text()
    assert "Newly failing: 3" in found.inner_text(".changes")
    found.fill("#search", "r19")
    assert count(found, "1 of 20")
    found.locator(".case-link", has_text="r3").click()
    found.locator(".case[open] .body").wait_for()
    assert "r3" == found.locator(".case[open] .id").inner_text()
    assert "was pass" == found.locator(".case[open] .moved").inner_text().strip()
    assert "in the baseline pass" in found.locator(".case[open] .verdicts").inner_text()


def test_a_baseline_fits_on_any_screen(page, record):
    """The wider table has room on a phone, a tablet and a desk."""
    records = [record(f"r{i}", "fail" if i < 5 else "pass", f"a slice {i % 3}") for i in range(60)]
    found = page(records, baseline=records)
    for width in (320, 600, 800, 1060, 1280):
        found.set_viewport_size({"width": width, "height": 900})
        assert width >= found.evaluate("document.documentElement.scrollWidth")
        assert {0} == set(found.locator(".rates tbody tr, .rates thead tr").evaluate_all(OVERLAPS))


def test_a_page_of_one_case_says_so(page, record):
    """One case is not counted as many."""
    found = page([record("a")])
    assert "1 case" == found.inner_text("#count")


def test_the_rate_that_is_asked_for_is_marked(page, record):
    """Each slice has a mark where its least rate is, and says it to those who cannot see; the whole has none."""
    found = page([record("a", part="x"), record("b", "fail", part="y")], rule=GateRule(min_rate=0.75))
    plots = found.locator(".rates tbody td.plot")
    assert ["asked for 75.0 %"] * 2 == [text.strip() for text in plots.all_text_contents()]
    for plot in plots.all():
        whole, mark = plot.locator("svg").bounding_box(), plot.locator(".asked").bounding_box()
        assert abs(whole["x"] + 0.75 * whole["width"] - mark["x"]) < 2
    assert 0 == found.locator(".rates tfoot .asked").count()
