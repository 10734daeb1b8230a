"""Text from outside, made harmless."""

import pytest

from minicheck_eval.reports.plain import plain


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("two\nlines\tand\u00a0more\u2028 ", "utf-8", "two lines and more"),
        ("\x1b[31mred\x07\x00\x9b", "utf-8", r"\x1b[31mred\x07\x00\x9b"),
        ("lone \ud800 half", "utf-8", r"lone \ud800 half"),
        ("left\u202eright", "utf-8", r"left\u202eright"),
        ("می\u200cخواهم 👩\u200d🔬 漢字", "utf-8", "می\u200cخواهم 👩\u200d🔬 漢字"),
        ("naïve 漢", "latin-1", r"naïve \u6f22"),
        ("naïve 漢", "ascii", r"na\xefve \u6f22"),
        ("naïve", "no such encoding", r"na\xefve"),
        ("[bold]x[/bold] :smile:", "utf-8", "[bold]x[/bold] :smile:"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(text, encoding, expected):
    """Controls, lone surrogates and what the terminal cannot show become escapes; other scripts stay."""
    assert expected == plain(text, encoding)


def test_long_text_is_cut():
    """A cut text says so and has the length asked for, also when it is huge."""
    assert "abc" == plain("abc", most=3)
    assert "ab..." == plain("abcdefgh", most=5)
    assert 20 == len(plain("x" * 50_000_000, most=20))
