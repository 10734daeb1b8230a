"""What users of evaluation tools have complained about: repeats, caches, killed runs, comparison, calibration, CI."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

import jsonschema
import junitparser
import pytest
from rich.console import Console

import minicheck_eval
from minicheck_eval.cli import main
from minicheck_eval.contract import Document
from minicheck_eval.errors import RunMismatch
from minicheck_eval.harness.calibration import examine, examine_run
from minicheck_eval.harness.calibration_rounds import ask_rounds
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.compare import compare
from minicheck_eval.harness.journal import read_records
from minicheck_eval.harness.run import run_cases
from minicheck_eval.judge import Judge, identity_without_weights
from minicheck_eval.parity import Parity
from minicheck_eval.reports.calibration import print_calibration
from minicheck_eval.reports.json_report import report_schema
from minicheck_eval.scoring import Failure, Score
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape
from minicheck_eval.testing import FakeBackend, FakeOllama

IDENTITY = identity_without_weights("ollama:bespoke-minicheck")
JUDGE = ("--judge", "ollama:bespoke-minicheck")


def case(name, **values):
    return Case(id=name, documents=(Document(f"Paper {name}."),), answer=f"Claim {name}.", **values)


def says(**supports):
    """Answer the claim of each case, time after time, with one of its supports and at last with the last."""
    asked = {name: iter(found if isinstance(found, list) else [found]) for name, found in supports.items()}
    last = {}

    def answer(prompt):
        name = prompt.text.rpartition("Claim ")[2].strip(".\n ")
        last[name] = next(asked[name], last.get(name))
        return last[name]

    return FakeBackend(answer)


@pytest.fixture
def calibrated(checker):
    """Ask a backend about cases again and again, and examine what it said."""

    def examined(backend, cases, repeats=2):
        judge = Judge(identity=IDENTITY, evaluator=checker(backend), backends={"fake": backend})
        how = {"repeats": repeats, "probes": False, "batch_cases": 4, "seed": 0, "progress": lambda _: None}
        return examine(list(ask_rounds(cases, judge, **how)), judge=IDENTITY.to_json(), cases={}, seed=0)

    return examined


@pytest.fixture
def judged(checker, tmp_path):
    """Run cases with a backend into a folder."""

    def run(backend, cases, folder="run", identity=IDENTITY, **options):
        evaluators, identities = {"fact-checking": checker(backend)}, {"fact-checking": identity}
        source = {"cases_path": tmp_path / "cases.jsonl", "cases_digest": "c" * 64}
        how = {"out": tmp_path / folder, "arguments": {}, "meta": {}, **source, **options}
        return run_cases(cases, evaluators=evaluators, identities=identities, **how)

    return run


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command line in a folder of its own; return the exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        capsys.readouterr()
        return stopped.value.code

    return run


def write(path, *rows):
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(name, answer, **values):
    return {"id": name, "question": name, "documents": ["The ferry leaves at nine."], "answer": answer, **values}


def known(text):
    document, _, claim = text.rpartition("Claim:")
    return 0.9 if claim.strip().split("\n")[0] in document else 0.1


ROWS = (row("a", "The ferry leaves at nine."), row("b", "The ferry leaves at ten."))


def without_seconds(path):
    return re.sub(rb'"seconds": ?[0-9.e-]+', b"", Path(path).read_bytes())


def test_pitfall_09_answers_with_numbers_are_measured_on_their_own(judged):
    """A judge that is weak on numbers is seen to be so, in a slice of the run and in its calibration."""
    cases = [case(f"{i}", slice="numeric", label=True) for i in range(4)]
    cases += [case(name, slice="words", label=name in "xy") for name in "vwxy"]
    run = judged(says(**{"0": 0.9, "1": 0.1, "2": 0.1, "3": 0.1, "v": 0.1, "w": 0.1, "x": 0.9, "y": 0.9}), cases)
    slices = run.summary.evaluators[0].slices
    assert {"numeric": (1, 4), "words": (2, 4)} == {name: (one.passed, one.judged) for name, one in slices.items()}
    groups = examine_run(run.directory, "fact-checking", seed=0).agreement.groups
    found = {group.name: group.measures["accuracy"].value for group in groups if group.kind == "numbers"}
    assert {"with": 0.25, "without": 1.0} == found


def test_pitfall_10_what_came_out_otherwise_when_asked_again_is_listed(calibrated):
    """The same input that is at 0.0 and then at 1.0 is named, with both verdicts; what was steady is not."""
    (found,) = calibrated(says(a=[0.0, 1.0], b=0.9), [case("a"), case("b")]).rounds
    (flip,) = found.flips
    assert ("a", "fail", "pass", 0.0, 1.0) == (
        flip.id,
        flip.before,
        flip.after,
        flip.support_before,
        flip.support_after,
    )


def test_pitfall_11_flips_that_cancel_in_the_mean_are_told(calibrated):
    """One case turns up and one turns down: pass rate and mean are the same, and both flips are reported."""
    (found,) = calibrated(says(a=[0.25, 0.75], b=[0.75, 0.25], c=0.9), [case("a"), case("b"), case("c")]).rounds
    assert 0.0 == found.mean_change
    assert ["a", "b"] == [flip.id for flip in found.flips]
    assert ((2, 3), 0.5) == ((found.flipped.k, found.flipped.n), found.largest_change)


def test_pitfall_12_a_case_that_flickers_once_in_n_repeats_is_found(calibrated):
    """Each of n repeats is held against the first, so a case that passed all but one of them is seen."""
    report = calibrated(says(a=[0.9, 0.9, 0.1, 0.9], b=0.9), [case("a"), case("b")], repeats=4)
    assert [[], ["a"], []] == [[flip.id for flip in found.flips] for found in report.rounds]


def test_pitfall_23_repeats_on_a_tape_are_no_copies_of_the_first(calibrated, tmp_path):
    """Each repetition has an answer of its own, when it is recorded and when it is replayed."""
    header = TapeHeader(model="fake", revision="1", digests={"weights": "a"}, backend="fake", window_tokens=1000)
    recording = TapeBackend(Tape.record(tmp_path / "tape", header), Mode.RECORD, says(a=[0.9, 0.1, 0.7]))
    first = calibrated(recording, [case("a")], repeats=3)
    recording.close()
    again = calibrated(TapeBackend(Tape.open(tmp_path / "tape"), Mode.REPLAY_ONLY), [case("a")], repeats=3)
    assert [[(0.9, 0.1)], []] == [[flip[3:] for flip in found.flips] for found in first.rounds]
    assert first.to_json() == again.to_json()


def another(value):
    """Return another value, of the same kind where there is one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"another {value}"
        case Parity():
            return replace(value, double_bos=not value.double_bos)
        case _:
            return {"weights": "0"}


