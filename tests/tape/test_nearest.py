"""Which recorded question a miss is explained by, and what is said of it."""

import pytest

from minicheck_eval.tape.nearest import MOST_EXPLAINED

CLAIMS = [f"The {thing} opens at {hour}." for thing in ("shop", "bank", "museum") for hour in ("eight", "nine", "ten")]


@pytest.fixture
def recorded(recording, fill, fake):
    """A tape of nine claims, each on the same two documents."""
    tape = recording(fake())
    tape.score([fill(document, claim) for document in ("Rules of May.", "Rules of June.") for claim in CLAIMS])
    tape.close()


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_nearest_claim_shares_the_most_words(recorded, replaying, fill, claim):
    """Of all that was recorded on the same document it is the claim that was changed, wherever it lies on the tape."""
    (miss,) = replaying().score([fill("Rules of June.", claim.replace("opens", "now opens"))])
    name = claim.partition(" opens")[0]
    assert f"recorded {claim!r}, asked '{name} now opens" in miss.message
    assert "document" not in miss.message


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_changed_document_is_found_by_its_claim(recorded, replaying, fill, claim):
    """With the claim as it was, the document is what differs, and the first place where it does is shown."""
    (miss,) = replaying().score([fill("Rules of July.", claim)])
    assert "differs in the texts it begins with (the document); recorded 'Rules of " in miss.message
    assert miss.message.endswith("asked 'Rules of July.'")


def test_of_several_documents_the_changed_one_is_found(recording, replaying, fill, fake):
    """Where one claim was asked over many documents, the nearest is the one whose words are the most alike."""
    documents = [
        f"The rules of {month} say that the {thing} opens." for month, thing in zip("abcdef", "uvwxyz", strict=True)
    ]
    tape = recording(fake())
    tape.score([fill(document, CLAIMS[0]) for document in documents])
    tape.close()
    for document in documents:
        (miss,) = replaying().score([fill(document.replace("say", "now say"), CLAIMS[0])])
        assert f"recorded {document[:38]!r}"[:30] in miss.message


def test_another_repetition_is_named_as_what_differs(recorded, replaying, fill):
    """The same question at another repeat is near in all but that."""
    (miss,) = replaying(repeat=3).score([fill("Rules of June.", CLAIMS[0])])
    assert miss.message.endswith("differs in the number of the repetition")


def test_a_long_row_of_misses_is_not_explained_for_ever(recorded, replaying, fill):
    """A tape of other cases does not cost a search for each of a million."""
    misses = replaying().score([fill("Rules of June.", f"Claim {i}.") for i in range(MOST_EXPLAINED + 5)])
    assert [True] * MOST_EXPLAINED + [False] * 5 == ["nearest" in miss.message for miss in misses]
