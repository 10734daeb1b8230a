"""The backend that plays a tape."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicheck_eval.contract import Document, EvaluationRequest
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.scoring import Failure, Prompt, PromptTemplate, Reply, Score, Segment, Usage
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape

TEMPLATE = PromptTemplate("Document: {document}\n", "Claim: {claim}")
CALM = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_what_was_recorded_is_replayed_without_the_judge(recording, replaying, fill, fake):
    """Scores come back the same to the last bit, and nobody is asked again."""
    prompts = [fill("The sky is blue.", f"claim {i}") for i in range(5)]
    judge = fake(1 / 3)
    tape = recording(judge)
    first = tape.score(prompts)
    assert first == tape.score(prompts)
    assert 5 == sum(map(len, judge.batches))
    tape.close()
    assert first == replaying().score(prompts)


def test_only_what_is_missing_is_asked(recording, fill, fake):
    """In the mode record the answers of an earlier recording are kept, in their places."""
    tape = recording(fake(0.9))
    tape.score([fill("d", "1"), fill("d", "3")])
    tape.close()
    judge = fake(0.2)
    assert [0.9, 0.2, 0.9] == [s.support for s in recording(judge).score([fill("d", c) for c in "123"])]
    assert [[fill("d", "2")]] == judge.batches


def test_record_always_asks_again_and_replaces(recording, replaying, fill, fake):
    """Answers that changed take the place of the recorded ones."""
    for support in (0.9, 0.2):
        tape = recording(fake(support), Mode.RECORD_ALWAYS)
        assert [support] == [s.support for s in tape.score([fill("d", "c")])]
        tape.close()
    assert [0.2] == [s.support for s in replaying().score([fill("d", "c")])]


def test_a_miss_fails_alone_and_names_the_nearest_question(recording, replaying, fill, fake):
    """The failure shows what was recorded, what was asked, and which part of the question differs."""
    tape = recording(fake())
    tape.score([fill("The ferry leaves at nine.", "It leaves at nine."), fill("The museum is closed.", "It is open.")])
    tape.close()
    kept, claim, document, other = replaying().score(
        [
            fill("The museum is closed.", "It is open."),
            fill("The ferry leaves at nine.", "It leaves at ten."),
            fill("The ferry leaves at eight.", "It leaves at nine."),
            Prompt((Segment("Doc: ", True), Segment("The museum is closed.", False)), (Segment("It is open.", False),)),
        ]
    )
    assert isinstance(kept, Score)
    assert {"not_on_tape"} == {failure.reason for failure in (claim, document, other)}
    assert "(the claim); recorded 'It leaves at nine.', asked 'It leaves at ten.'" in claim.message
    assert (
        "(the document); recorded 'The ferry leaves at nine.', asked 'The ferry leaves at eight.'" in document.message
    )
    assert other.message.endswith("differs in the template (the judge's own words)")


def test_repeats_have_answers_of_their_own(recording, replaying, fill, fake):
    """A repeated run never replays one answer n times."""
    supports = iter([0.1, 0.2, 0.3])
    judge = fake()
    judge.answer = lambda _: next(supports)
    tape = recording(judge)
    for repeat in range(3):
        tape.repeat = repeat
        tape.score([fill("d", "c")])
    tape.close()
    assert [0.1, 0.2, 0.3] == [replaying(repeat=i).score([fill("d", "c")])[0].support for i in range(3)]
    assert "the number of the repetition" in replaying(repeat=3).score([fill("d", "c")])[0].message


def test_replies_are_keyed_by_schema_and_length_too(recording, replaying, fill, fake):
    """A reply to another schema, or cut elsewhere, is another reply; and a score is none."""
    tape = recording(fake())
    assert [Reply("Yes.")] == tape.reply([fill("d", "c")], schema={"type": "object"}, most_tokens=9)
    tape.close()
    replay = replaying()
    assert [Reply("Yes.")] == replay.reply([fill("d", "c")], schema={"type": "object"}, most_tokens=9)
    for how in ({"schema": {"type": "string"}, "most_tokens": 9}, {"schema": {"type": "object"}, "most_tokens": 8}):
        assert "not_on_tape" == replay.reply([fill("d", "c")], **how)[0].reason
    assert "no score at all" in replay.score([fill("d", "c")])[0].message


@pytest.mark.parametrize(
    "said",
    [
        Reply("cut", complete=False),
        Reply("\ud800 lone", neutralised=True),
        Reply('"quotes"\n\u2028, "seal": "x"'),
    ],
)
def test_replies_come_back_as_they_were(recording, replaying, fill, fake, said):
    """Whatever a judge writes, and what is known of it, survives the tape."""
    tape = recording(fake())
    tape._inner.said = said
    tape.reply([fill("d\ud800", "c")])
    tape.close()
    assert [said] == replaying().reply([fill("d\ud800", "c")])


def test_words_behind_a_score_are_kept(recording, replaying, fill, fake):
    """A score that was read from words keeps the words."""
    score = Score(1.0, 0.0, "Yes", "Yes, it is.", neutralised=True)
    tape = recording(fake(score))
    tape.score([fill("d", "c")])
    tape.close()
    assert [score] == replaying().score([fill("d", "c")])


def test_failures_are_not_recorded_but_too_long_is(recording, replaying, fill, fake):
    """A failure may be gone tomorrow; that a prompt does not fit says what to ask in its place."""
    for reason in ("backend", "out_of_memory", "not_a_number", "too_long"):
        tape = recording(fake(Failure(reason, "why")))
        tape.score([fill("d", reason)])
        tape.close()
    reasons = ("backend", "out_of_memory", "not_a_number", "too_long")
    found = replaying().score([fill("d", reason) for reason in reasons])
    assert ["not_on_tape"] * 3 + ["too_long"] == [failure.reason for failure in found]


def test_prompts_that_are_too_long_replay_in_parts(recording, replaying, fake):
    """That a prompt did not fit is on the tape, and so are the parts that were asked in its place."""
    document = Document(" ".join(f"Fact {i} is well known." for i in range(40)))
    asked = [EvaluationRequest("", [document], "Fact 7 is well known.")]
    judge = fake()
    judge.answer = lambda prompt: Failure("too_long", "more") if len(prompt.text) > 500 else 0.9

    def evaluate(tape):
        decision = DecisionConfig(threshold=0.5)
        checker = FactCheckingEvaluator(tape, template=TEMPLATE, chunk_tokens=500, decision=decision, rechunk=True)
        return checker.evaluate_batch(asked)

    tape = recording(judge)
    expected = evaluate(tape)
    tape.close()
    assert expected == evaluate(replaying())
    assert 0.9 == expected[0].score
    assert 1 < sum(map(len, judge.batches))


def test_token_counts_are_replayed(recording, replaying, fake):
    """Texts are cut as the judge's own tokenizer had it; new ones are estimated, and their prompts are misses."""
    tape = recording(fake())
    assert [2, 0] == tape.count_tokens(["one two", ""])
    tape.close()
    judge = fake()
    again = recording(judge)
    judge.count_tokens = None
    assert [2, 0] == again.count_tokens(["one two", ""])
    replay = replaying()
    assert [2, 0] == replay.count_tokens(["one two", ""])
    assert 1 <= replay.count_tokens(["new words"])[0]


