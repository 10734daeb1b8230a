import io
import json
import subprocess
import sys

import pytest

from minicheck_eval import cli
from minicheck_eval import family as door
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.manifest import load_manifest
from minicheck_eval.scoring import Score

CANARIES = {canary.claim: canary.support for canary in load_manifest("minicheck-nano").manifest.canaries}


@pytest.fixture(autouse=True)
def fake_model(monkeypatch):
    def answer(prompt):
        document, claim = prompt.prefix[1].text, prompt.suffix[1].text
        if "mumble" in claim:
            return Score(0.1, 0.1, "The")
        return CANARIES.get(claim, 0.9 if claim in document else 0.1)

    fake = FakeBackend(answer, window_tokens=2048)
    fake.dtype = "float32"
    monkeypatch.setattr(door, "_open_backend", lambda *_: fake)


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "evidence.txt"
    path.write_text("\ufeffThe shop opens at nine. [It] closes at six. 日本語です。", encoding="utf-8")
    return str(path)


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", *arguments])
    return stopped.value.code


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        ("The shop opens at nine.", 0),
        ("The shop opens at nine. It sells cats.", 1),
        ("", 3),
        ("mumble.", 3),
        ("日本語です。", 0),
    ],
)
def test_exit_code_says_what_came_out(document, claim, code):
    """0 all supported, 1 not, 3 could not judge."""
    assert code == run("--document", document, "--claim", claim)


def test_each_claim_is_shown_with_support_and_evidence(document, capsys):
    """A person sees every claim, its support, its best evidence and the verdict."""
    run("--document", document, "--claim", "The shop opens at nine. It sells cats.")
    shown = capsys.readouterr().out
    assert "0.900  pass     The shop opens at nine." in shown
    assert "0.100  fail     It sells cats." in shown
    assert f"{document}: The shop opens" in shown
    assert "fail: 1 of 2 claims supported. (support 0.100)" in shown


def test_json_is_one_verdict_and_nothing_else(document, capsys):
    """Stdout is one JSON object in the shape of a verdict."""
    run("--document", document, "--claim", "It sells cats.", "--json")
    verdict = json.loads(capsys.readouterr().out)
    assert ["pass", "outcome", "score", "feedback", "metadata"] == list(verdict)
    assert (False, "fail", 0.1) == (verdict["pass"], verdict["outcome"], verdict["score"])
    assert ["text", "start", "end"] == list(verdict["metadata"]["claims"][0])[:3]


def test_document_comes_from_stdin(monkeypatch, capsys):
    """A dash reads the evidence from stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"It closes at six.")))
    assert 0 == run("--document", "-", "--claim", "It closes at six.")


def test_several_documents_are_evidence_together(document, tmp_path):
    """Each claim may be supported by another document."""
    other = tmp_path / "other.txt"
    other.write_text("Cats sleep.")
    assert 0 == run("--document", document, "--document", str(other), "--claim", "The shop opens at nine. Cats sleep.")


def test_a_document_given_twice_is_evidence_twice(document, capsys):
    """Documents of one name are told apart."""
    assert 0 == run("--document", document, "--document", document, "--claim", "The shop opens at nine.")
    assert f"{document}: The shop opens" in capsys.readouterr().out


def test_text_cannot_steer_the_terminal(tmp_path, capsys):
    """Control codes of a document or a claim are shown, not obeyed."""
    path = tmp_path / "evil.txt"
    path.write_text("It is \x1b]0;owned\x07 so.")
    run("--document", str(path), "--claim", "It is \x1b[2J so.")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown


def test_a_fault_is_no_verdict(document, monkeypatch, capsys):
    """Whatever breaks inside ends with exit code 3 and a line on stderr: 1 would mean that a claim is not supported."""
    monkeypatch.setattr(door, "_open_backend", lambda *_: 1 / 0)
    assert 3 == run("--document", document, "--claim", "x")
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"ok \xc3", None])
def test_unreadable_document_is_bad_input(tmp_path, capsys, content):
    """A missing file or one that is no text ends with exit code 2, its name and a hint on stderr."""
    path = tmp_path / "bad.txt"
    if content is not None:
        path.write_bytes(content)
    assert 2 == run("--document", str(path), "--claim", "x")
    captured = capsys.readouterr()
    assert "" == captured.out
    assert "bad.txt" in captured.err
    assert "hint:" in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--claim", "x"],
        ["--document", "-"],
        ["--document", "-", "--claim", "x", "--judge", "none-such"],
        ["--wrong"],
        ["--document", "-", "--claim", "x", "--chunk-tokens", "0"],
        ["--document", "-", "--claim", "x", "--threshold", "nan"],
    ],
)
def test_wrong_arguments_are_bad_input(arguments, monkeypatch, capsys):
    """What cannot be understood is exit code 2 and no traceback."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    assert 2 == run(*arguments)
    assert "Traceback" not in capsys.readouterr().err


def test_help_is_quick_and_lists_the_verbs():
    """The installed command shows its verbs."""
    done = subprocess.run(
        [sys.executable, "-m", "minicheck_eval", "--help"], capture_output=True, text=True, check=True
    )
    assert all(verb in done.stdout for verb in cli.VERBS)
