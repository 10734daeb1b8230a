"""The parity switch: which habits of the MiniCheck package a judge takes over; by default none, which is safe.

With parity a judge returns the numbers of the reference implementation, its quirks included; texts from users then may
hold control tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicheck_eval.errors import BadInput

__all__ = ["PRESETS", "SAFE", "Parity", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The habits, one by one; those that a kind of model does not have do nothing there."""

    rope_theta: float | None = None
    """The rotary base in place of the configured one."""
    double_bos: bool = False
    """The token that begins a text stands there twice, where the tokenizer knows one."""
    top5_rule: bool = False
    """Support counts only where "yes" is among the five likeliest tokens, and a judge that says neither says no."""
    reference_texts: bool = False
    """Sentences, chunks and white space are the reference's; so is asking about nothing where there is no evidence."""
    whole_claims: bool = False
    """The whole answer is one claim."""
    parse_control_tokens: bool = False
    """Control tokens that are written out in a text become control tokens."""
    paste_claim: bool = False
    """The claim is pasted into the document in place of a literal "[CLAIM]"."""
    truncate: bool = False
    """What is too long for an encoder is cut off at the right, where the claim stands."""


SAFE = Parity()
"""None of them."""

_PACKAGE = Parity(double_bos=True, top5_rule=True, reference_texts=True, parse_control_tokens=True, paste_claim=True)
_ENCODERS = Parity(reference_texts=True, whole_claims=True, parse_control_tokens=True, truncate=True)

PRESETS = {
    "reference": _PACKAGE,
    # vLLM's rotary base for the 7B model in 2024, when the package did not split claims.
    "published": replace(_PACKAGE, whole_claims=True, rope_theta=3052773.67),
}
"""By name: the package as it is now, and as it was when the published numbers of the 7B model were made."""


def resolve(asked: str | Parity | None, *, family: str) -> Parity:
    """Return the habits that were asked for by name or one by one; encoders have the same ones under both names."""
    if asked is None:
        return SAFE
    if isinstance(asked, Parity):
        return asked
    if asked not in PRESETS:
        raise BadInput(f"parity {asked!r} is not known", hint=f"choose one of {', '.join(PRESETS)}, or leave it out")
    return PRESETS[asked] if family == "causal" else _ENCODERS
