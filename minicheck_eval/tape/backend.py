"""The backend that plays a tape: over another backend that it records, or over none."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

from minicheck_eval.backends.servers.estimate import estimate_tokens
from minicheck_eval.errors import BadInput
from minicheck_eval.scoring import (
    Backend,
    Failure,
    Prompt,
    Reply,
    ReplyingBackend,
    Score,
    StreamingBackend,
    Usage,
    beside,
    close_backend,
    score_stream,
)
from minicheck_eval.tape.nearest import Nearest
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.record import ID_DIGITS, Question, answer_json, answer_of, count_key
from minicheck_eval.tape.tape import Tape

__all__ = ["TapeBackend"]

Said = TypeVar("Said", Score, Reply)
Record = tuple[str, str, dict[str, Any]]
"""Key, kind and content."""
NOT_ON_TAPE = "not_on_tape"


class _Split(NamedTuple):
    """A batch of questions: the answers that are known, and the places of those that must be asked."""

    questions: list[Question]
    known: list[Any]
    asked: list[int]


class TapeBackend:
    """Answers from a tape, and where the mode lets it asks `inner` and records what it says.

    Without `inner` what is not on the tape fails, alone, with the reason `not_on_tape`.  `repeat` may be set at any
    time: answers to the same question at another repetition are others.
    """

    def __init__(self, tape: Tape, mode: Mode, inner: Backend | None = None, *, repeat: int = 0) -> None:
        if (inner is None) != (mode is Mode.REPLAY_ONLY) or mode is Mode.BYPASS:
            raise BadInput(f"mode {mode} {'without' if inner is None else 'with'} a judge", hint="replay without one")
        self.tape = tape
        self.mode = Mode(mode)
        self.repeat = repeat
        self.replayed = 0
        self.missed = 0
        self.used: set[str] = set()
        self._inner = inner
        self._nearest = Nearest(tape)
        self._lock = Lock()
        self._counts: list[Record] = []
        header = tape.header
        self.name = inner.name if inner else header.backend
        self.dtype = inner.dtype if inner else header.dtype
        self.window_tokens = inner.window_tokens if inner else header.window_tokens or 1
        self.counts_exactly = header.counts_exactly

    @property
    def usage(self) -> Usage:
        """Tell what has been asked: of a replayed answer, nothing but that it was."""
        spent = self._inner.usage if isinstance(self._inner, StreamingBackend) else Usage()
        return spent.plus(prompts=self.replayed)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text as the judge did; an estimate can do no harm, a text that is new is a miss."""
        if not self.counts_exactly:
            return [estimate_tokens(text) for text in texts]
        key = count_key(list(texts))
        record = None if self.mode is Mode.RECORD_ALWAYS else self._find(key)
        if record is not None:
            return cast("list[int]", record["tokens"])
        if self._inner is None:
            return [estimate_tokens(text) for text in texts]
        counts = self._inner.count_tokens(texts)
        with self._lock:
            # Written with the next answers: a disk is not waited for at every document, and they can be counted again.
            self._counts.append((key, "count", {"tokens": counts}))
        return counts

    def score(self, prompts: Sequence[Prompt]) -> list[Score | Failure]:
        """Return one score or one failure for each prompt, in input order."""
        with closing(self.stream([prompts])) as answered:
            return next(answered)

    def stream(self, batches: Iterable[Sequence[Prompt]]) -> Generator[list[Score | Failure], None, None]:
        """Score batch after batch, in order; what is not on the tape is asked ahead of need where the judge can."""
        splits = (self._split([Question(prompt, repeat=self.repeat) for prompt in batch]) for batch in batches)
        if self._inner is None:
            yield from (self._joined(split, self._misses(split)) for split in splits)
            return
        pairs = ((split, [split.questions[place].prompt for place in split.asked]) for split in splits)
        with closing(beside(partial(score_stream, self._inner), pairs)) as answered:
            for split, scores in answered:
                yield self._joined(split, scores)

    def reply(
        self, prompts: Sequence[Prompt], *, schema: Mapping[str, Any] | None = None, most_tokens: int = 512
    ) -> list[Reply | Failure]:
        """Return one reply or one failure for each prompt, in input order."""
        question = partial(Question, kind="reply", schema=schema, most_tokens=most_tokens, repeat=self.repeat)
        split = self._split([question(prompt) for prompt in prompts])
        if self._inner is None:
            return self._joined(split, self._misses(split))
        if not isinstance(self._inner, ReplyingBackend):
            raise BadInput(f"{self.name} does not answer in words", hint="choose a chat model")
        asked = [split.questions[place].prompt for place in split.asked]
        replies = self._inner.reply(asked, schema=schema, most_tokens=most_tokens) if asked else []
        return self._joined(split, replies)

    def confirm(self) -> None:
        """Raise `IntegrityError` where the judge is no longer the one that was opened."""
        if (confirm := getattr(self._inner, "confirm", None)) is not None:
            confirm()

    def close(self) -> None:
        """Put what was recorded in its place, and close the judge."""
        try:
            self._settle()
            self.tape.note_used(self.used)
        finally:
            close_backend(self._inner)

    def to_json(self) -> dict[str, Any]:
        """Tell what a run must say of its tape."""
        self._settle()
        what = {"folder": str(self.tape.folder), "mode": self.mode.value, "repeat": self.repeat}
        return {**what, "missed": self.missed, **self.tape.stats().to_json()}

    def _split(self, questions: list[Question]) -> _Split:
        if self.mode is Mode.RECORD_ALWAYS:
            return _Split(questions, [None] * len(questions), list(range(len(questions))))
        found = [self._find(question.key) for question in questions]
        known = [None if record is None else answer_of(record) for record in found]
        asked = [place for place, answer in enumerate(known) if answer is None]
        with self._lock:
            self.replayed += len(known) - len(asked)
        return _Split(questions, known, asked)

    def _misses(self, split: _Split) -> list[Any]:
        self.missed += len(split.asked)
        return [Failure(NOT_ON_TAPE, self._nearest.explain(split.questions[place])) for place in split.asked]

    def _joined(self, split: _Split, said: Sequence[Said | Failure]) -> list[Said | Failure]:
        answers = list(split.known)
        records: list[Record] = []
        texts: dict[str, list[str]] = {}
        for place, answer in zip(split.asked, said, strict=True):
            answers[place] = answer
            question = split.questions[place]
            if self._inner is not None and (told := answer_json(answer)) is not None:
                asked = question.to_json()
                records.append((question.key, question.kind, {**asked, **told}))
                # What many prompts share is written once.
                texts |= {asked["template"]: question.template, asked["prefix"]: question.prefix}
        self._add(records, texts.values())
        return answers

    def _find(self, key: str) -> dict[str, Any] | None:
        record = self.tape.find(key)
        if record is not None and self.tape.writes:
            self.used.add(key[:ID_DIGITS])
        return record

    def _settle(self) -> None:
        self._add([])
        self.tape.settle()

    def _add(self, records: list[Record], texts: Iterable[list[str]] = ()) -> None:
        with self._lock:
            records, self._counts = self._counts + records, []
        if records:
            self.used.update(key[:ID_DIGITS] for key, _, _ in records)
            self.tape.add(records, texts)
