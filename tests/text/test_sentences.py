import pytest
import sentencex

from minicheck_eval.text import SPLITTER, Span, split_sentences
from minicheck_eval.text.language import language_of


def texts_of(text: str) -> list[str]:
    return [span.of(text) for span in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        # English
        ["Paris is in France.", "It is old."],
        ["Pi is 3.14.", "See v2.0.1.", "It cost $5.", "The end."],
        ["Dr. Smith of the U.S. was No. 5 at 5 p.m.", "The file main.py was read."],
        ["Fruit, e.g. apples, i.e. food, is cheap.", "Cf. Fig. 3 and pp. 3-5 of Vol. 2, approx. 5 items."],
        ["J. K. Rowling and George W. Bush met Mr. Jones vs. Acme Inc. in St. Louis.", "Smith et al. (2010) said so."],
        ["No. 5 is alive.", "No.", "It is not."],
        ["It took 5 ms.", "They live in San Diego, CA.", "Then they left."],
        ["Visit https://a.example/b.C?D=e.F.", "Mail first.last@mail.example.com.", "Go to www.example.com."],
        ["Call foo.Bar.baz() now.", "Use `a. B` now.", "Node.js works."],
        ['He said "Go. Now!"', "Then he left."],
        ['"Really?" she asked.', '"Yes," he said.'],
        ["(It was late.", "Too late.)", "He went (at last).", "(Yes.)", "Then it was over."],
        ["**Bold.**", "Next.", "*Slanted.*", "Last."],
        ["The claim is true.[1]", "Another.[2][3]", "Third."],
        ["Wow!!!", "What?!", "Wait...", "Yes."],
        ["😀 Yes!", "It is 👩‍👩‍👧 here.", "Fine."],
        # German
        ["Das ist z. B. gut.", "Dr. Maier kam am 3. Oktober 1990 nach St. Gallen.", "Er blieb."],
        ["Das ist Nr. 5, d. h. das Haus bzw. der Hof.", "Er hat ca. 5 Mio. Euro."],
        ["Im 19. Jahrhundert kam die 2. Auflage.", "Danach wurde es still.", "Er ist 30.", "Sie auch."],
        ["Am 3. 10. 2020 war er mit Dipl.-Ing. Huber da.", "Der Zug auch."],
        ["Er sagte: „Das ist gut.“", "Dann ging er."],
        ["Danach kam sie.", "20 Leute waren da, geb. 1950, lt. Abs. 2 Satz 1 und Abb. 3 oben.", "5 gingen."],
        # French, Spanish
        ["M. Dupont est le chef.", "Il est né en 100 av. J.-C.", "C'est la vie."],
        ["¿Cómo estás?", "¡Bien!", "El Sr. García y la Sra. López viven en EE.UU. desde 1990.", "Sí."],
        # Hindi, Arabic, Russian
        ["डॉ. शर्मा आए।", "वे गए।", "क्या?"],
        ["هذا كتاب.", "هل تقرأ؟", "نعم!", "انتهى."],
        ["Привет.", "Он жил в г. Москве, т.е. в столице.", "Да."],
        # One quotation is split inside.
        ['"Paris is big.', 'Berlin is small."'],
    ],
)
def test_text_with_spaces_between_sentences_is_split_there(sentences):
    """Sentences joined by spaces come back as they were."""
    assert sentences == texts_of(" ".join(sentences))


@pytest.mark.parametrize(
    "sentences",
    [
        ["今天天气很好。", "我们去公园吧！", "好吗？"],
        ["公司成立。", "2010年，它上市。"],
        ["你说：“好的。”", "然后走了。"],
        ["3.14是圆周率。", "Dr. Smith来了。"],
        ["彼は「はい。」と言った。", "東京（とうきょう。）です。", "次！"],
        ["「行くの？」", "「うん。」"],
    ],
)
def test_chinese_and_japanese_need_no_spaces(sentences):
    """Full-width stops end a sentence without white space, but not within a quoted part of one."""
    assert sentences == texts_of("".join(sentences))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\u2028", "\x85"])
@pytest.mark.parametrize(
    "lines",
    [
        ["# A title", "Some text", "Another line"],
        ["- apples", "- Pears and plums", "* figs", "1. one", "2) two"],
        ["User: hello there", "Assistant: hi", "Tom Smith: well"],
        ["A title", "=======", "Some text"],
        ["The colours are:", "red"],
        ["| a. B | c |", "|---|---|", "| d. E | f |"],
        ["```python", "a = b. C", "d = 1", "```", "Done."],
        ["> quoted. ", "", "---", "", "Text"],
    ],
)
def test_lines_that_stand_alone_end_a_sentence(lines, newline):
    """List items, titles, turns, table rows and lines of code are sentences of their own, whatever ends a line."""
    assert [line.strip() for line in lines if line] == texts_of(newline.join(lines))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_wrapped_prose_is_joined(newline):
    """A line that goes on in lower case, or in capitals within wrapped prose, does not end a sentence."""
    text = newline.join(["The tower stands in", "the middle of Paris. It was built by Dr.", "Eiffel. It is high."])
    expected = [
        newline.join(["The tower stands in", "the middle of Paris."]),
        newline.join(["It was built by Dr.", "Eiffel."]),
        "It is high.",
    ]
    assert expected == texts_of(text)


