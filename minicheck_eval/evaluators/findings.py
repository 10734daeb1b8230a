"""What a fact check found: its verdict with the claims, chunks and scores behind it, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from minicheck_eval.contract import Document, EvaluationRequest, EvaluationResponse, Outcome
from minicheck_eval.counts import counted
from minicheck_eval.evaluators.decision import ClaimVerdict, DecisionConfig, decide_answer, decide_claim
from minicheck_eval.evaluators.documents import document_names
from minicheck_eval.evaluators.feedback import explain, short
from minicheck_eval.evaluators.question import Asked, Chunk, Question
from minicheck_eval.scoring import Score
from minicheck_eval.text import Piece

__all__ = ["respond"]

Names = Sequence[str | int]


def respond(
    request: EvaluationRequest,
    question: Question,
    rows: Sequence[Sequence[Asked]],
    decision: DecisionConfig,
    settings: Mapping[str, Any],
) -> EvaluationResponse:
    """Decide a request from what each claim was asked, a row for each."""
    if not question.claims:
        reason = "no_claims" if request.response.strip() else "empty_answer"
        return _nothing_to_check(reason, "The answer has nothing that can be checked.", settings)
    if not question.chunks:
        return _nothing_to_check("no_evidence", "There is no evidence to check the answer against.", settings)
    verdicts = [decide_claim([asked.score for asked in row], decision) for row in rows]
    outcome, support = decide_answer(verdicts, decision)
    names = document_names(request.documents)
    metadata = {
        **settings,
        "claims": [
            _claim_json(names, claim, verdict, row, question.chunks)
            for claim, verdict, row in zip(question.claims, verdicts, rows, strict=True)
        ],
        "chunks": [_chunk_json(names, request.documents, chunk) for chunk in question.chunks],
        "unchecked": _unchecked(request.response, question),
    }
    return EvaluationResponse(outcome, support, _feedback(names, question, verdicts, rows), metadata)


def _nothing_to_check(reason: str, feedback: str, settings: Mapping[str, Any]) -> EvaluationResponse:
    metadata = {**settings, "reason": reason, "claims": [], "chunks": [], "unchecked": []}
    return EvaluationResponse(Outcome.NOT_CHECKABLE, None, feedback, metadata)


def _chunk_json(names: Names, documents: Sequence[Document], chunk: Chunk) -> dict[str, Any]:
    value = _place_json(names, chunk)
    source = chunk.span.of(documents[chunk.document].text or "")
    return value if chunk.text == source else {**value, "text": chunk.text}


def _place_json(names: Names, chunk: Chunk) -> dict[str, Any]:
    return {"document": names[chunk.document], "start": chunk.span.start, "end": chunk.span.end}


def _claim_json(
    names: Names, claim: Piece, verdict: ClaimVerdict, row: Sequence[Asked], chunks: Sequence[Chunk]
) -> dict[str, Any]:
    span, text = claim
    best = None if verdict.best_chunk is None else row[verdict.best_chunk].chunk
    value: dict[str, Any] = {
        "text": text,
        "start": span.start,
        "end": span.end,
        "outcome": verdict.outcome.value,
        "support": verdict.support,
        "document": best and names[best.document],
        "chunk": best and {"start": best.span.start, "end": best.span.end},
        "supports": _supports(row),
    }
    scores = [asked.score for asked in row]
    replies = [score.reply if isinstance(score, Score) else None for score in scores]
    if [asked.chunk for asked in row] != list(chunks):
        # Some chunks were too long, and were cut for this claim: here is all that was asked, in order.
        value["parts"] = [_place_json(names, asked.chunk) | {"support": _support(asked)} for asked in row]
    if any(replies):
        value["replies"] = replies
    if any(isinstance(score, Score) and score.neutralised for score in scores):
        value["neutralised"] = True
    if verdict.reason:
        value["reason"] = verdict.reason
        value["detail"] = explain(scores, verdict.reason)
    return value


def _supports(row: Sequence[Asked]) -> list[float | None]:
    """Return the support by each chunk: by its best part where it was cut, and None where a part has no score."""
    found: list[float | None] = []
    for _, parts in groupby(row, key=lambda asked: asked.place):
        supports = [_support(part) for part in parts]
        known = [support for support in supports if support is not None]
        found.append(max(known) if len(known) == len(supports) else None)
    return found


def _support(asked: Asked) -> float | None:
    return asked.score.support if isinstance(asked.score, Score) else None


def _unchecked(answer: str, question: Question) -> list[dict[str, int]]:
    """Return the parts of the answer that are in no claim (questions, code, titles, fillers), without bare marks."""
    edges = [0, *(edge for span, _ in question.claims for edge in span), len(answer)]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return [{"start": a, "end": b} for a, b in gaps if any(map(str.isalnum, answer[a:b]))]


def _feedback(
    names: Names, question: Question, verdicts: Sequence[ClaimVerdict], rows: Sequence[Sequence[Asked]]
) -> str:
    """Say which claims failed or could not be judged, with their support and best evidence."""
    supported = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
    lines = [f"{supported} of {counted(len(verdicts), 'claim')} supported."]
    for (_, text), verdict, row in zip(question.claims, verdicts, rows, strict=True):
        if verdict.outcome is Outcome.PASS:
            continue
        if verdict.outcome is not Outcome.FAIL:
            lines.append(f"Could not judge ({verdict.reason}): {short(text)}")
            continue
        lines.append(f"Not supported ({verdict.support:.3f}): {short(text)}")
        if verdict.best_chunk is not None:
            best = row[verdict.best_chunk].chunk
            lines.append(f"  best evidence, document {names[best.document]}: {short(best.text)}")
    return "\n".join(lines)
