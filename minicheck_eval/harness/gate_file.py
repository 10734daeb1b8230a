"""What is asked of a run: in short, or in a file, a gates.toml or [tool.minicheck_eval.gates] of a pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from minicheck_eval.border import Strict, read
from minicheck_eval.errors import BadInput
from minicheck_eval.harness.baseline import baseline_header
from minicheck_eval.harness.gate_rules import EvaluatorGates, Gates
from minicheck_eval.harness.gates import GateRule, Rule

__all__ = ["read_gates", "read_rule"]

TABLE = ("tool", "minicheck_eval", "gates")
Share = Annotated[float, Field(ge=0, le=1)]


class SliceTable(Strict):
    """What is asked of a slice; what is not said is what the next wider table says."""

    min_rate: Share | None = None
    on: Literal["rate", "lower-bound"] | None = None
    min_judged: Annotated[int, Field(ge=1)] | None = None
    max_drop: Share | None = None
    max_invalid_rate: Share | None = None
    max_error_rate: Share | None = None
    max_unanswered_rate: Share | None = None

    def asked(self) -> dict[str, Any]:
        """Return what this table says itself."""
        return {name: value for name in SliceTable.model_fields if (value := getattr(self, name)) is not None}


class EvaluatorTable(SliceTable):
    """What is asked of every slice of an evaluator, of single ones, and of single cases."""

    never_break: list[str] = Field(default_factory=list)
    slices: dict[str, SliceTable] = Field(default_factory=dict)


class GatesTable(SliceTable):
    """What is asked of every slice of every evaluator, and of single ones."""

    undecided_passes: bool = False
    never_break: list[str] = Field(default_factory=list)
    evaluators: dict[str, EvaluatorTable] = Field(default_factory=dict)


def read_rule(
    out: Path | None,
    *,
    gates: Path | None = None,
    baseline: Path | None = None,
    min_rate: float | None = None,
    max_unjudged: int | None = None,
    undecided_passes: bool = False,
) -> Rule:
    """Return what is asked of the run that `out` will hold, or raise `BadInput`: no judge need be asked for that."""
    if baseline is not None:
        if out is not None and baseline.resolve() == out.resolve():
            raise BadInput(f"the baseline {baseline} is the run itself", hint="choose another folder for the run")
        baseline_header(baseline)
    short = {"min_rate": min_rate, "max_unjudged": max_unjudged}
    given: dict[str, Any] = {name: value for name, value in short.items() if value is not None}
    if gates is None:
        return GateRule(**given, undecided_passes=undecided_passes, baseline=baseline)
    if given:
        name = next(iter(given)).replace("_", "-")
        raise BadInput(f"the gates of {gates} and {name} exclude each other", hint="write the rule into the file")
    return read_gates(gates, baseline=baseline, undecided_passes=undecided_passes)


def read_gates(path: Path, *, baseline: Path | None = None, undecided_passes: bool = False) -> Gates:
    """Read the rules of a file, or raise `BadInput` that names what is wrong in it."""
    try:
        content: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {path}", hint="name a file of gates, or the pyproject.toml") from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="gates are written in TOML; see the README") from error
    if path.name == "pyproject.toml":
        for step in TABLE:
            content = content.get(step) if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise BadInput(f"{path} has no table [{'.'.join(TABLE)}]", hint="write the gates there, or name their file")
    try:
        table = read(GatesTable, content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}", hint="the README lists the keys of a gate") from error
    gates = Gates(
        source=str(path),
        every=table.asked(),
        never_break=tuple(table.never_break),
        evaluators={name: _evaluator(own) for name, own in table.evaluators.items()},
        undecided_passes=undecided_passes or table.undecided_passes,
        baseline=baseline,
    )
    if not gates.asks:
        raise BadInput(f"{path} asks for nothing", hint="give a min_rate, a max_drop or cases that must never break")
    if gates.needs_baseline and baseline is None:
        raise BadInput(f"{path} has a max_drop, and there is no run to compare with", hint="name one as the baseline")
    return gates


def _evaluator(table: EvaluatorTable) -> EvaluatorGates:
    return EvaluatorGates(
        every=table.asked(),
        never_break=tuple(table.never_break),
        slices={name: own.asked() for name, own in table.slices.items()},
    )