def test_quote_marks_of_the_next_line_belong_to_the_next_sentence():
    """A quoted paragraph is joined over its marks."""
    assert ["> One goes\n> on here.", "> and two."] == texts_of("> One goes\n> on here.\n> and two.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3. Oktober 1990 war ein Feiertag.", ["3. Oktober 1990 war ein Feiertag."]),
        ("42.", ["42."]),
        ("How many? 42.", ["How many?", "42."]),
        ("Er kam. 1. FC Köln ist der Verein.", ["Er kam.", "1. FC Köln ist der Verein."]),
    ],
)
def test_numbers_with_a_stop_are_read_by_what_surrounds_them(text, expected):
    """A number with a stop is an ordinal, a date, an enumerator or an answer."""
    assert expected == texts_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\r\n\u3000 ", []),
        ("...", ["..."]),
        ("One \ud800 here. Two \udfff.", ["One \ud800 here.", "Two \udfff."]),
        ("One \0 here. Two\0.", ["One \0 here.", "Two\0."]),
        ("A. \u2028B. C\u2028D. E", ["A.", "B. C", "D. E"]),
        ("No stop at all", ["No stop at all"]),
    ],
)
def test_odd_characters_are_no_obstacle(text, expected):
    """Blank text, lone surrogates, NUL and rare line ends give sentences or nothing."""
    assert expected == texts_of(text)


def test_offsets_count_characters_of_the_original():
    """Spans hold behind emoji, combining marks and CR LF."""
    assert [Span(0, 4), Span(6, 16)] == split_sentences("😀 A.\r\n\U0001f469\u200d\U0001f467 e\u0301 it.")


def test_a_sentence_longer_than_the_window_is_cut_at_white_space():
    """Text without any stop is still covered, in pieces."""
    text = "word " * 3000
    spans = split_sentences(text)
    assert {"word"} == set(" ".join(span.of(text) for span in spans).split())
    assert 3000 == sum(len(span.of(text).split()) for span in spans)


def test_a_long_paragraph_is_split_as_its_parts_are():
    """Where the window falls does not show."""
    sentences = [f"Sentence {number} was written by Dr. Smith, e.g. in 1990." for number in range(1000)]
    assert sentences == texts_of(" ".join(sentences))


@pytest.mark.parametrize("unit", ["“", "a. ", "a\n", "`", "1. ", "'", "```a\n", "e\u0301"])
def test_monotonous_text_takes_linear_time(unit):
    """A hundred thousand characters of the same take no quadratic time."""
    text = unit * (100_000 // len(unit))
    assert len(text.replace(" ", "").replace("\n", "")) <= sum(end - start for start, end in split_sentences(text))


@pytest.mark.parametrize("outcome", ["panic", "lossy"])
def test_a_failing_splitter_leaves_the_block_whole(monkeypatch, outcome):
    """A panic of the splitter, or lost characters, give one sentence and no error."""

    class PanicException(BaseException):
        pass

    def segment(language, text):
        if outcome == "panic":
            raise PanicException
        return ["lost"]

    monkeypatch.setattr(sentencex, "segment", segment)
    assert ["One. Two."] == texts_of("One. Two.")


def test_an_interrupt_is_not_swallowed(monkeypatch):
    """Only a panic is caught."""

    def segment(language, text):
        raise KeyboardInterrupt

    monkeypatch.setattr(sentencex, "segment", segment)
    with pytest.raises(KeyboardInterrupt):
        split_sentences("One. Two.")


def test_splitter_names_version_and_rules():
    """The name that goes into a judge's identity tells the splitter's version and ours."""
    assert ["sentencex", "/", "rules"] == [word for word in SPLITTER.split() if not word[0].isdigit()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "en"),
        ("1990", "en"),
        ("The cat is on the mat.", "en"),
        ("Die Katze ist auf dem Dach.", "de"),
        ("Le chat est sur la table.", "fr"),
        ("今天天气很好", "zh"),
        ("今日は天気です", "ja"),
        ("هذا كتاب", "ar"),
        ("यह एक वाक्य है", "hi"),
        ("Это так", "ru"),
        ("The word 猫 is Chinese for cat.", "en"),
    ],
)
def test_language_is_guessed_from_script_and_common_words(text, expected):
    """The script decides, then the commonest words."""
    assert expected == language_of(text)


def test_without_evidence_the_default_language_holds():
    """A block that shows no language is read like the whole text."""
    assert "de" == language_of("Müller: 42", default="de")
