"""What judging costs: calls, tokens and seconds, for each judge that had a part in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from minicheck_eval.contract import Evaluator
from minicheck_eval.scoring import Usage

__all__ = ["Meter"]


class Meter:
    """Measures what an evaluator spends from now on, as far as it says: its `usages`, by the name of the judge."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._before = self._usages()

    @property
    def spent(self) -> dict[str, Usage]:
        """Return what each judge spent."""
        return {name: usage.minus(self._before.get(name, Usage())) for name, usage in self._usages().items()}

    @property
    def total(self) -> Usage | None:
        """Return what all judges spent together; None where none says."""
        spent = list(self.spent.values())
        return sum(spent[1:], spent[0]) if spent else None

    def added_to(self, earlier: Mapping[str, Any] | None, evaluator: str) -> dict[str, Any]:
        """Return the costs of a run, by evaluator and judge: what it had cost before, and what was spent since."""
        before = dict(earlier or {})
        judges = dict(before.get(evaluator, {}))
        for name, usage in self.spent.items():
            judges[name] = asdict(Usage(**judges.get(name, {})) + usage)
        return {**before, evaluator: judges} if judges else before

    def _usages(self) -> dict[str, Usage]:
        return dict(getattr(self._evaluator, "usages", {}))
