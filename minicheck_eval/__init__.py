"""Tell, for every case, cheaply and offline, whether an answer is supported by the evidence it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicheck_eval.contract import (
        Document,
        EvaluationRequest,
        EvaluationResponse,
        Evaluator,
        Observation,
        Outcome,
        supporting_text,
    )
    from minicheck_eval.judge import Judge, open_judge

__all__ = [
    "Document",
    "EvaluationRequest",
    "EvaluationResponse",
    "Evaluator",
    "Judge",
    "Observation",
    "Outcome",
    "open_judge",
    "supporting_text",
]


def __getattr__(name: str) -> Any:
    # The door loads NumPy and the splitter, and the contract pydantic: whoever needs neither, such as pytest where the
    # plugin is installed and not used, does not wait for them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("Judge", "open_judge"):
        from minicheck_eval import judge

        return getattr(judge, name)
    from minicheck_eval import contract

    return getattr(contract, name)
