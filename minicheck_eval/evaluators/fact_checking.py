"""Fact checking: whether every claim of the answer is supported by a chunk of the evidence."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import ClaimVerdict, DecisionConfig, decide_answer, decide_claim
from minicheck_eval.evaluators.documents import document_names
from minicheck_eval.evaluators.once import score_once
from minicheck_eval.scoring import Backend, Failure, Prompt, PromptTemplate, Score
from minicheck_eval.text import OwnRules, Piece, Span, TextRules

__all__ = ["Chunk", "FactCheckingEvaluator", "Question", "check_chunk_tokens"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one document."""

    document: int
    """The place of the document in the request."""
    span: Span
    text: str
    """What the judge is shown of it; rules may rewrite white space."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one request: every claim against every chunk."""

    claims: tuple[Piece, ...]
    chunks: tuple[Chunk, ...]


def check_chunk_tokens(chunk_tokens: int, *, window_tokens: int, frame_tokens: int) -> None:
    """Raise `BadInput` for chunks that do not fit into the window beside the prompt around them."""
    room = window_tokens - frame_tokens
    if not 1 <= chunk_tokens <= room:
        raise BadInput(
            f"chunks of {chunk_tokens} tokens do not fit: the judge's window has {window_tokens} tokens, the prompt "
            f"around them {frame_tokens}",
            hint=f"choose chunk_tokens from 1 to {room}, and leave room for the claim",
        )


