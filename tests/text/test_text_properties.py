from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.text import split_chunks, split_claims, split_sentences

FRAGMENTS = [
    *"ab AB.!?,:;…。！？、\n\r\t\"'“”„«»「」()[]*_`#>|-~=+1é\u0301\u200b\u200d\0\u2028\u3000\x85\x1c؟।",
    *[
        "Dr. ",
        "e.g. ",
        "z. B. ",
        "No. 5",
        "3.14",
        "U.S. ",
        "https://a.b/c?D",
        "1. ",
        "- ",
        "\n\n",
        "\r\n",
        "A: ",
        "```",
        "\n> ",
    ],
    *[
        "|---|",
        "\n# ",
        "\n===\n",
        "The end. ",
        "das ist ",
        "猫です。",
        "你好。",
        "كتاب؟ ",
        "है। ",
        "😀",
        "\U0001f44d\U0001f3fd",
    ],
    *["\ud800", "\udc00", "am 3. ", "(Yes.) ", '"No." '],
]
texts = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join),
)
measures = st.sampled_from(
    [
        lambda batch: [len(text) for text in batch],
        lambda batch: [2 + len(text.split()) for text in batch],
        lambda batch: [len(text.encode("utf-8", "surrogatepass")) for text in batch],
        lambda batch: [len(text) ** 2 for text in batch],
        lambda batch: [hash_size(text) for text in batch],
    ]
)
thorough = settings(deadline=None, max_examples=300)


def hash_size(text):
    return sum(map(ord, text)) % 7


def assert_ordered_and_trimmed(text, spans):
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(span.of(text) == span.of(text).strip() != "" for span in spans)


@thorough
@given(texts)
def test_sentences_cover_the_text_exactly_once(text):
    """Sentences are in order, trimmed, and leave out only white space."""
    spans = split_sentences(text)
    assert_ordered_and_trimmed(text, spans)
    assert "".join(text.split()) == "".join("".join(span.of(text) for span in spans).split())


@thorough
@given(texts)
def test_claims_are_parts_of_sentences_and_hold_a_word(text):
    """Claims are in order, trimmed, each within one sentence, and hold a letter or a digit."""
    claims = split_claims(text)
    assert_ordered_and_trimmed(text, claims)
    sentences = split_sentences(text)
    assert all(any(s.start <= claim.start and claim.end <= s.end for s in sentences) for claim in claims)
    assert all(any(map(str.isalnum, claim.of(text))) for claim in claims)


@thorough
@given(texts, st.integers(1, 30), measures)
def test_chunks_fit_and_cover_the_text_exactly_once(text, limit, measure):
    """Chunks are in order, trimmed, within the limit or one character, and leave out only white space."""
    chunks = split_chunks(text, limit, measure)
    assert_ordered_and_trimmed(text, chunks)
    assert "".join(text.split()) == "".join("".join(chunk.of(text) for chunk in chunks).split())
    sizes = measure([chunk.of(text) for chunk in chunks])
    assert all(size <= limit or len(chunk.of(text)) == 1 for chunk, size in zip(chunks, sizes, strict=True))


@pytest.mark.parametrize("split", [split_sentences, split_claims])
@thorough
@given(text=texts)
def test_splitting_is_deterministic(split, text):
    """The same text is split the same way again."""
    assert split(text) == split(text)