@pytest.mark.parametrize("name", [field.name for field in fields(IDENTITY)])
def test_pitfall_24_verdicts_of_a_judge_that_differs_in_anything_are_not_reused(judged, name):
    """Whichever field of the judge's configuration changes, its stored verdicts are refused."""
    cases = [case("a")]
    judged(says(a=0.9), cases)
    changed = replace(IDENTITY, **{name: another(getattr(IDENTITY, name))})
    assert IDENTITY.digest != changed.digest
    with pytest.raises(RunMismatch, match=name):
        judged(says(a=0.1), cases, identity=changed)


def test_pitfall_24_a_replayed_verdict_equals_the_fresh_one_in_a_new_process(command, tmp_path):
    """What is on disk is enough: another process, with no server, gives the same scores, and none is missing."""
    run = ("run", write("cases.jsonl", *ROWS), *JUDGE, "--tape", "tapes", "--min-rate", "0")
    with FakeOllama(known) as server:
        assert 0 == command(*run, "--url", server.url, "--out", "fresh")
    environment = {**os.environ, "PYTHONPATH": str(Path(minicheck_eval.__file__).parents[1]), "CI": "true"}
    program = [sys.executable, "-m", "minicheck_eval", *run, "--out", "again"]
    subprocess.run(program, env=environment, check=True, capture_output=True, cwd=tmp_path)
    fresh, again = ([record["verdicts"] for record in read_records(tmp_path / out)] for out in ("fresh", "again"))
    assert fresh == again
    assert [True, False] == [verdict["fact-checking"]["score"] > 0.5 for verdict in again]


