"""Two runs beside each other."""

import json

import pytest

from minicheck_eval.contract import Document, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.harness import compare as module
from minicheck_eval.harness.compare import compare

LETTERS = {"p": Outcome.PASS, "f": Outcome.FAIL, "i": Outcome.INVALID}
CHUNK = {"start": 0, "end": 3}


def claim(outcome, support, document):
    return {"text": f"claim {support}", "outcome": outcome, "support": support, "document": document, "chunk": CHUNK}


@pytest.fixture
def run_of(judge_cases, make_case, fake_judge, tmp_path):
    """Make a run whose outcomes are written as letters, slice by slice."""

    def make(folder, *, prefix="c", documents=("d",), identity=None, digest="c" * 64, **slices):
        cases, outcomes = [], {}
        for part, letters in slices.items():
            for place, letter in enumerate(letters):
                name = f"{prefix}-{part}-{place}"
                texts = tuple(Document(f"Text of {document}", document) for document in documents)
                cases.append(make_case(name, slice=part, documents=texts))
                outcomes[name] = LETTERS[letter]

        def answer(request):
            outcome = outcomes[request.user_text]
            score = 0.9 if outcome is Outcome.PASS else 0.1
            claims = [claim(outcome.value, score, documents[0]), claim("pass", 0.8, documents[-1])]
            return EvaluationResponse(outcome, score, "said so", {"claims": claims})

        changes = {"identity": identity} if identity else {}
        return judge_cases(cases, fake_judge(answer), out=tmp_path / folder, cases_digest=digest, **changes).directory

    return make


def only(run, baseline):
    (found,) = compare(run, baseline).evaluators
    return found


def test_the_worked_example(run_of):
    """18 of 20 and then 15 of 20 is not a drop one can see, and it is said how many cases would show it."""
    found = only(run_of("run", a="p" * 15 + "f" * 5), run_of("base", a="p" * 18 + "ff")).slices["a"]
    assert pytest.approx((0.70, 0.97), abs=0.005) == (found.baseline.low, found.baseline.high)
    assert pytest.approx((0.53, 0.89), abs=0.005) == (found.run.low, found.run.high)
    assert (False, False, 0.25, 52) == (found.visible, found.dropped, found.p_value, found.cases_to_show)
    assert "not a drop one can see: about 52 cases would show one of this size" in found.words


def test_the_worked_example_on_other_cases(run_of):
    """Where the cases are not the same the rates are compared as a whole; the drop cannot be seen either."""
    found = only(run_of("run", a="p" * 15 + "f" * 5), run_of("base", prefix="other", a="p" * 18 + "ff")).slices["a"]
    assert (False, None, False, 100) == (found.paired, found.p_value, found.visible, found.cases_to_show)
    assert pytest.approx((-0.380, 0.094), abs=0.0005) == (found.difference.low, found.difference.high)


def test_a_drop_that_can_be_seen(run_of):
    """Six cases that newly fail, and none that newly passes, are no chance; which way it went is told."""
    run, base = run_of("run", a="f" * 6 + "p" * 14), run_of("base", a="p" * 20)
    down, up = only(run, base).overall, only(base, run).overall
    assert (True, True, None) == (down.visible, down.dropped, down.cases_to_show)
    assert (True, False) == (up.visible, up.dropped)
    assert down.words.endswith("a drop")
    assert up.words.endswith("a gain")


def test_what_flipped_is_named_with_its_evidence(run_of):
    """Newly failing, newly passing and no longer judged cases are told apart, with claim, scores and evidence."""
    run, base = run_of("run", documents=("x", "y"), a="pffip"), run_of("base", documents=("x", "y"), a="ppfpf")
    found = only(run, base)
    assert (("c-a-1",), ("c-a-4",), ("c-a-3",)) == (found.newly_failing, found.newly_passing, found.no_verdict_now)
    change = found.changes["c-a-1"]
    assert ("pass", "fail", 0.9, 0.1) == (change.before, change.after, change.score_before, change.score_after)
    (told,) = change.claims
    assert ("claim 0.1", 0.1, "x", "Tex") == (told.text, told.support, told.document, told.evidence)
    assert ["claim 0.8"] == [told.text for told in found.changes["c-a-4"].claims]


