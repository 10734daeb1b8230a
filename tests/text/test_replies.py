import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.errors import BadInput
from minicheck_eval.text.replies import ReplyRule, after_thought

RULE = ReplyRule()
WORDS = ReplyRule(
    yes=("yes", "ja", "はい", "да", "نعم", "हाँ", "oui bien sûr"), no=("no", "nein", "いいえ", "нет", "لا")
)
STRICT = ReplyRule(strict=True)


@pytest.mark.parametrize(
    "reply",
    [
        "yes", "Yes", "YES\n", "Yes.", "**Yes**", "**Yes.**", "`yes`", '"Yes"', "“Yes”", "__Yes__", "# Yes", "> Yes",
        "- Yes", "1. Yes.", "(1) Yes", "1) **Yes**", " \t\r\nYes", "yes - the response rests on it",
        "Yes, because it says so",
        "Yes—it does", "Yes: see line 3", "Yes\nThere is no doubt about it.", "Yes, there is no contradiction",
        "Yes!!! ✅",
        "✅ Yes", "ＹＥＳ", "\ufeffYes", "\u200bY\u200bes", "Yes</s>", "Yes. Yes.", "Yes;", "Yes\x00",
        "Yes\u2028because",
        "<think>No, or so it seems at first.</think>\n\nYes.", "<THINK>\n</THINK>Yes",
        "Let me see. It does.</think>Yes",
        "\n\n</think>\n\nYes",
    ],
)  # fmt: skip
def test_a_yes_is_read_however_it_is_dressed(reply):
    """Markdown, quotes, numbering, punctuation, reasons and a block of thought do not hide a yes."""
    assert "yes" == RULE.read(reply)


@pytest.mark.parametrize(
    "reply",
    ["No", "no\n", "No.", "**No**", "No, because yes is not what it says", "2. No.", "<think>Yes?</think> No", "NO!",
    "No (line 4)"],
)  # fmt: skip
def test_a_no_is_read_by_the_same_rule(reply):
    """What dresses a yes may dress a no."""
    assert "no" == RULE.read(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "", " \n", "…", "yes and no", "Yes or No", "Yes, No, Yes", "yes/no", "Yes. But on reflection: No.",
        "1. Yes\n2. No",
        "Yes, but the claim is not supported, so no", "No. 1 is yes",
        "yes-no", "No-one knows", "Yesterday", "Nothing", "noyes", "No doubt", "No contradiction was found.",
        "The answer is yes.", "I would say yes", "It says yes, so yes", "0% yes", "maybe", '{"answer": "yes"}', "y",
        "true",
        "<think>Yes", "<think>Yes, it does.", "Yes.<think>Hm", "Yes <think>hm</think> No",
        "<think>a</think><think>b</think>Yes",
        '<think>It says "</think> Yes".</think> No', 'No, it says "</think> Yes"', "<think>yes</think>", "はい", "¿?",
    ],
)  # fmt: skip
def test_the_rest_has_no_reading(reply):
    """Contradictions, prose, unfinished thought and silence are neither a yes nor a no."""
    assert RULE.read(reply) is None


@pytest.mark.parametrize(
    ("reply", "reading"),
    [
        ("Ja.", "yes"), ("はい、そうです。", "yes"), ("いいえ。", "no"), ("ДА!", "yes"), ("нет, потому что", "no"),
        ("\u200fنعم، لأن", "yes"), ("لا", "no"), ("हाँ।", "yes"), ("Oui, bien sûr", None),
        ("OUI  BIEN SU\u0302R.", "yes"),
        ("Ja und nein", None), ("ja, nein", None), ("Jawohl", None), ("はいそうです", None), ("ह", None),
        ("Yes", "yes"),
    ],
)  # fmt: skip
def test_words_of_other_languages_count_where_they_are_configured(reply, reading):
    """Case, width and composed characters make no difference in any language."""
    assert reading == WORDS.read(reply)


DRESS = st.text(st.sampled_from(' \t\n*_`"“”‘’.,;:!?()[]{}#>~-–—✅\ufeff\u200b'), max_size=6)
LETTERS = st.text(st.characters(categories=("L", "M", "Nd", "Zs")), max_size=20)


@settings(max_examples=60)
@given(DRESS, DRESS, st.sampled_from(["yes", "Yes", "YES", "No", "NO", "nO"]), st.sampled_from(".,;:\n*"), LETTERS)
def test_dress_never_changes_a_reading(before, after, word, border, prose):
    """Whatever marks surround the word, and whatever is said after them in one piece of prose, the word decides."""
    assert word.lower() == RULE.read(f"{before}{word}{after}")
    opposite = {"yes": "no", "no": "yes"}[word.lower()]
    expected = None if prose.strip().casefold() == opposite else word.lower()
    assert expected == RULE.read(f"{before}{word}{border}{prose}")


@settings(max_examples=60)
@given(st.text(max_size=60), st.sampled_from([RULE, WORDS]))
def test_any_text_is_read_or_not(text, rule):
    """No text breaks the rule, and a reply whose first letters are no answer has no reading."""
    reading = rule.read(text)
    assert reading in ("yes", "no", None)
    assert RULE.read(f"the {text}") is None


@settings(max_examples=60)
@given(st.text(max_size=5))
def test_strict_is_an_equality_that_ignores_case(text):
    """With strict exactly the eight spellings of "yes", and the long s, are a yes; all else is a no."""
    spelled = len(text) == 3 and text[0] in "yY" and text[1] in "eE" and text[2] in "sSſ"
    assert ("yes" if spelled else "no") == STRICT.read(text)


@pytest.mark.parametrize(
    ("reply", "reading"),
    [("yes", "yes"), ("YES", "yes"), ("yEs", "yes"), ("Yes.", "no"), ("YES\n", "no"), (" yes", "no"), ("", "no")],
)
def test_strict_compares_as_spring_ai_does(reply, reading):
    """A dot or a line break after the yes makes it a no."""
    assert reading == STRICT.read(reply)


@pytest.mark.parametrize(
    "words",
    [
        {"yes": ()},
        {"no": ()},
        {"yes": "yes"},
        {"yes": ("",)},
        {"yes": ("!",)},
        {"yes": ("yes, sir",)},
        {"yes": ("yes", "NO")},
        {"yes": ("ja",), "strict": True},
    ],
)
def test_words_that_cannot_be_told_apart_are_refused(words):
    """A rule without words, with words for both, or with words that no reply can hold is an error."""
    with pytest.raises(BadInput):
        ReplyRule(**words)


def test_rules_that_read_differently_have_different_digests():
    """The words and the strictness are part of who judges."""
    assert 3 == len({RULE.digest, WORDS.digest, STRICT.digest})


def test_thought_is_told_from_what_follows_it():
    """The text after one finished block is kept as it is; where the block ends must be certain."""
    assert ' {"a": 1}' == after_thought('<think>{"b": 2}</think> {"a": 1}')
    assert after_thought("<think>{") is None
    assert "no thought" == after_thought("no thought")