@pytest.mark.parametrize("asked", [0, 1, 5, 8])
def test_pitfall_25_a_run_that_was_stopped_goes_on_where_it_was(judged, tmp_path, asked):
    """Wherever it stopped, and with half a line at the end, the results are those of one go, and nothing is lost."""
    cases = [case(f"c{i}") for i in range(9)]
    whole = judged(FakeBackend(lambda _: 0.9), cases, folder="whole", batch_cases=1)
    first = FakeBackend(lambda _: 0.9 if sum(map(len, first.batches)) <= asked else stop())

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(first, cases, batch_cases=1)
    kept = {record["id"] for record in read_records(tmp_path / "run")}
    with (tmp_path / "run" / "results.jsonl").open("ab") as stream:
        stream.write(b'{"id": "c')
    second = FakeBackend(lambda _: 0.9)
    resumed = judged(second, cases, batch_cases=1)
    assert asked == len(kept)
    assert 9 - asked == sum(map(len, second.batches))
    results = [without_seconds(run.directory / "results.jsonl") for run in (whole, resumed)]
    assert results[0] == results[1]
    assert whole.header["summary"] == resumed.header["summary"]


def test_pitfall_32_recorded_answers_are_judged_anew_without_the_application(command, tmp_path, monkeypatch):
    """Another judge can be asked about the answers of a run when the application that gave them is gone."""
    app = tmp_path / "gone_app.py"
    app.write_text(
        "from minicheck_eval import Document, Observation\n"
        "def answer(question):\n"
        "    return Observation(f'The ferry leaves at {question}.', [Document('The ferry leaves at nine.', 'd')])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    write("asked.jsonl", {"id": "a", "question": "nine"}, {"id": "b", "question": "ten"})
    run = ("--min-rate", "0", *JUDGE)
    with FakeOllama(known) as server:
        assert 0 == command("run", "asked.jsonl", "--app", "gone_app:answer", *run, "--url", server.url, "--out", "one")
    app.unlink()
    del sys.modules["gone_app"]
    told = list(read_records(tmp_path / "one"))
    columns = ("id", "question", "documents", "answer")
    write("told.jsonl", *({key: record[key] for key in columns} for record in told))
    with FakeOllama(lambda text: 1 - known(text)) as server:
        assert 0 == command("run", "told.jsonl", *run, "--url", server.url, "--out", "two")
    again = list(read_records(tmp_path / "two"))
    assert [record["answer"] for record in told] == [record["answer"] for record in again]
    outcomes = [[r["verdicts"]["fact-checking"]["outcome"] for r in records] for records in (told, again)]
    assert [["pass", "fail"], ["fail", "pass"]] == outcomes


def test_pitfall_33_two_judges_are_compared_on_the_cases_they_share(judged):
    """One gained and six lost of twelve shared cases are p = 2 (1 + 7) / 2^7; what only one run has is left out."""
    shared = {f"s{i}": ("ppppppppppff"[i], "ppppffffffpf"[i]) for i in range(12)}
    score = {"p": 0.9, "f": 0.1}
    names = [list(shared) + [f"{run}{i}" for i in range(3)] for run in "xy"]
    supports = [
        {name: score[shared[name][place] if name in shared else "f"] for name in names[place]} for place in (0, 1)
    ]
    before, after = (judged(says(**supports[i]), map(case, names[i]), folder=f"run{i}").directory for i in (0, 1))
    (found,) = compare(after, before).evaluators
    pairs = found.overall.pairs
    assert (4, 1, 6, 1) == (pairs.both, pairs.gained, pairs.lost, pairs.neither)
    assert pytest.approx(2 * (1 + 7) / 2**7) == found.overall.p_value
    assert {f"s{i}" for i in range(4, 10)} == set(found.newly_failing)


def labelled(table):
    """Make cases and their supports from letters: label, then verdict."""
    cases = [case(f"c{i}", label=label == "y") for i, (label, _) in enumerate(table)]
    return cases, {f"c{i}": 0.9 if verdict == "y" else 0.1 for i, (_, verdict) in enumerate(table)}


TABLE = ["yy"] * 4 + ["yn"] + ["ny"] * 2 + ["nn"] * 3


def test_pitfall_34_a_judge_is_held_against_people_s_labels(judged):
    """Confusion, accuracy and kappa of a fixed table are those worked out by hand, and disagreements are named."""
    cases, supports = labelled(TABLE)
    found = examine_run(judged(says(**supports), cases).directory, "fact-checking", seed=0).agreement
    assert [4, 1, 2, 3] == list(found.confusion.values())
    assert pytest.approx(0.7) == found.measures["accuracy"].value
    # Chance agrees on 0.6 of 0.5 and on 0.4 of 0.5.
    assert pytest.approx((0.7 - 0.5) / (1 - 0.5)) == found.measures["kappa"].value
    assert {"c4", "c5", "c6"} == {answer.id for answer in found.disagreements}


def test_pitfall_35_outcomes_add_up_to_the_rows(judged):
    """Errors, unclear answers and nothing to check are kept apart, and only verdicts are in the rate."""
    found = {"a": 0.9, "b": 0.1, "c": Score(0.01, 0.02, "Maybe"), "d": Failure("backend", "gone"), "e": 0.9}
    cases = [*map(case, found), Case(id="f", documents=(Document("Paper."),), answer="?")]
    tally = judged(says(**found), cases).summary.evaluators[0].overall
    assert (2, 1, 1, 1, 1) == (tally.passed, tally.failed, tally.invalid, tally.error, tally.not_checkable)
    assert len(cases) == tally.total
    assert ((2, 3), 3 / 6) == ((tally.rate.k, tally.rate.n), tally.coverage)


def test_pitfall_36_the_base_rate_stands_beside_kappa(judged):
    """A judge that always says yes has an accuracy like the base rate and no kappa, and the report prints all three."""
    cases, supports = labelled(["yy"] * 7 + ["ny"] * 3)
    policy = {"labels": "partly supported counts as unsupported"}
    run = judged(says(**supports), cases, meta=policy)
    report = examine_run(run.directory, "fact-checking", seed=0)
    measures = report.agreement.measures
    assert [0.7, 0.7, 0.0] == [measures[name].value for name in ("base_rate", "accuracy", "kappa")]
    print_calibration(report, Console(width=120, file=(printed := StringIO())))
    assert re.search(r"base rate: supported by labels\W+0\.7", printed.getvalue())
    assert re.search(r"Cohen's kappa\W+0\.0", printed.getvalue())
    assert policy == run.header["meta"]
    with pytest.raises(RunMismatch, match=r"meta\.labels"):
        judged(says(**supports), cases, meta={"labels": "partly supported counts as supported"})


@pytest.mark.parametrize(("rate", "unjudged", "code"), [("0.5", "1", 0), ("1", "1", 1), ("0.5", "0", 3)])
def test_pitfall_37_junit_says_what_the_exit_code_says(command, rate, unjudged, code):
    """A gate that passes holds no failure, one that fails holds failures, and where judging failed there are errors."""
    cases = write("cases.jsonl", *ROWS, row("c", "Nobody knows."))
    gate = ("--min-rate", rate, "--max-unjudged", unjudged, "--report", "junit", "--out", "run")
    with FakeOllama(lambda text: {"Maybe": 1.0} if "Nobody" in text else known(text)) as server:
        assert code == command("run", cases, *JUDGE, "--url", server.url, *gate)
    suites = junitparser.JUnitXml.fromfile("run/junit.xml")
    assert {0: (0, 0), 1: (1, 0), 3: (0, 1)}[code] == (suites.failures, suites.errors)
    assert code == json.loads(Path("run/run.json").read_text())["decision"]["exit_code"]


def test_pitfall_39_the_report_is_a_format_with_a_version(command):
    """report.json keeps to the published schema, of one version, which still has all that others read."""
    with FakeOllama(known) as server:
        write("cases.jsonl", *ROWS)
        command("run", "cases.jsonl", *JUDGE, "--url", server.url, "--report", "json", "--out", "run")
    report, schema = json.loads(Path("run/report.json").read_text()), report_schema()
    jsonschema.validate(report, schema)
    assert {"version", "decision", "judge", "data", "evaluators", "provenance", "cases"} <= set(report)
    assert {"passed", "failed", "invalid", "error", "not_checkable", "rate"} <= set(report["evaluators"][0]["overall"])
    assert {"id", "slice", "answer", "verdicts"} <= set(report["cases"][0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**report, "version": 2}, schema)


def test_pitfall_40_a_tape_replays_a_run_to_the_same_bytes(command):
    """With no server left, the records of the run come out as they were written, but for how long it took."""
    run = ("run", write("cases.jsonl", *ROWS), *JUDGE, "--tape", "tapes", "--min-rate", "0")
    with FakeOllama(known) as server:
        assert 0 == command(*run, "--url", server.url, "--out", "recorded")
    assert 0 == command(*run, "--mode", "replay-only", "--out", "replayed")
    assert without_seconds("recorded/results.jsonl") == without_seconds("replayed/results.jsonl")
    headers = [json.loads(Path(out, "run.json").read_text()) for out in ("recorded", "replayed")]
    for key in ("judge", "judge_digest", "cases", "summary", "decision"):
        assert headers[0][key] == headers[1][key]
