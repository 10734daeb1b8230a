"""Chooses the kind of judge that a name stands for, and checks what was asked of it before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minicheck_eval.backends.placement import Placement
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.calibration import Calibration
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.fallback import check_fallback
from minicheck_eval.evaluators.names import FALLBACK_ON
from minicheck_eval.general import GeneralSettings, Task
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.manifest import is_general, load_manifest
from minicheck_eval.parity import Parity
from minicheck_eval.settings import Settings
from minicheck_eval.text.replies import ReplyRule

__all__ = ["Fallback", "Wanted", "check_url", "choose", "choose_fallback", "fallback_json", "for_second"]

FOR_CHAT_MODELS = ("evaluator", "reading", "rule", "pass_score")


@dataclass(frozen=True, slots=True)
class Fallback:
    """Another judge, asked about those answers for which the first is not enough."""

    judge: str
    on: tuple[str, ...] = FALLBACK_ON
    band: float = 0.1
    """Uncertain is a support this near to the threshold."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked of a judge; what is None is as its manifest has it, or as usual."""

    evaluator: str = "fact-checking"
    threshold: float | None = None
    chunk_tokens: int | None = None
    claim_aggregation: str | None = None
    split_claims: bool = True
    parity: str | Parity | None = None
    recheck: bool = False
    reading: str = "auto"
    rule: ReplyRule | None = None
    pass_score: int | None = None
    calibration: Calibration | None = None


def choose(name: str, wanted: Wanted, placement: Placement) -> Settings | GeneralSettings:
    """Tell which kind of judge a name stands for, and check what is wanted of it."""
    place = Address.parse(name) or (Path(name) if name.strip() and is_general(Path(name)) else None)
    settings = _of_the_family(name, wanted, placement) if place is None else _general(name, place, wanted, placement)
    if wanted.calibration is not None:
        wanted.calibration.check(settings.identity)
    return settings


def _of_the_family(name: str, wanted: Wanted, placement: Placement) -> Settings:
    located = load_manifest(name)
    usual = Wanted()
    if wanted.evaluator != usual.evaluator:
        raise BadInput(
            f"{located.manifest.name} checks facts, and cannot be asked for {wanted.evaluator}",
            hint="name a chat model as the judge: ollama:MODEL, openai:URL#MODEL or a folder",
        )
    _refuse(
        located.manifest.name,
        {field: getattr(wanted, field) != getattr(usual, field) for field in FOR_CHAT_MODELS},
        hint="its answer is a probability: these are for chat models",
    )
    return Settings.read(
        located,
        threshold=wanted.threshold,
        chunk_tokens=wanted.chunk_tokens,
        claim_aggregation=wanted.claim_aggregation,
        split_claims=wanted.split_claims,
        placement=placement,
        parity=wanted.parity,
        recheck=wanted.recheck,
        calibration=wanted.calibration,
    )


def _general(name: str, place: Address | Path, wanted: Wanted, placement: Placement) -> GeneralSettings:
    _refuse(
        name,
        {"parity": wanted.parity, "recheck": wanted.recheck},
        hint="these are for judges that a manifest describes",
    )
    if isinstance(place, Address):
        local = {"dtype": placement.dtype != "auto", "device": placement.device != "auto"}
        local |= {"quantize": bool(placement.quantization), "max_memory": bool(placement.max_memory)}
        _refuse(name, local, hint="the server decides where and how its models run")
    task = Task.read(
        threshold=wanted.threshold,
        chunk_tokens=wanted.chunk_tokens,
        claim_aggregation=wanted.claim_aggregation,
        split_claims=wanted.split_claims,
        calibration=wanted.calibration,
        **{field: getattr(wanted, field) for field in FOR_CHAT_MODELS},
    )
    return GeneralSettings(name, place, task, placement)


def choose_fallback(
    first: Settings | GeneralSettings, fallback: Fallback, wanted: Wanted
) -> Settings | GeneralSettings:
    """Return the settings of a fallback: it is asked the same, and decides by its own rules."""
    check_fallback(fallback.on, fallback.band)
    same = Wanted(
        evaluator=wanted.evaluator,
        split_claims=wanted.split_claims,
        claim_aggregation=wanted.claim_aggregation,
        pass_score=wanted.pass_score,
    )
    second = choose(fallback.judge, same, Placement())
    if second.name == first.name:
        raise BadInput(f"{fallback.judge} would fall back on itself", hint="choose another fallback")
    return second


def check_url(settings: Settings | GeneralSettings, server: ServerOptions) -> None:
    """Raise `BadInput` for an address beside the one that the judge's name has."""
    place = settings.place if isinstance(settings, GeneralSettings) else None
    if server.url is not None and isinstance(place, Address) and (place.kind == "openai" or place.url is not None):
        raise BadInput(
            f"the judge {settings.name} has an address, and the url is another one",
            hint="leave the url away: it is for ollama:MODEL",
        )


def for_second(first: Settings | GeneralSettings, server: ServerOptions) -> ServerOptions:
    """Return how a fallback's server is asked: address, key and window are those of the first judge, if it has one."""
    if isinstance(first, GeneralSettings) and isinstance(first.place, Address):
        return replace(server, url=None, api_key_env=None, window_tokens=None)
    return server


def fallback_json(identity: JudgeIdentity, fallback: Fallback) -> dict[str, Any]:
    """Return what a judge's identity says of its fallback: the other's identity, and when it is asked."""
    return {**identity.to_json(), "on": sorted(fallback.on), "band": fallback.band}


def _refuse(name: str, given: Mapping[str, Any], *, hint: str) -> None:
    if wrong := [option for option, value in given.items() if value]:
        raise BadInput(f"{name} cannot be opened with {', '.join(wrong)}", hint=hint)
