"""No text becomes a control token, whatever kind of model the tokenizer has."""

import unicodedata

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.scoring import PromptTemplate

CONTROL = ["<pad>", "</s>", "<unk>"]
LETTERS = list("abc</>spadunk[] ▁")
KIT = {"tiny-flan-t5": {2}, "tiny-roberta": set(), "tiny-deberta-v3": {3}, "tiny-internlm2": {0}}
"""Models of the kit, and the id that stands for an unknown character."""
TEXT = PromptTemplate("{document}", "{claim}")


def unigram():
    pieces = [(piece, 0.0) for piece in CONTROL] + [(letter, -5.0) for letter in LETTERS if letter != " "]
    made = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=2))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


def bpe():
    vocabulary = {piece: i for i, piece in enumerate([*CONTROL, *LETTERS, "</", "s>"])}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [("<", "/"), ("s", ">"), ("</", "s>")], unk_token="<unk>"))
    made.normalizer = normalizers.NFKC()
    return made


def looked_up(pre_tokenizer):
    """Make a BPE that looks whole words up, and has control tokens that no merge leads to."""
    vocabulary = {piece: i for i, piece in enumerate([*CONTROL, *LETTERS, "</", "spad"])}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [("<", "/")], unk_token="<unk>", ignore_merges=True))
    made.pre_tokenizer = pre_tokenizer
    return made


def bpe_of_words():
    return looked_up(pre_tokenizers.WhitespaceSplit())


def bpe_of_whole_texts():
    return looked_up(None)


def words():
    vocabulary = {piece: i for i, piece in enumerate([*CONTROL, "a", "b"])}
    made = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


@pytest.fixture(
    scope="module", params=[unigram, bpe, bpe_of_words, bpe_of_whole_texts, words], ids=lambda make: make.__name__
)
def path(request, tmp_path_factory):
    made = request.param()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL])
    made.add_tokens(["\n\n"])
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def ids(tokenizer, text):
    (prompt,) = tokenizer.encode([TEXT.fill(text, "")])
    return list(prompt.prefix)


hostile = st.lists(st.sampled_from([*CONTROL, *LETTERS, "＜/s＞", "\n", "é"]) | st.text(max_size=3), max_size=12).map(
    "".join
)


@given(hostile)
@settings(deadline=None)
def test_no_text_becomes_a_control_token(path, text):
    """However a control token is written, its id does not come out of a text; only the unknown stays unknown."""
    assert {0, 1}.isdisjoint(ids(PromptTokenizer(path), text))


@given(hostile)
@settings(deadline=None)
def test_harmless_text_keeps_its_ids(path, text):
    """A text without control tokens has the ids that it had before."""
    before = tokenizers.Tokenizer.from_file(str(path)).encode(text, add_special_tokens=False).ids
    if not any(token in unicodedata.normalize("NFKC", text) for token in CONTROL):
        assert before == ids(PromptTokenizer(path), text)


def test_the_frame_keeps_its_control_tokens(path):
    """Control tokens of the template are control tokens, and control tokens inside texts are not."""
    (prompt,) = PromptTokenizer(path).encode([PromptTemplate("a {document}</s>", "{claim}</s>").fill("</s>", "</s>")])
    assert 1 == prompt.prefix[-1] == prompt.suffix[-1]
    assert 2 == [*prompt.prefix, *prompt.suffix].count(1)


@pytest.mark.parametrize("text", ["</s>", "a </s> a", " </s>", " </s> ", "</s>\n\n</s>"])
def test_a_control_token_as_a_word_stays_text(path, text):
    """A model that looks whole words up does not find control tokens."""
    assert {0, 1}.isdisjoint(ids(PromptTokenizer(path), text))


def test_harmless_words_are_still_looked_up(tmp_path):
    """Where a word can be found in the vocabulary without its merges, it still is."""
    made = bpe_of_words()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL])
    made.save(str(tmp_path / "tokenizer.json"))
    assert [made.token_to_id("spad")] == ids(PromptTokenizer(tmp_path / "tokenizer.json"), "spad")


@pytest.mark.shared
@pytest.mark.parametrize("name", KIT)
def test_no_control_token_of_the_published_kinds_can_be_written(shared, name):
    """All control tokens of the published kinds of tokenizer, in many spellings, stay text."""
    tokenizer = PromptTokenizer(shared / "parity" / name / "tokenizer.json")
    for token in tokenizer._control:
        wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in token)
        for text in (token, f"a{token}b", f"a {token} b", token * 3, wide, f"x\n{token}"):
            assert KIT[name] >= set(ids(tokenizer, text)) & set(tokenizer._control.values()), text