def test_newly_failing_cases_are_grouped_by_the_document_they_share(run_of, judge_cases, make_case, tmp_path):
    """Each goes to the document that most share; a group that may have one cause is warned of."""

    def documents(*names):
        return tuple(Document("not said", name) for name in names)

    wanted = {"a": ("x", "s"), "b": ("s",), "c": ("s", "y"), "d": ("z",), "e": ()}
    good = [make_case(name, documents=(Document(f"The sky over {name} is blue."),)) for name in wanted]
    bad = [make_case(name, documents=documents(*names)) for name, names in wanted.items()]
    base = judge_cases(good, out=tmp_path / "base").directory
    comparison = compare(judge_cases(bad, out=tmp_path / "run").directory, base)
    (found,) = comparison.evaluators
    groups = {group.document: group.ids for group in found.groups}
    assert {"s": ("a", "b", "c"), "z": ("d",), None: ("e",)} == groups
    assert "s" == next(iter(groups))
    assert any("3 of 5 newly failing cases share a document" in warning for warning in comparison.warnings)


def test_only_the_first_changes_are_kept_whole(run_of, monkeypatch):
    """Of many flips all ids are kept, and of the first the evidence."""
    monkeypatch.setattr(module, "MOST_CHANGES", 2)
    found = only(run_of("run", a="fffffp"), run_of("base", a="pppppf"))
    assert (5, 1) == (len(found.newly_failing), len(found.newly_passing))
    assert {"c-a-0", "c-a-1", "c-a-5"} == found.changes.keys()


def test_what_makes_runs_unlike_is_warned_of(run_of, make_identity):
    """Another judge, prompt, threshold or data set is named, and so are cases that only one run has."""
    other = make_identity(judge="another", prompt_digest="e" * 64, threshold=0.7)
    run = run_of("run", identity=other, digest="d" * 64, documents=("n",), a="ppp", new="p")
    warnings = compare(run, run_of("base", a="pp", old="pp")).warnings
    assert (
        "the judge is another: another, in the baseline fake",
        "the prompt is another: eeeeeeeeeeee…, in the baseline bbbbbbbbbbbb…",
        "the threshold is another: 0.7, in the baseline 0.5",
        "the data set is another (dddddddddddd…, cccccccccccc…): of 2 cases in both 2 with other documents",
        "2 cases are only in the run and 2 cases are only in the baseline",
    ) == warnings
    same = run_of("same", a="pp")
    assert () == compare(same, same).warnings


def test_a_baseline_that_lost_records_is_told(run_of):
    """What was cut off a finished run is missed, and cases that are not shared have no content in common."""
    run, base = run_of("run", a="pp"), run_of("base", prefix="other", digest="d" * 64, a="ppp")
    path = base / "results.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    warnings = compare(run, base).warnings
    assert "the baseline has lost records: 1 of 3 cases left" in warnings
    assert any(warning.endswith(": no case is in both") for warning in warnings)


def test_a_comparison_as_json(run_of):
    """All of it can be written as JSON, and a slice that one run lacks has no rate and no difference."""
    found = compare(run_of("run", a="pf", b="p"), run_of("base", a="pp")).to_json()
    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert ["schema", "run", "baseline", "warnings", "evaluators"] == list(found)
    part = found["evaluators"]["fact-checking"]["slices"]["b"]
    assert (None, None, False) == (part["baseline"], part["difference"], part["visible"])
    assert part["words"].endswith("nothing can be compared")


def test_what_is_no_finished_run_is_bad_input(run_of, tmp_path):
    """A folder without a run, and a baseline that stopped in the middle, are refused."""
    run = run_of("run", a="p")
    with pytest.raises(BadInput, match="holds no run"):
        compare(tmp_path / "nothing", run)
    header = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(json.dumps(header | {"status": "started"}), encoding="utf-8")
    with pytest.raises(BadInput, match="is not finished"):
        compare(run, run)
