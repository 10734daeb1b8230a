"""A calibration: what a judge's support is worth according to people, as a file that belongs to one judge.

It holds a threshold, a map from support to the probability that a person calls the answer supported, or both.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from minicheck_eval.border import Strict, explain
from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput
from minicheck_eval.identity import JudgeIdentity, digest

__all__ = ["Calibration", "IsotonicMap", "PlattMap", "SupportMapModel", "log_odds"]

NEAREST = 1e-6
"""Log-odds are taken of supports that are kept this far from 0 and 1."""
BINDING = (
    "judge",
    "model",
    "revision",
    "digests",
    "quantization",
    "prompt_digest",
    "labels_digest",
    "chunk_tokens",
    "least_mass",
    "chunk_aggregation",
    "claim_aggregation",
    "splitter",
    "parity",
    "evaluator",
    "reading",
)
"""What shapes a support.  The machine, the number format and the package's version move it too little to matter."""
Share = Annotated[float, Field(ge=0, le=1)]


def log_odds(support: float) -> float:
    """Return ln(p / (1 - p)), with p kept off 0 and 1."""
    kept = min(max(support, NEAREST), 1 - NEAREST)
    return math.log(kept / (1 - kept))


class PlattMap(Strict):
    """A logistic curve over the log-odds of the support; slope 1 and intercept 0 change nothing."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["platt"] = "platt"
    slope: Annotated[float, Field(gt=0)]
    intercept: float

    def __call__(self, support: float) -> float:
        """Return the probability for a support."""
        z = self.slope * log_odds(support) + self.intercept
        # The branch keeps the exponential from overflowing.
        return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


class IsotonicMap(Strict):
    """A rising curve through points, straight between them and level beyond them."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["isotonic"] = "isotonic"
    supports: Annotated[list[Share], Field(min_length=1)]
    probabilities: list[Share]

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if len(self.supports) != len(self.probabilities):
            others = counted(len(self.probabilities), "probability", "probabilities")
            raise ValueError(f"{counted(len(self.supports), 'support')} and {others}: there should be as many")
        if any(b <= a for a, b in pairwise(self.supports)) or any(b < a for a, b in pairwise(self.probabilities)):
            raise ValueError("supports and probabilities should rise")
        return self

    def __call__(self, support: float) -> float:
        """Return the probability for a support."""
        right = bisect_right(self.supports, support)
        if right in (0, len(self.supports)):
            return self.probabilities[0 if right == 0 else -1]
        (x0, x1), (y0, y1) = self.supports[right - 1 : right + 1], self.probabilities[right - 1 : right + 1]
        return y0 + (y1 - y0) * ((support - x0) / (x1 - x0))


SupportMapModel = Annotated[PlattMap | IsotonicMap, Field(discriminator="kind")]


class Calibration(Strict):
    """The content of a calibration file."""

    model_config = ConfigDict(frozen=True)
    schema_version: Literal[1] = 1
    judge: dict[str, Any]
    """The part of the judge's identity that shapes its support."""
    threshold: Share | None = None
    """Above it an answer passes; on the scale of the map where there is one.  None: the judge's own, mapped."""
    map: SupportMapModel | None = None
    cases: dict[str, Any] = Field(default_factory=dict)
    """What it was fitted on, and what was measured there: for people."""

    @classmethod
    def load(cls, source: str | Path | Calibration | None) -> Calibration | None:
        """Read a calibration file, or raise `BadInput`; what is read already, and None, stay what they are."""
        if source is None or isinstance(source, Calibration):
            return source
        hint = "write one with: minicheck-eval calibrate CASES --save FILE"
        try:
            found = cls.model_validate_json(Path(source).read_bytes())
        except OSError as error:
            raise BadInput(f"{source} cannot be read: {error.strerror or error}", hint=hint) from error
        except ValidationError as error:
            raise BadInput(f"{source} is no calibration file: {explain(error)}", hint=hint) from error
        if found.threshold is None and found.map is None:
            raise BadInput(f"{source} has neither a threshold nor a map", hint=hint)
        return found

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        return f"{self.model_dump_json(indent=2)}\n".encode()

    @property
    def digest(self) -> str:
        """Return the SHA-256 of what decides: the judge, the threshold and the map."""
        return digest(self.model_dump(include={"judge", "threshold", "map"}))

    def threshold_for(self, own: float) -> float:
        """Return the threshold to decide by, for a judge whose own is `own`."""
        if self.threshold is not None:
            return self.threshold
        return own if self.map is None else self.map(own)

    def check(self, identity: JudgeIdentity) -> None:
        """Raise `BadInput` where this was made for another judge; what only an open judge knows may be missing."""
        here = binding(identity.to_json())
        open_yet = bool(identity.backend)
        wrong = [
            f"{name} is {_shown(self.judge.get(name))} there and {_shown(value)} here"
            for name, value in here.items()
            if self.judge.get(name) != value and (open_yet or (value not in ("", None) and name != "digests"))
        ]
        if wrong:
            raise BadInput(
                f"the calibration was made for another judge: {'; '.join(wrong)}",
                hint="open the judge as it was calibrated, or calibrate this one",
            )


def binding(judge: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a judge's identity, as JSON, that a calibration belongs to."""
    return {name: judge.get(name) for name in BINDING}


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - a line of a terminal
