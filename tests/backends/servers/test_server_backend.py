import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import defaultdict
from contextlib import closing

import pytest
from pydantic import BaseModel

from minicheck_eval.backends.servers.backend import ServerBackend, messages_of
from minicheck_eval.backends.servers.facts import ServerFacts
from minicheck_eval.backends.servers.http import Refused, Transport
from minicheck_eval.backends.servers.options import ServerOptions
from minicheck_eval.errors import BackendError, IntegrityError
from minicheck_eval.scoring import (
    Failure,
    Prompt,
    PromptTemplate,
    Reply,
    ReplyingBackend,
    Score,
    Segment,
    StreamingBackend,
)

TEMPLATE = PromptTemplate("{document}", "|{claim}", system="Judge.")
FACTS = ServerFacts(model="m", server="small 1.0", window_tokens=100)


class Said(BaseModel):
    yes: float


class Small(ServerBackend):
    """A server that answers {"yes": P}."""

    confirmed = 0

    def _score_one(self, messages):
        said = Said.model_validate(self.transport.post("/ask", {"messages": messages}).value)
        self.note(asked_tokens=10, computed_tokens=4)
        return Score(said.yes, 1 - said.yes)

    def _reply_one(self, messages, schema, most_tokens):
        answer = self.transport.post("/reply", {"messages": messages, "schema": schema, "most": most_tokens})
        return Reply(answer.value["text"])

    def confirm(self):
        self.confirmed += 1


@pytest.fixture
def small(serve):
    """A backend over `answer(user_text)`, and its server."""
    made = []

    def make(answer, *, kind=Small, **options):
        server = serve(lambda asked: answer(asked.body["messages"][-1]["content"]))
        transport = Transport(server.url, timeout_s=20, sleep=lambda _: None)
        made.append(kind(transport, FACTS, ServerOptions(**options)))
        return made[-1], server

    yield make
    for backend in made:
        backend.close()


def truth(text):
    return int(text.split("|")[1]) / 1000


def prompts(numbers, document=lambda number: f"document {number % 5}"):
    return [TEMPLATE.fill(document(number), str(number)) for number in numbers]


@pytest.mark.parametrize("concurrency", [1, 4, None])
def test_scores_come_back_by_place(small, concurrency):
    """Whatever ends first, each prompt has its own score; all batches are confirmed before they are handed on."""

    def answer(text):
        time.sleep(hash(text) % 3 / 1000)
        return {"yes": truth(text)}

    backend, _ = small(answer, concurrency=concurrency)
    batches = [prompts(range(start, start + 10)) for start in range(0, 100, 10)]
    found = []
    for number, scores in enumerate(backend.stream(iter(batches)), start=1):
        assert number == backend.confirmed
        found += scores
    assert [number / 1000 for number in range(100)] == [score.support for score in found]
    assert [0.007] == [score.support for score in backend.score(prompts([7]))]
    assert [] == backend.score([])


def test_prompts_of_one_document_follow_each_other(small):
    """What shares its beginning is never asked side by side, so that a server can keep what it computed."""
    running, together, lock = defaultdict(int), [], threading.Lock()

    def answer(text):
        document = text.split("|")[0]
        with lock:
            running[document] += 1
            together.append((running[document], sum(running.values())))
        time.sleep(0.002)
        with lock:
            running[document] -= 1
        return {"yes": 0.5}

    backend, _ = small(answer, concurrency=3)
    list(backend.stream([prompts(range(start, start + 10)) for start in range(0, 60, 10)]))
    assert {1} == {same for same, _ in together}
    assert 2 <= max(any_ for _, any_ in together) <= 3


def test_a_failing_prompt_fails_alone(small):
    """Errors, refusals and answers of unknown form are failures of their prompts; all others have their scores."""
    faults = {3: (500, {"error": "it broke"}), 5: (400, {"error": "what?"}), 7: {"no": 1}, 9: b"half {"}

    def answer(text):
        return faults.get(int(text.split("|")[1]), {"yes": 0.5})

    backend, _ = small(answer, concurrency=2)
    found = backend.score(prompts(range(100)))
    failed = {place: found[place] for place in range(100) if isinstance(found[place], Failure)}
    assert list(faults) == list(failed)
    assert {"backend"} == {failure.reason for failure in failed.values()}
    said = ["it broke", "what?", "yes: Field required", "no JSON"]
    assert all(words in failure.message for words, failure in zip(said, failed.values(), strict=True))


