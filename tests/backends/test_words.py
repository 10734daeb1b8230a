import copy

import pytest

from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.backends.words import WordsBackend
from minicheck_eval.scoring import Failure, PromptTemplate, Reply, ReplyingBackend, Score, StreamingBackend, Usage
from minicheck_eval.text.replies import ReplyRule

TEMPLATE = PromptTemplate("{document} ", "{claim}", system="Yes or no?")
LOST = Failure("backend", "gone")


class Talker(FakeBackend):
    """Says what the claim says."""

    usage = Usage(prompts=7)
    facts = ("server", "0.12.5")

    def __init__(self):
        super().__init__(lambda _: 0.5)
        self.asked = []

    def stream(self, batches):
        raise AssertionError("nobody asks for probabilities")

    def reply(self, prompts, *, schema=None, most_tokens=512):
        self.asked.append((len(prompts), schema, most_tokens))
        said = ["".join(segment.text for segment in prompt.suffix) for prompt in prompts]
        return [LOST if s == "lost" else Reply(s, complete=not s.endswith("…"), neutralised="<" in s) for s in said]


def prompts(*said):
    return [TEMPLATE.fill("document", one) for one in said]


def test_replies_become_scores_of_one_or_nothing():
    """A yes and a no are certain, the rest has no mass; the reply is kept, and a failure is passed on."""
    said = ("Yes, because of line 3.", "**No**", "Well", "", "lost", "<b>", "Yes, and so on…", "Let me think…")
    expected = [
        Score(1, 0, reply=said[0]), Score(0, 1, reply=said[1]), Score(0, 0, reply=said[2]), Score(0, 0), LOST,
        Score(0, 0, reply="<b>", neutralised=True), Score(0, 0, reply=said[6]), Score(0, 0, reply=said[7]),
    ]  # fmt: skip
    backend = WordsBackend(Talker())
    assert expected == backend.score(prompts(*said))
    assert [expected[:2], [], expected[2:]] == list(backend.stream([prompts(*said[:2]), [], prompts(*said[2:])]))


def test_the_rule_and_the_limit_can_be_chosen():
    """Other words count where the rule has them, and strict makes a no of all that is not exactly a yes."""
    inner = Talker()
    german = WordsBackend(inner, ReplyRule(yes=("ja",), no=("nein",)), most_tokens=8)
    assert [1, 0] == [score.support for score in german.score(prompts("Ja.", "Yes."))]
    assert [(2, None, 8)] == inner.asked
    strict = WordsBackend(inner, ReplyRule(strict=True))
    assert [(1, 0), (0, 1)] == [(score.support, score.refute) for score in strict.score(prompts("YES", "YES\n"))]


def test_it_is_the_backend_within_in_all_else():
    """Name, sizes, usage, facts and replies are those of the backend; its name says how answers are read."""
    inner = Talker()
    backend = WordsBackend(inner)
    assert isinstance(backend, StreamingBackend)
    assert isinstance(backend, ReplyingBackend)
    assert ("fake, read from words", "none", 1000) == (backend.name, backend.dtype, backend.window_tokens)
    assert "Spring AI" in WordsBackend(inner, ReplyRule(strict=True)).name
    assert ([2], Usage(prompts=7), inner.facts) == (backend.count_tokens(["two words"]), backend.usage, backend.facts)
    assert [Reply("hello")] == backend.reply(prompts("hello"), schema={"type": "object"}, most_tokens=3)
    assert (1, {"type": "object"}, 3) == inner.asked[-1]
    with pytest.raises(AttributeError):
        _ = backend.confirm
    assert "fake, read from words" == copy.copy(backend).name
