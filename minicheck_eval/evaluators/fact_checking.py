"""Fact checking: whether every claim of the answer is supported by a chunk of the evidence."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.findings import respond
from minicheck_eval.evaluators.once import score_once
from minicheck_eval.evaluators.question import Asked, Chunk, Question
from minicheck_eval.evaluators.rechunk import ask_in_parts, is_too_long
from minicheck_eval.evaluators.streamed import StreamedEvaluator
from minicheck_eval.scoring import Backend, Failure, Prompt, PromptTemplate, Score, beside
from minicheck_eval.text import OwnRules, Piece, TextRules

__all__ = ["FactCheckingEvaluator", "check_chunk_tokens"]

_Prepared = tuple[Sequence[EvaluationRequest], list[Question]]


def check_chunk_tokens(chunk_tokens: int, *, window_tokens: int, frame_tokens: int) -> None:
    """Raise `BadInput` for chunks that do not fit into the window beside the prompt around them."""
    room = window_tokens - frame_tokens
    if not 1 <= chunk_tokens <= room:
        raise BadInput(
            f"chunks of {chunk_tokens} tokens do not fit: the judge's window has {window_tokens} tokens, the prompt "
            f"around them {frame_tokens}",
            hint=f"choose chunk_tokens from 1 to {room}, and leave room for the claim",
        )


class FactCheckingEvaluator(StreamedEvaluator):
    """Checks the claims of an answer against its documents, over any backend.

    Documents longer than `chunk_tokens` are cut into chunks at sentence ends; a claim is never cut.  With
    `split_claims=False` the whole answer is one claim, as the published scores of MiniCheck were made.  `rules` cut the
    texts; those of the MiniCheck package count in units of their own and ask about nothing where there is no evidence,
    which this package never does by itself.  With `rechunk` a chunk that the backend finds too long beside a claim is
    asked about in parts, as with servers that count tokens otherwise than was foreseen.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        template: PromptTemplate,
        chunk_tokens: int,
        decision: DecisionConfig,
        split_claims: bool = True,
        rules: TextRules | None = None,
        rechunk: bool = False,
    ) -> None:
        frame = sum(backend.count_tokens(template.own_text))
        check_chunk_tokens(chunk_tokens, window_tokens=backend.window_tokens, frame_tokens=frame)
        self.backend = backend
        self.template = template
        self.chunk_tokens = chunk_tokens
        self.decision = decision
        self.split_claims = split_claims
        self.rules = rules or OwnRules()
        self.rechunk = rechunk

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, the next ones prepared while the judge works; no question is asked twice."""

        def prepared() -> Iterator[tuple[_Prepared, list[Prompt]]]:
            for requests in batches:
                questions = self._ask(requests)
                yield (requests, questions), [p for question in questions for p in self._prompts(question)]

        with closing(beside(partial(score_once, self.backend), prepared())) as answered:
            for (requests, questions), scores in answered:
                left = iter(scores)
                tables = [self._table(question, left) for question in questions]
                if self.rechunk:
                    self._cut_further(questions, tables)
                yield [
                    respond(request, question, table, self.decision, self._settings)
                    for request, question, table in zip(requests, questions, tables, strict=True)
                ]

    @property
    def _settings(self) -> dict[str, Any]:
        return {
            "threshold": self.decision.threshold,
            "chunk_aggregation": self.decision.chunk_aggregation,
            "claim_aggregation": self.decision.claim_aggregation,
            "chunk_tokens": self.chunk_tokens,
            **self.decision.marks,
        }

    def _ask(self, requests: Sequence[EvaluationRequest]) -> list[Question]:
        # A document that many requests share is cut once.
        cut: dict[str, list[Piece]] = {}
        for text in {d.text for r in requests for d in r.documents if d.text is not None}:
            cut[text] = self.rules.chunks(text, self.chunk_tokens, self.backend.count_tokens)
        return [Question(self._claims(r.response), self._chunks(r.documents, cut)) for r in requests]

    def _claims(self, answer: str) -> tuple[Piece, ...]:
        return tuple(self.rules.claims(answer, whole=not self.split_claims))

    @staticmethod
    def _chunks(documents: Sequence[Document], cut: dict[str, list[Piece]]) -> tuple[Chunk, ...]:
        return tuple(
            Chunk(place, *piece)
            for place, document in enumerate(documents)
            if document.text is not None
            for piece in cut[document.text]
        )

    def _prompts(self, question: Question) -> list[Prompt]:
        """Return the prompts claim by claim, one for each chunk."""
        return [self.template.fill(chunk.text, text) for _, text in question.claims for chunk in question.chunks]

    @staticmethod
    def _table(question: Question, scores: Iterator[Score | Failure]) -> list[list[Asked]]:
        """Put the scores beside what was asked, a row for each claim."""
        chunks = list(enumerate(question.chunks))
        return [[Asked(place, chunk, next(scores)) for place, chunk in chunks] for _ in question.claims]

    def _cut_further(self, questions: Sequence[Question], tables: Sequence[list[list[Asked]]]) -> None:
        """Ask again, in parts, whatever was too long, and put the parts where the whole was."""
        rows = [
            (text, row)
            for question, table in zip(questions, tables, strict=True)
            for (_, text), row in zip(question.claims, table, strict=True)
        ]
        long = [(text, asked) for text, row in rows for asked in row if is_too_long(asked.score)]
        claims, wholes = [text for text, _ in long], [asked for _, asked in long]
        parts = iter(ask_in_parts(self.backend, self.template, claims, wholes))
        for _, row in rows:
            row[:] = [part for asked in row for part in (next(parts) if is_too_long(asked.score) else [asked])]