def test_usage_counts_what_was_replayed_as_prompts(recording, replaying, fill, fake):
    """A replayed answer costs no call, no token and no second."""
    tape = recording(fake())
    tape.score([fill("d", "c")])
    tape.close()
    replay = replaying()
    replay.score([fill("d", "c")] * 3)
    assert Usage(prompts=3) == replay.usage


def test_a_tape_without_a_judge_only_replays(tmp_path, header, fake):
    """Other combinations of mode and judge are refused."""
    tape = Tape.record(tmp_path / "tape", header)
    for mode, inner in ((Mode.RECORD, None), (Mode.REPLAY_ONLY, fake()), (Mode.BYPASS, fake())):
        with pytest.raises(BadInput):
            TapeBackend(tape, mode, inner)


@CALM
@given(data=st.data())
def test_a_changed_question_never_meets_an_old_answer(tmp_path_factory, data):
    """Whatever changes in document, claim, template, system or the borders between them, it is another question."""
    texts = st.text(alphabet="ab{}: \n\ud800", max_size=4)
    segments = st.lists(st.builds(Segment, texts, st.booleans()), max_size=3).map(tuple)
    prompts = st.builds(Prompt, segments, segments, st.none() | texts)
    one, other = data.draw(prompts), data.draw(prompts)
    folder = tmp_path_factory.mktemp("property")

    class Inner:
        name, dtype, window_tokens = "n", "d", 9

        def score(self, asked):
            return [Score(0.5, 0.5) for _ in asked]

    tape = TapeBackend(Tape.record(folder, TapeHeader(model="m")), Mode.RECORD, Inner())
    tape.score([one])
    tape.close()
    (found,) = TapeBackend(Tape.open(folder), Mode.REPLAY_ONLY).score([other])
    assert (one == other) == isinstance(found, Score)
