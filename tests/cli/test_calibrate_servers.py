"""`minicheck-eval calibrate` with chat judges on servers that answer in words, waver, mumble and fail."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from minicheck_eval import cli
from minicheck_eval.backends.servers import http
from minicheck_eval.testing import FakeOllama, FakeOpenAI, Faults

QUICK = ("--repeats", "1", "--no-probes")
WORDS = {"ollama": {"era": "0.12.0"}, "openai": {"most_logprobs": None}}
"""Servers that give no probabilities."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Repeat a request at once."""
    monkeypatch.setattr(http, "BACK_OFF", lambda _: 0.0)


@pytest.fixture
def cases(tmp_path):
    """Forty cases about documents of their own; even ones are supported."""
    rows = [
        {"id": f"c{i}", "documents": [f"Paper {i} is long."], "answer": f"The claim is {i}.", "label": i % 2 == 0}
        for i in range(40)
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def calibrate(cases, capsys, tmp_path, monkeypatch):
    """Calibrate a judge that says of each claim, by its number, what it is told; return code, stdout, stderr, JSON."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(says, *arguments, kind="ollama", faults=None):
        fake = {"ollama": FakeOllama, "openai": FakeOpenAI}[kind]
        with fake(about_claims(says), faults=faults, **WORDS[kind]) as at:
            judge = f"{kind}:{at.url}#{'bespoke-minicheck' if kind == 'ollama' else 'judge'}"
            with pytest.raises(SystemExit) as stopped:
                cli.main(["calibrate", str(cases), "--judge", judge, "--json", "found.json", *arguments])
        output, path = capsys.readouterr(), Path("found.json")
        found = json.loads(path.read_text()) if path.exists() else None
        assert "nan" not in output.out.lower()
        return stopped.value.code, output.out, output.err, found

    return run


def about_claims(says):
    """Answer by the number of the claim, and other questions with yes."""

    def answer(text):
        number = re.search(r"The claim is (\d+)", text)
        return "Yes." if number is None else says(int(number[1]))

    return answer


def mostly_right(number):
    """Say what the label says of four cases in five."""
    return "Yes, it is." if (number % 2 == 0) is not (number % 5 == 0) else "**No**, it is not."


@pytest.mark.parametrize("kind", WORDS)
def test_a_bare_yes_or_no_is_measured_and_nothing_is_made_up(calibrate, kind):
    """Of supports of 0 and 1 there is no threshold to choose, none is near to it, and none is saved."""
    code, out, _, found = calibrate(
        mostly_right, "--repeats", "2", "--save", "my.json", "--diagram", "a.svg", kind=kind
    )
    assert (0, False, None) == (code, found["graded"], found["near_threshold"])
    measures = {name: measure["value"] for name, measure in found["agreement"]["measures"].items()}
    assert (0.8, 0.8) == pytest.approx((measures["balanced_accuracy"], measures["auc"]))
    assert (0.2, 0.2) == pytest.approx((measures["brier"], measures["calibration_error"]))
    assert [(0.0, 20), (1.0, 20)] == [
        (one["mean_support"], one["supported"]["n"]) for one in found["agreement"]["reliability"]
    ]
    for words in ("There is no threshold to choose", "only flips tell how steady it is", "Nothing is saved"):
        assert words in out
    assert "-0.000" not in out
    assert (False, True) == (Path("my.json").exists(), Path("a.svg").exists())


@pytest.mark.parametrize("says", [lambda _: "Yes.", lambda _: "No.", lambda n: "No." if n % 2 == 0 else "Yes."])
def test_a_judge_that_says_nothing_gets_no_map(calibrate, says):
    """One that always says the same, or the opposite of people, has no number that a map could give its answers."""
    for kind in ("platt", "isotonic"):
        code, _, err, _ = calibrate(says, *QUICK, "--save", "my.json", "--map", kind)
        assert (2, True) == (code, "more support does not mean more often supported" in err)
        assert not Path("my.json").exists()


def test_what_is_neither_is_counted_with_what_was_said(calibrate):
    """Replies that are neither yes nor no are left out of the numbers, counted in every round, and shown as text."""
    code, out, _, found = calibrate(
        lambda n: "Perhaps [red]x[/red]." if n in (3, 4) else mostly_right(n), "--repeats", "2", "--no-probes"
    )
    assert (0, 2, 2) == (code, found["outcomes"]["invalid"], found["agreement"]["unjudged"])
    assert ((2, 40), [2]) == (
        (found["unclear"]["claims"]["k"], found["unclear"]["claims"]["n"]),
        [one["unclear"] for one in found["rounds"]],
    )
    assert ["the judge's reply is neither a yes nor a no: 'Perhaps [red]x[/red].'"] == list(found["unclear"]["said"])
    assert "c3: the judge's reply is neither a yes nor a no: 'Perhaps [red]x[/red].'" in out


def test_a_judge_that_wavers_is_found_out_round_by_round(calibrate):
    """Flips between identical repeats are counted for each, and the case is named with both verdicts."""
    times = dict.fromkeys((6, 8), 0)

    def says(number):
        if number not in times:
            return mostly_right(number)
        times[number] += 1
        return "No." if (number, times[number]) in ((6, 2), (8, 3)) else "Yes."

    _, out, _, found = calibrate(says, "--repeats", "3")
    assert {"the same again, 2 of 3": ["c6"], "the same again, 3 of 3": ["c8"]} == {
        one["name"]: [flip["id"] for flip in one["flips"]] for one in found["rounds"] if one["flips"]
    }
    assert "c6 [the same again, 2 of 3]: pass, then fail (support 1.0000 and 0.0000)" in out


def test_what_got_no_answer_is_no_flip(calibrate):
    """Errors are counted in each round and shown with their reason; how steady the judge is they do not tell."""
    broken = Faults(burst_503=0.2, times=1000)
    code, out, _, found = calibrate(mostly_right, "--repeats", "2", "--batch-cases", "8", kind="openai", faults=broken)
    errors, (reason,) = found["outcomes"]["error"], found["errors"]
    assert 0 == code
    assert 0 < errors == found["errors"][reason] == found["agreement"]["unjudged"]
    assert f"{errors} error" in out
    assert out.count("after 5 tries; the last time: status 503") == min(errors, 10)
    for one in found["rounds"]:
        # Padded prompts are other prompts, and others of them fail.
        same = one["kind"] != "padding"
        assert (0, True) == (one["flipped"]["k"], one["errors"] > 0)
        assert not same or (errors, 40 - errors) == (one["errors"], one["flipped"]["n"])
    assert (0, 40 - errors) == (found["unclear"]["claims"]["k"], found["unclear"]["claims"]["n"])


def test_a_judge_without_a_verdict_is_asked_once(calibrate):
    """Where the first round gives no verdict there is no second, and the error says what was said."""
    asked = []

    def says(number):
        asked.append(number)
        return "I cannot tell."

    code, _, err, found = calibrate(says)
    assert (3, None, 40) == (code, found, len(asked))
    assert "40 invalid; of c0: the judge's reply is neither a yes nor a no: 'I cannot tell.'" in err


def test_what_it_costs_is_told(calibrate):
    """All rounds are on the account, and not the questions that a judge is opened with."""
    _, out, _, found = calibrate(mostly_right, "--repeats", "2", "--no-probes", kind="openai")
    ((name, usage),) = found["usage"].items()
    # A call more after each batch sees that the model is still the same.
    assert (80, 84) == (usage["prompts"], usage["calls"])
    assert f"{name}: 80 prompts" in out


def test_what_a_server_cannot_do_is_told(calibrate):
    """A reader learns on stderr that there are no probabilities, as with a run."""
    assert "gives no probabilities" in calibrate(mostly_right, *QUICK)[2]


def test_a_saved_map_belongs_to_the_model_behind_the_name(cases, tmp_path, capsys):
    """What was fitted to the words of one model is refused for another that took its place."""

    def says(number):
        # Right in three cases of five: a bare yes is worth less than it says.
        return "Yes." if (number % 2 == 0) is not (number % 5 in (0, 3)) else "No."

    with FakeOllama(about_claims(says), **WORDS["ollama"]) as server:
        saved, judge = str(tmp_path / "my.json"), ("--judge", f"ollama:{server.url}#bespoke-minicheck")
        codes = []
        for step in (("--save", saved, "--map", "isotonic"), ("--calibration", saved), ("--calibration", saved)):
            if len(codes) == 2:
                server.swap("bespoke-minicheck", "cd" * 32)
            with pytest.raises(SystemExit) as stopped:
                cli.main(["calibrate", str(cases), *judge, *QUICK, *step])
            codes.append(stopped.value.code)
    assert [0, 0, 2] == codes
    assert "made for another judge: revision is" in capsys.readouterr().err


def test_a_model_that_is_replaced_between_rounds_ends_the_calibration(cases, capsys):
    """Half the rounds by one model and half by another are no measurement."""
    asked = []

    def says(number):
        asked.append(number)
        if len(asked) == 60:
            server.swap("bespoke-minicheck", "ab" * 32)
        return mostly_right(number)

    with FakeOllama(about_claims(says), **WORDS["ollama"]) as server, pytest.raises(SystemExit) as stopped:
        cli.main(["calibrate", str(cases), "--judge", f"ollama:{server.url}#bespoke-minicheck"])
    assert (3, True) == (stopped.value.code, "is abababababab now" in capsys.readouterr().err)


def test_an_interruption_ends_it_at_once(cases, tmp_path):
    """Ctrl-C does not wait for the server, leaves no file behind, and promises no more than there is."""
    asked = threading.Semaphore(0)

    def says(_):
        asked.release()
        time.sleep(0.2)
        return "Yes."

    with FakeOllama(about_claims(says), **WORDS["ollama"]) as server:
        judge = ["--judge", f"ollama:{server.url}#bespoke-minicheck", "--save", str(tmp_path / "my.json")]
        # A shell's background job, as in some CI, ignores interrupts and hands that on.
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        program = f"{heard}; from minicheck_eval.cli import main; main()"
        command = [sys.executable, "-c", program, "calibrate", str(cases), *judge]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
            # Past what is loaded and asked when the judge is opened, where Python itself may lose a signal.
            assert all(asked.acquire(timeout=60) for _ in range(20))
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=20)
    assert (130, "") == (started.returncode, out)
    assert err.endswith("interrupted; the same command goes on from what a run or a tape holds by now\n")
    assert "Traceback" not in err
    assert not (tmp_path / "my.json").exists()
