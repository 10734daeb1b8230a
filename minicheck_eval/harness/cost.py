"""What judging costs: calls, tokens and seconds, for each evaluator and each judge that had a part in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from minicheck_eval.contract import Evaluator
from minicheck_eval.scoring import Usage

__all__ = ["Meter"]


class Meter:
    """Measures what evaluators spend from now on, as far as they say: their `usages`, by the name of the judge.

    Evaluators may share a model, and take turns: what was spent since the last `charge` goes to the one that is named.
    """

    def __init__(self, evaluators: Mapping[str, Evaluator]) -> None:
        self._evaluators = evaluators
        self._before = self._usages()
        self.spent: dict[str, dict[str, Usage]] = {}
        """Evaluator → judge → what it was."""

    @property
    def total(self) -> Usage | None:
        """Return what all judges spent together; None where none says."""
        spent = [usage for judges in self.spent.values() for usage in judges.values()]
        return sum(spent[1:], spent[0]) if spent else None

    def charge(self, evaluator: str) -> None:
        """Put what was spent since the last time on the account of an evaluator."""
        now = self._usages()
        for judge, usage in now[evaluator].items():
            more = usage.minus(self._before[evaluator].get(judge, Usage()))
            account = self.spent.setdefault(evaluator, {})
            account[judge] = account.get(judge, Usage()) + more
        self._before = now

    def added_to(self, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the costs of a run, by evaluator and judge: what it had cost before, and what was spent since."""
        costs = {name: dict(judges) for name, judges in (earlier or {}).items()}
        for name, judges in self.spent.items():
            account = costs.setdefault(name, {})
            for judge, usage in judges.items():
                account[judge] = asdict(Usage(**account.get(judge, {})) + usage)
        return costs

    def _usages(self) -> dict[str, dict[str, Usage]]:
        return {name: dict(getattr(evaluator, "usages", {})) for name, evaluator in self._evaluators.items()}