class FactCheckingEvaluator:
    """Checks the claims of an answer against its documents, over any backend.

    Documents longer than `chunk_tokens` are cut into chunks at sentence ends; a claim is never cut.  With
    `split_claims=False` the whole answer is one claim, as the published scores of MiniCheck were made.  `rules` cut the
    texts; those of the MiniCheck package count in units of their own and ask about nothing where there is no evidence,
    which this package never does by itself.
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
    ) -> None:
        frame = sum(backend.count_tokens(template.own_text))
        check_chunk_tokens(chunk_tokens, window_tokens=backend.window_tokens, frame_tokens=frame)
        self.backend = backend
        self.template = template
        self.chunk_tokens = chunk_tokens
        self.decision = decision
        self.split_claims = split_claims
        self.rules = rules or OwnRules()

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """Evaluate one request: a batch of one."""
        return self.evaluate_batch([request])[0]

    def evaluate_batch(self, requests: Sequence[EvaluationRequest]) -> list[EvaluationResponse]:
        """Evaluate many requests at once; the responses come back in input order."""
        with closing(self.evaluate_stream([requests])) as answered:
            return next(answered)

    def evaluate_stream(
        self, batches: Iterable[Sequence[EvaluationRequest]]
    ) -> Generator[list[EvaluationResponse], None, None]:
        """Evaluate batch after batch, the next ones prepared while the judge works; no question is asked twice."""
        asked: deque[tuple[Sequence[EvaluationRequest], list[Question]]] = deque()

        def prompts() -> Iterator[list[Prompt]]:
            for requests in batches:
                questions = self._ask(requests)
                asked.append((requests, questions))
                yield [prompt for question in questions for prompt in self._prompts(question)]

        with closing(score_once(self.backend, prompts())) as answered:
            for scores in answered:
                requests, questions = asked.popleft()
                left = iter(scores)
                yield [
                    self._respond(request, question, list(islice(left, len(question.claims) * len(question.chunks))))
                    for request, question in zip(requests, questions, strict=True)
                ]

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

    def _respond(
        self, request: EvaluationRequest, question: Question, scores: Sequence[Score | Failure]
    ) -> EvaluationResponse:
        settings = {
            "threshold": self.decision.threshold,
            "chunk_aggregation": self.decision.chunk_aggregation,
            "claim_aggregation": self.decision.claim_aggregation,
            "chunk_tokens": self.chunk_tokens,
        }
        if not question.claims:
            reason = "no_claims" if request.response.strip() else "empty_answer"
            return _nothing_to_check(reason, "The answer has nothing that can be checked.", settings)
        if not question.chunks:
            return _nothing_to_check("no_evidence", "There is no evidence to check the answer against.", settings)
        width = len(question.chunks)
        rows = [scores[i * width : (i + 1) * width] for i in range(len(question.claims))]
        verdicts = [decide_claim(row, self.decision) for row in rows]
        outcome, support = decide_answer(verdicts, self.decision)
        names = document_names(request.documents)
        metadata = {
            **settings,
            "claims": [
                _claim_json(names, question, i, verdict, row)
                for i, (verdict, row) in enumerate(zip(verdicts, rows, strict=True))
            ],
            "chunks": [_chunk_json(names, request.documents, chunk) for chunk in question.chunks],
            "unchecked": _unchecked(request.response, question),
        }
        return EvaluationResponse(outcome, support, _feedback(names, question, verdicts), metadata)


def _nothing_to_check(reason: str, feedback: str, settings: dict[str, Any]) -> EvaluationResponse:
    metadata = {**settings, "reason": reason, "claims": [], "chunks": [], "unchecked": []}
    return EvaluationResponse(Outcome.NOT_CHECKABLE, None, feedback, metadata)


def _chunk_json(names: Sequence[str | int], documents: Sequence[Document], chunk: Chunk) -> dict[str, Any]:
    value = {"document": names[chunk.document], "start": chunk.span.start, "end": chunk.span.end}
    source = chunk.span.of(documents[chunk.document].text or "")
    return value if chunk.text == source else {**value, "text": chunk.text}


def _claim_json(
    names: Sequence[str | int],
    question: Question,
    place: int,
    verdict: ClaimVerdict,
    row: Sequence[Score | Failure],
) -> dict[str, Any]:
    span, text = question.claims[place]
    best = None if verdict.best_chunk is None else question.chunks[verdict.best_chunk]
    value: dict[str, Any] = {
        "text": text,
        "start": span.start,
        "end": span.end,
        "outcome": verdict.outcome.value,
        "support": verdict.support,
        "document": best and names[best.document],
        "chunk": best and {"start": best.span.start, "end": best.span.end},
        "supports": [score.support if isinstance(score, Score) else None for score in row],
    }
    if verdict.reason:
        value["reason"] = verdict.reason
        value["detail"] = _detail(row, verdict.reason)
    return value


def _unchecked(answer: str, question: Question) -> list[dict[str, int]]:
    """Return the parts of the answer that are in no claim (questions, code, titles, fillers), without bare marks."""
    edges = [0, *(edge for span, _ in question.claims for edge in span), len(answer)]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return [{"start": a, "end": b} for a, b in gaps if any(map(str.isalnum, answer[a:b]))]


def _detail(row: Sequence[Score | Failure], reason: str) -> str:
    """Say why a claim has no verdict, in the words of the first score that stood in the way."""
    for score in row:
        if isinstance(score, Failure) and score.reason == reason:
            return score.message
    unclear = min((s for s in row if isinstance(s, Score)), key=lambda s: s.mass)
    said = f"P(yes) + P(no) = {unclear.mass:.3f}, its first token was {unclear.top!r}"
    return f"too little of the judge's answer was a yes or a no: {said}"


def _feedback(names: Sequence[str | int], question: Question, verdicts: Sequence[ClaimVerdict]) -> str:
    """Say which claims failed or could not be judged, with their support and best evidence."""
    supported = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
    lines = [f"{supported} of {len(verdicts)} claims supported."]
    for (_, text), verdict in zip(question.claims, verdicts, strict=True):
        if verdict.outcome is Outcome.PASS:
            continue
        if verdict.outcome is not Outcome.FAIL:
            lines.append(f"Could not judge ({verdict.reason}): {_short(text)}")
            continue
        lines.append(f"Not supported ({verdict.support:.3f}): {_short(text)}")
        if verdict.best_chunk is not None:
            best = question.chunks[verdict.best_chunk]
            lines.append(f"  best evidence, document {names[best.document]}: {_short(best.text)}")
    return "\n".join(lines)


def _short(text: str, most: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
