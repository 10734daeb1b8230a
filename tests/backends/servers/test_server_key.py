"""A key goes only where it was meant to go."""

import pytest

from minicheck_eval.backends.servers.key import key_for
from minicheck_eval.errors import BadInput


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://judge.example", "usual"),
        ("http://127.0.0.1:11434", "usual"),
        ("http://localhost:11434", "usual"),
        ("http://judge.example", None),
    ],
)
def test_the_usual_key_is_not_sent_in_the_clear(monkeypatch, url, expected):
    """The key that happens to be in the environment goes over https or to this machine only."""
    monkeypatch.setenv("A_KEY", " usual ")
    assert expected == key_for(url, None, "A_KEY")


def test_a_key_that_was_named_goes_anywhere_and_must_be_there(monkeypatch):
    """Who names a variable means it; an empty one is an error that names it."""
    monkeypatch.setenv("MINE", "mine")
    monkeypatch.delenv("OTHER", raising=False)
    assert "mine" == key_for("http://judge.example", "MINE", "OTHER")
    assert key_for("https://judge.example", None, "OTHER") is None
    with pytest.raises(BadInput, match="OTHER holds no key"):
        key_for("https://judge.example", "OTHER", "MINE")
