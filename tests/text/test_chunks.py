import pytest

from minicheck_eval.text import split_chunks, split_sentences


def count_characters(texts):
    return [len(text) for text in texts]


def count_words(texts):
    return [len(text.split()) for text in texts]


def chunk_texts(text, limit, measure=count_characters):
    return [span.of(text) for span in split_chunks(text, limit, measure)]


def counted(measure):
    calls = []

    def counting(texts):
        calls.append(len(texts))
        return measure(texts)

    return calls, counting


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("Aa. Bb. Cc.", 11, ["Aa. Bb. Cc."]),
        ("Aa. Bb. Cc.", 10, ["Aa. Bb.", "Cc."]),
        ("Aa. Bb. Cc.", 7, ["Aa. Bb.", "Cc."]),
        ("Aa. Bb. Cc.", 6, ["Aa.", "Bb.", "Cc."]),
        ("  Aa.\n\n\n Bb.  ", 20, ["Aa.\n\n\n Bb."]),
        ("好的。是的。行。", 6, ["好的。是的。", "行。"]),
    ],
)
def test_whole_sentences_are_packed_greedily(text, limit, expected):
    """A chunk holds as many sentences as fit, verbatim, trimmed at its ends."""
    assert expected == chunk_texts(text, limit)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("alpha beta, gamma delta", 14, ["alpha beta,", "gamma delta"]),
        ("alpha beta gamma", 11, ["alpha beta", "gamma"]),
        ("abcdefgh", 4, ["abcd", "efgh"]),
        ("ab", 1, ["a", "b"]),
        ("天气很好，我们去公园", 6, ["天气很好，", "我们去公园"]),
    ],
)
def test_a_sentence_beyond_the_limit_is_cut_where_it_hurts_least(text, limit, expected):
    """Clause punctuation comes first, then white space, then any character."""
    assert expected == chunk_texts(text, limit)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("e\u0301" * 20, 3), ("\U0001f44d\U0001f3fd" * 20, 5), ("\ud83d\ude00" * 20, 3), ("👩\u200d👧" * 20, 7)],
)
def test_visible_characters_stay_whole(text, limit):
    """A cut falls between clusters of characters when they fit."""
    cluster = len(text) // 20
    assert {0} == {start % cluster for start, _ in split_chunks(text, limit, count_characters)}


def test_a_character_beyond_the_limit_stands_alone():
    """What cannot be cut is kept, although it measures too much."""

    def measure(texts):
        return [len(text.encode()) for text in texts]

    assert ["a", "😀", "b"] == chunk_texts("a😀b", 2, measure)


@pytest.mark.parametrize("text", ["", " \n\t\u3000"])
def test_blank_text_has_no_chunks(text):
    """There is no chunk without a character in it."""
    assert [] == split_chunks(text, 5, count_characters)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    """A limit that nothing can meet is an error of the caller."""
    with pytest.raises(ValueError, match="at least 1 unit"):
        split_chunks("Text.", limit, count_characters)


@pytest.mark.parametrize(
    "measure",
    [
        count_words,
        lambda texts: [2 + len(text.split()) for text in texts],
        lambda texts: [len(text.encode("utf-8", "surrogatepass")) for text in texts],
        lambda texts: [len(text) + len(text) ** 2 // 50 for text in texts],
        lambda texts: [1 if len(text) < 15 else 99 for text in texts],
    ],
    ids=["words", "special-tokens", "bytes", "more-than-the-sum", "not-proportional"],
)
def test_every_chunk_fits_when_measured_whole(measure):
    """Chunks are measured as they are, not as the sum of their sentences."""
    text = "The cat sat, as cats do, on the mat. " * 30 + "x" * 300 + " 猫坐在垫子上。" * 20
    chunks = chunk_texts(text, 20, measure)
    assert [] == [chunk for chunk, size in zip(chunks, measure(chunks), strict=True) if size > 20]
    assert "".join(text.split()) == "".join("".join(chunks).split())


def test_long_white_space_does_not_cut_a_sentence():
    """White space behind a sentence is trimmed before the sentence is found too long."""
    assert ["One sentence.", "Two."] == chunk_texts("One sentence." + " " * 50 + "Two.", 13)


def test_measuring_is_batched():
    """A document of short sentences takes three calls, whatever its length."""
    calls, measure = counted(count_words)
    text = "The cat sat on the mat. " * 500
    assert 63 == len(split_chunks(text, 50, measure))
    assert [1, len(split_sentences(text))] == calls[:2]
    assert 3 == len(calls)


def test_repairs_take_few_calls():
    """Even one very long word takes few rounds."""
    calls, measure = counted(count_characters)
    assert 1000 <= len(split_chunks("x" * 100_000, 100, measure))
    assert 8 >= len(calls)
