"""A calibration on a terminal and as a diagram."""

import sys
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from minicheck_eval.contract import EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.harness.calibration import examine
from minicheck_eval.harness.calibration_answers import Answer
from minicheck_eval.harness.calibration_rounds import Round
from minicheck_eval.reports.calibration import print_calibration
from minicheck_eval.reports.reliability_diagram import reliability_svg

SUPPORTS = [0.05, 0.15, 0.3, 0.45, 0.55, 0.62, 0.7, 0.85, 0.93, 0.99]


def answers(shift=0.0, labelled=True, text="An answer.", supports=SUPPORTS):
    return tuple(
        Answer(
            id=f"case-{i}",
            text=text,
            label=(i not in (0, 1, 2, 5)) if labelled else None,
            outcome=Outcome.PASS if support + shift > 0.5 else Outcome.FAIL,
            support=support + shift,
            evidence=str(i // 2),
            groups={"slice": "billing"},
            unclear=("said 'Hm'",) if i == 9 else (),
        )
        for i, support in enumerate(supports)
    )


@pytest.fixture
def report():
    """A report of made-up answers."""

    def make(moved=-0.06, threshold=0.5, **values):
        rounds = [
            Round(kind="first", name="first", answers=answers(**values)),
            Round(kind="repeat", name="the same again, 2 of 2", answers=answers(shift=moved, **values)),
        ]
        judge = {"judge": "my $judge$", "threshold": threshold}
        return examine(rounds, judge=judge, cases={"path": "cases.jsonl", "count": 10}, seed=0)

    return make


@pytest.fixture
def printed():
    """Print a report and return the text."""

    def printed(found, width=120):
        out = StringIO()
        print_calibration(found, Console(width=width, file=out))
        return out.getvalue()

    return printed


def test_the_report_says_all_that_was_found(report, printed):
    """Counts, flips, agreement beside the base rate, thresholds, maps and disagreements are there."""
    text = printed(report())
    for words in (
        "my $judge$ on 10 cases of cases.jsonl",
        "6 pass, 4 fail",
        "neither yes nor no: 1/10 = 10.0 %",
        "case-4 [the same again, 2 of 2]: pass, then fail (support 0.5500 and 0.4900)",
        "Batch, order and time move a support by up to 0.06: 2 verdicts",
        "10 labelled answers about 5 documents",
        "base rate: supported by labels",
        "Cohen's kappa",
        "Threshold 0.5 now",
        "Map isotonic",
        "case-5 [billing], unsupported by label, support 0.6200: An answer.",
    ):
        assert words in text
    assert "nan" not in text


def test_a_narrow_terminal_loses_nothing(report, printed):
    """Numbers wrap, and none is cut."""
    assert "0.0600" in printed(report(), width=60).replace("\n", "")


def test_without_labels_the_report_says_so(report, printed):
    """That agreement is unknown is said, not left out."""
    assert "Agreement with people is not known: no answer has a label." in printed(report(labelled=False))


def test_steady_supports_are_not_called_near_to_anything(report, printed):
    """Without a change, and of a bare yes or no, there is no sentence about what is near to the threshold."""
    assert "near enough to the threshold" in printed(report())
    for values, words in (({"moved": 0.0}, "move no support"), ({"supports": [0.0, 1.0] * 5}, "only flips tell")):
        text = printed(report(**values))
        assert (True, False) == (words in text, "near enough to the threshold" in text)


def test_near_to_what_decides_and_to_nothing_else(report, printed):
    """Where the verdicts do not follow the threshold, as with a rubric, no count of those near to it is given."""
    text = printed(report(threshold=0.9))
    assert (True, False) == ("move a support by up to 0.06." in text, "near enough to the threshold" in text)


def test_no_zero_is_negative(report, printed):
    """A change that rounds to nothing has no sign that says the opposite."""
    assert "-0.000" not in printed(report(moved=-1e-9))


def test_hostile_text_stays_text(report, printed):
    """Markup and control codes of an answer come out as they are, or escaped."""
    text = printed(report(text="[red]x[/red] \x1b[2J"))
    assert "[red]x[/red] \\x1b[2J" in text


def test_the_diagram_is_the_same_for_the_same_numbers(report):
    """It is SVG, its title is text, and nothing in it depends on the time."""
    one, other = (reliability_svg(report().agreement, "my $judge$ & <others>") for _ in range(2))
    assert one == other
    texts = [element.text for element in ET.fromstring(one).iter("{http://www.w3.org/2000/svg}text")]
    assert {"my $judge$ & <others>", "support by the judge", "supported by label"} <= set(texts)


def test_responses_without_metadata_can_be_examined():
    """A plain evaluator's verdicts have no claims, and are answers all the same."""
    from minicheck_eval.harness.calibration_answers import answer_of

    case = {"id": "a", "slice": "all", "answer": "Yes.", "documents": [], "label": True}
    assert 0.9 == answer_of(case, EvaluationResponse(Outcome.PASS, 0.9).to_json()).support


def test_without_matplotlib_the_extra_is_named(report, monkeypatch):
    """A diagram that cannot be drawn says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match="Matplotlib") as caught:
        reliability_svg(report().agreement, "judge")
    assert "minicheck-eval[benchmarks]" in caught.value.hint
