from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.backends.framed import ChatFrame, FramedBackend
from minicheck_eval.scoring import Prompt, Reply, ReplyingBackend, Segment, StreamingBackend, Usage, score_stream

FRAME = ChatFrame(with_system=("<s>", "</s><u>", "</u><a>"), without_system=("<u>", "</u><a>"), turn_end="</a>")
BARE = ChatFrame(with_system=None, without_system=("<u>", "</u><a>"), turn_end="</a>")
SAID = Prompt((Segment("Is it so? ", True), Segment("A ferry.", False)), (Segment(" It is.", False),), "Be brief.")


class Inner(FakeBackend):
    """Remembers the prompts that it was given, and what else."""

    usage = Usage(prompts=3)

    def __init__(self):
        super().__init__(lambda prompt: 0.75)
        self.asked = []

    def stream(self, batches):
        return map(self.score, batches)

    def reply(self, prompts, *, schema=None, most_tokens=512):
        self.asked.append((list(prompts), schema, most_tokens))
        return [Reply("Yes.") for _ in prompts]


def test_only_the_frame_is_trusted():
    """What is said may hold no control token, not even in the judge's own instruction."""
    framed = FRAME.frame(SAID)
    assert "<s>Be brief.</s><u>Is it so? A ferry. It is.</u><a>" == framed.text
    assert ["<s>", "</s><u>", "</u><a>"] == [s.text for s in framed.prefix + framed.suffix if s.trusted]
    assert framed.system is None
    assert [" It is.", "</u><a>"] == [segment.text for segment in framed.suffix], "claims share all before them"


def test_without_a_system_role_the_instruction_stands_before_the_question():
    """An instruction is never lost."""
    framed = BARE.frame(SAID)
    assert "<u>Be brief.\n\nIs it so? A ferry. It is.</u><a>" == framed.text
    assert ["<u>", "</u><a>"] == [s.text for s in framed.prefix + framed.suffix if s.trusted]


def test_without_an_instruction_there_is_the_question_alone():
    """A prompt that was written out for another model is one question as well, without control tokens."""
    for system in ("", None):
        framed = FRAME.frame(Prompt((Segment("<u>", True),), (Segment("?", False),), system))
        assert "<u><u>?</u><a>" == framed.text
        assert [True, False, False, True] == [s.trusted for s in framed.prefix + framed.suffix]


def test_scores_streams_and_replies_are_asked_of_framed_prompts():
    """Whatever is asked, the model below sees its own format."""
    inner = Inner()
    backend = FramedBackend(inner, FRAME, window_tokens=700)
    assert isinstance(backend, StreamingBackend)
    assert isinstance(backend, ReplyingBackend)
    assert [0.75] == [score.support for score in backend.score([SAID])]
    assert [[0.75], [0.75]] == [[s.support for s in batch] for batch in score_stream(backend, [[SAID], [SAID]])]
    assert [Reply("Yes.")] == backend.reply([SAID], schema={"type": "object"}, most_tokens=7)
    assert [[FRAME.frame(SAID)]] * 3 == inner.batches
    assert [([FRAME.frame(SAID)], {"type": "object"}, 7)] == inner.asked
    assert ("fake", "none", 700, [2]) == (
        backend.name,
        backend.dtype,
        backend.window_tokens,
        backend.count_tokens(["a b"]),
    )
    assert inner.usage == backend.usage


def test_the_digest_is_that_of_what_stands_around_a_prompt():
    """Another frame asks another question."""
    assert FRAME.digest != BARE.digest
    assert FRAME.digest == ChatFrame(FRAME.with_system, FRAME.without_system, turn_end="").digest
