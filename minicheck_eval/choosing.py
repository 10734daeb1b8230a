"""Chooses the kind of judge that a name stands for, and checks what was asked of it before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicheck_eval.backends.placement import Placement
from minicheck_eval.backends.server_options import Address
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.fallback import FALLBACK_ON
from minicheck_eval.general import GeneralSettings, Task
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.manifest import is_general, load_manifest
from minicheck_eval.parity import Parity
from minicheck_eval.settings import Settings
from minicheck_eval.text.replies import ReplyRule

__all__ = ["Fallback", "choose", "choose_fallback", "fallback_json"]


@dataclass(frozen=True, slots=True)
class Fallback:
    """Another judge, asked about those answers for which the first is not enough."""

    judge: str
    on: tuple[str, ...] = FALLBACK_ON
    band: float = 0.1
    """Uncertain is a support this near to the threshold."""


def choose(
    name: str,
    *,
    placement: Placement,
    evaluator: str = "fact-checking",
    reading: str = "auto",
    rule: ReplyRule | None = None,
    pass_score: int | None = None,
    parity: str | Parity | None = None,
    recheck: bool = False,
    threshold: float | None = None,
    chunk_tokens: int | None = None,
    claim_aggregation: str | None = None,
    split_claims: bool = True,
) -> Settings | GeneralSettings:
    """Check what was asked for, and tell which kind of judge it is for."""
    place = Address.parse(name) or (Path(name) if is_general(Path(name)) else None)
    if place is None:
        located = load_manifest(name)
        _refuse(
            located.manifest.name,
            {
                "evaluator": evaluator != "fact-checking",
                "reading": reading != "auto",
                "rule": rule,
                "pass_score": pass_score,
            },
            hint="it checks facts, and its answer is a probability: for other questions choose a chat model",
        )
        return Settings.read(
            located,
            threshold=threshold,
            chunk_tokens=chunk_tokens,
            claim_aggregation=claim_aggregation,
            split_claims=split_claims,
            placement=placement,
            parity=parity,
            recheck=recheck,
        )
    _refuse(name, {"parity": parity, "recheck": recheck}, hint="these are for judges with a manifest")
    if isinstance(place, Address):
        wanted = {"dtype": placement.dtype != "auto", "device": placement.device != "auto"}
        wanted |= {"quantize": bool(placement.quantization), "max_memory": bool(placement.max_memory)}
        _refuse(name, wanted, hint="the server decides where and how its models run")
    task = Task.read(
        evaluator=evaluator,
        threshold=threshold,
        chunk_tokens=chunk_tokens,
        claim_aggregation=claim_aggregation,
        split_claims=split_claims,
        reading=reading,
        rule=rule,
        pass_score=pass_score,
    )
    return GeneralSettings(name, place, task, placement)


def choose_fallback(
    first: Settings | GeneralSettings, fallback: Fallback, options: Mapping[str, Any]
) -> Settings | GeneralSettings:
    """Return the settings of a fallback: it is asked the same, and decides by its own rules."""
    wrong = [reason for reason in fallback.on if reason not in FALLBACK_ON]
    if wrong or not fallback.on:
        raise BadInput(f"fallback on {', '.join(wrong) or 'nothing'}", hint=f"choose of {', '.join(FALLBACK_ON)}")
    if not 0 <= fallback.band <= 1:
        raise BadInput(f"fallback band {fallback.band} is not in [0, 1]", hint="it is a distance of probabilities")
    kept = {name: options[name] for name in ("evaluator", "split_claims") if name in options}
    second = choose(fallback.judge, placement=Placement(), **kept)
    if second.identity.judge == first.identity.judge:
        raise BadInput(f"{fallback.judge} would fall back on itself", hint="choose another fallback")
    return second


def fallback_json(identity: JudgeIdentity, fallback: Fallback) -> dict[str, Any]:
    """Return what a judge's identity says of its fallback: the other's identity, and when it is asked."""
    return {**identity.to_json(), "on": sorted(fallback.on), "band": fallback.band}


def _refuse(name: str, given: Mapping[str, Any], *, hint: str) -> None:
    if wrong := [option for option, value in given.items() if value]:
        raise BadInput(f"{name} cannot be opened with {', '.join(wrong)}", hint=hint)