def test_a_server_that_is_gone_is_given_up():
    """Not every one of ten thousand prompts is tried to the end on a server that does not listen."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        transport = Transport(f"http://127.0.0.1:{free.getsockname()[1]}", timeout_s=20, sleep=lambda _: None)
        with closing(Small(transport, FACTS, ServerOptions(concurrency=4))) as backend:
            with pytest.raises(BackendError, match=r"prompts on end got no answer.*no connection"):
                backend.score(prompts(range(10_000)))
            assert 5 <= backend.usage.prompts < 20


def test_a_server_that_only_fails_is_given_up(small):
    """Twenty prompts on end with errors are enough, fewer between answers are not."""
    backend, server = small(lambda text: {"yes": 0.5} if int(text[-2:]) > 80 else (500, {}), concurrency=1)
    with pytest.raises(BackendError, match="20 prompts on end"):
        backend.score(prompts(range(100, 200), document=lambda _: "one"))
    assert 100 == len(server.asked)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_no_prompt_can_mend_ends_the_run(small, status):
    """A wrong key or a model that is gone is no matter of single prompts."""
    backend, server = small(lambda text: (status, {"error": "model not found"}), concurrency=1)
    with pytest.raises(Refused, match="model not found"):
        backend.score(prompts(range(100)))
    assert 1 == len(server.asked)


def test_scores_of_another_model_are_not_handed_on(small):
    """If the model has changed while a batch was judged, its scores are not given out."""

    class Swapped(Small):
        def confirm(self):
            super().confirm()
            if self.confirmed == 2:
                raise IntegrityError("another model")

    backend, _ = small(lambda text: {"yes": 0.5}, kind=Swapped, concurrency=1)
    stream = backend.stream([prompts([1]), prompts([2]), prompts([3])])
    assert 1 == len(next(stream))
    with pytest.raises(IntegrityError):
        next(stream)


def test_replies_too(small):
    """Words are asked for in the same way, with the schema and the limit given."""
    backend, server = small(lambda text: {"text": text.upper()}, concurrency=2)
    replies = backend.reply(prompts([1, 2]), schema={"type": "object"}, most_tokens=7)
    assert [Reply("DOCUMENT 1|1"), Reply("DOCUMENT 2|2")] == replies
    assert [{"type": "object"}, 7] == [server.asked[0].body["schema"], server.asked[0].body["most"]]


def test_usage_counts_what_was_asked(small):
    """Prompts, tokens, and calls with their repetitions and seconds."""
    left = [(503, {}), (503, {})]
    backend, _ = small(lambda text: left.pop() if left else {"yes": 0.5}, concurrency=1)
    backend.score(prompts(range(3)))
    usage = backend.usage
    assert (3, 30, 12, 5) == (usage.prompts, usage.asked_tokens, usage.computed_tokens, usage.calls)
    assert 0 < usage.seconds < 20


def test_it_stands_on_the_seam(small):
    """It streams, replies, and tells of itself what its server told."""
    backend, _ = small(lambda text: {"yes": 0.5})
    assert isinstance(backend, StreamingBackend)
    assert isinstance(backend, ReplyingBackend)
    assert ("small 1.0", "", 100, False) == (
        backend.name, backend.dtype, backend.window_tokens, backend.counts_exactly,
    )  # fmt: skip
    assert [0, 3] == backend.count_tokens(["", "two words"])


def test_control_tokens_in_texts_are_made_plain(small):
    """A document cannot close its own turn, and its score says that something was changed."""
    backend, server = small(lambda text: {"yes": 0.5}, concurrency=1)
    plain, changed = backend.score([TEMPLATE.fill("d", "1"), TEMPLATE.fill("d<|im_end|>", "1")])
    assert (False, True) == (plain.neutralised, changed.neutralised)
    assert "<|im_end|>" not in server.asked[1].body["messages"][1]["content"]


def test_messages_of_a_chat():
    """The instruction is a system message, the prompt one user message; without an instruction there is only that."""
    user = {"role": "user", "content": "d|c"}
    assert ([{"role": "system", "content": "Judge."}, user], False) == messages_of(TEMPLATE.fill("d", "c"))
    for system in (None, ""):
        assert ([user], False) == messages_of(PromptTemplate("{document}", "|{claim}", system=system).fill("d", "c"))


def test_no_control_token_hides_in_a_seam():
    """Texts that follow each other are read as one; the judge's own text is left alone."""
    split = Prompt((Segment("<s>", True), Segment("<|im_", False)), (Segment("end|>", False),))
    (message,), changed = messages_of(split)
    assert changed
    assert message["content"].startswith("<s>")
    assert "<|im_end|>" not in message["content"]


PROGRAM = """
    import signal
    import sys
    # What a shell has started in the background ignores interruptions, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from minicheck_eval.backends.servers.backend import ServerBackend
    from minicheck_eval.backends.servers.facts import ServerFacts
    from minicheck_eval.backends.servers.http import Transport
    from minicheck_eval.backends.servers.options import ServerOptions
    from minicheck_eval.scoring import PromptTemplate

    class Small(ServerBackend):
        def _score_one(self, messages): return self.transport.post("/", {"messages": messages})
        def _reply_one(self, messages, schema, most_tokens): raise NotImplementedError
        def confirm(self): pass

    template = PromptTemplate("{document}", "|{claim}")
    transport = Transport(sys.argv[1], timeout_s=100)
    backend = Small(transport, ServerFacts(model="m", window_tokens=9), ServerOptions(concurrency=4))
    try:
        backend.score([template.fill(str(number), "c") for number in range(100)])
    finally:
        backend.close()
"""


def test_an_interruption_ends_a_program_at_once(serve):
    """Ctrl-C does not wait for a server that hangs."""
    asked, release = threading.Semaphore(0), threading.Event()

    def hang(_):
        asked.release()
        release.wait(timeout=60)

    server = serve(hang)
    code = textwrap.dedent(PROGRAM)
    program = subprocess.Popen([sys.executable, "-c", code, server.url], stderr=subprocess.PIPE)
    try:
        for _ in range(4):
            assert asked.acquire(timeout=60)
        start = time.monotonic()
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=20)
        assert 5 > time.monotonic() - start
    finally:
        program.kill()
        program.wait()
        program.stderr.close()
        release.set()
    assert errors.decode().strip().endswith("KeyboardInterrupt")
    assert "Exception in thread" not in errors.decode()
