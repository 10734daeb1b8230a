"""What the tests of tapes share: a judge without a model, and tapes of it."""

import pytest

from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.scoring import PromptTemplate, Reply
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape

TEMPLATE = PromptTemplate("Document: {document}\n", "Claim: {claim}", system="Judge.")


class Speaking(FakeBackend):
    """A fake that also answers in words."""

    def __init__(self, answer, said="Yes."):
        super().__init__(answer)
        self.said = said
        self.replies = []

    def reply(self, prompts, *, schema=None, most_tokens=512):
        self.replies += prompts
        return [self.said if not isinstance(self.said, str) else Reply(self.said) for _ in prompts]


@pytest.fixture
def fill():
    """Make a prompt of a document and a claim."""
    return TEMPLATE.fill


@pytest.fixture
def fake():
    """Make a judge that gives every prompt one support."""
    return lambda support=0.9: Speaking(lambda _: support)


@pytest.fixture
def header():
    """The judge of the tapes."""
    return TapeHeader(model="fake", revision="1", digests={"weights": "a"}, backend="fake 1", window_tokens=1000)


@pytest.fixture
def recording(tmp_path, header):
    """Open the tape for recording, over a judge."""
    return lambda inner, mode=Mode.RECORD, **more: TapeBackend(
        Tape.record(tmp_path / "tape", header), mode, inner, **more
    )


@pytest.fixture
def replaying(tmp_path):
    """Open the tape for replay, over nothing."""
    return lambda **more: TapeBackend(Tape.open(tmp_path / "tape"), Mode.REPLAY_ONLY, **more)
