import pytest

from minicheck_eval.text import split_claims
from minicheck_eval.text.claims import FILLERS


def texts_of(answer: str) -> list[str]:
    return [span.of(answer) for span in split_claims(answer)]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\t ",
        "...",
        "?!",
        "😀 🎉",
        "---",
        "-",
        "- \n* \n",
        "# Only a title",
        "Only a title\n============",
        "```python\nprint('Paris is big.')\n```",
        "~~~\nparis = big()\n~~~",
        "Sure!",
        "Of course. I hope this helps!",
        "Gerne! Ich hoffe, das hilft.",
        "Would you like to know more?",
        "好吗？",
        "هل تقرأ؟",
        "| a | b |\n|---|---|",
    ],
)
def test_nothing_to_check_gives_no_claims(answer):
    """Blank, punctuation, titles, code, fillers and questions state no fact."""
    assert [] == split_claims(answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris is in France. It is old.", ["Paris is in France.", "It is old."]),
        ("Paris", ["Paris"]),
        ("42", ["42"]),
        ("42.", ["42."]),
        ("Yes.", ["Yes."]),
        ("No. It is in Rome.", ["No.", "It is in Rome."]),
        ("Sure! Paris is in France. Want more? 😊", ["Paris is in France."]),
        ("Sure thing, Paris is in France.", ["Sure thing, Paris is in France."]),
        ("You’re welcome! It is old.", ["It is old."]),
        ("Natürlich! Berlin liegt z. B. in Deutschland. Vielen Dank!", ["Berlin liegt z. B. in Deutschland."]),
        ('He asked "Why?"', ['He asked "Why?"']),
        ("Capital: Paris", ["Capital: Paris"]),
        ("巴黎是首都。好吗？它很大。", ["巴黎是首都。", "它很大。"]),
    ],
)
def test_sentences_that_may_state_a_fact_are_claims(answer, expected):
    """Only what cannot hold a fact is left out."""
    assert expected == texts_of(answer)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("# Title\n\nText here.", ["Text here."]),
        ("## The answer is 42.", ["The answer is 42."]),
        ("Title\n-----\nText here.", ["Title", "Text here."]),
        ("Some prose.\n---\nMore prose.", ["Some prose.", "More prose."]),
        (
            "- Paris is big. It is old.\n* **Berlin**\n+ Rome\n• Oslo",
            ["Paris is big.", "It is old.", "**Berlin**", "Rome", "Oslo"],
        ),
        ("1. One\n2) Two\n(3) Three\na) Four", ["One", "Two", "Three", "Four"]),
        ("- [x] It is done.\n- [ ] It is not.", ["It is done.", "It is not."]),
        ("- Paris\n  is big.\n  - Nested", ["Paris\n  is big.", "Nested"]),
        ("> Quoted line\n> goes on. Next.\n> last.", ["Quoted line\n> goes on.", "Next.", "last."]),
        ("The sights are:\n\n- The Louvre\n- Notre-Dame", ["The Louvre", "Notre-Dame"]),
        ("It is old. Its sights:\n1. The Louvre", ["It is old.", "The Louvre"]),
        ("Answer:\nIt opens at nine.", ["It opens at nine."]),
        ("Nobody gets refunds:\n- billing is closed", ["Nobody gets refunds:", "billing is closed"]),
        ("Free for 90 days\n---\nIt opens at nine.", ["Free for 90 days", "It opens at nine."]),
        ("```\nRefunds take 90 days.\n```", ["Refunds take 90 days."]),
        ("```\npip install it\n```\nIt works.", ["It works."]),
        ("The shop in Berlin has branches:\n- Mitte", ["The shop in Berlin has branches:", "Mitte"]),
        ("以下是本店的全部规则说明内容：\n- 本店九点开门。", ["本店九点开门。"]),
        ("Here are the two rules:\n- Be kind.", ["Be kind."]),
        ("Here are the 2 rules:\n- Be kind.", ["Here are the 2 rules:", "Be kind."]),
        ("The facts are these:\n\nParis is big.", ["The facts are these:", "Paris is big."]),
        ("Text.\n```python\nx = 1. Y\n```\nMore text.", ["Text.", "More text."]),
        ("```markdown\nParis is big. It is old.\n```", ["Paris is big.", "It is old."]),
        ("Text.\n```\nParis is big. It is old.", ["Text.", "Paris is big.", "It is old."]),
        ("| City | People |\n|:--|--:|\n| Paris. X | 2 |\n| | |\n| Rome | 3 |", ["Paris. X | 2", "Rome | 3"]),
        ("City | People\n--- | ---\nParis | 2\n\nThe end.", ["Paris | 2", "The end."]),
        ("Assistant: Paris is big.\nUser: Why?\n**Answer:** It grew.", ["Paris is big.", "It grew."]),
        ("A: Paris is big.\r\nB: No, it is not.", ["Paris is big.", "B: No, it is not."]),
        ("3. Oktober 1990 war ein Feiertag.", ["3. Oktober 1990 war ein Feiertag."]),
        ("-5 degrees is cold.", ["-5 degrees is cold."]),
        ("\ud800 One. 😀 Two\0.", ["\ud800 One.", "😀 Two\0."]),
    ],
)
def test_marks_before_a_claim_are_left_outside(answer, expected):
    """Markdown and dialogue are read as such, and what they hold is checked."""
    assert expected == texts_of(answer)


@pytest.mark.parametrize("filler", sorted(FILLERS))
def test_every_filler_is_written_as_it_is_compared(filler):
    """Each filler of the list is left out as a sentence with a capital and a stop."""
    assert [] == split_claims(f"{filler.capitalize()}!")


@pytest.mark.parametrize(
    "text", ["?" * 4000 + "a", "a" * 4000 + "\n- x", "a " * 2000 + "\n- x", ": " * 2000, "'?" * 2000]
)
def test_repeated_characters_are_read_in_no_time(text):
    """Degenerate output of a model is split like any other; a search that goes back and forth would take minutes."""
    assert 1 >= len(split_claims(text)) or "x" in text


def test_a_claim_is_never_cut():
    """A sentence of any length is one claim: whether it fits a judge is for the judge to say."""
    long = "The shop sells " + "apples and " * 3000 + "pears."
    assert ["It is old.", long, "It is big."] == texts_of(f"It is old. {long} It is big.")
