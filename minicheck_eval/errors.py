"""The tree of errors: what each means, its exit code, whether to try again, and what to do next.

    MinicheckError
    ├── BadInput                  exit 2: what was given cannot be used
    │   ├── CasesError            a file of cases has rows that cannot be read
    │   ├── ManifestError         a judge's manifest is wrong, or no judge has that name
    │   └── RunMismatch           a run directory holds another run than the one asked for
    └── CouldNotJudge             exit 3: there is no answer
        ├── ModelUnavailable      the weights are not on this machine and could not be fetched
        ├── IntegrityError        a file or a model is not the one that it should be
        └── BackendError          the model or its server failed
            └── GivenUp           it gives no answers any more: what asks it stops, and can go on later

A failing gate is a result and not an error; an error means that there is no answer.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "BadInput",
    "CasesError",
    "CouldNotJudge",
    "GivenUp",
    "IntegrityError",
    "ManifestError",
    "MinicheckError",
    "ModelUnavailable",
    "RunMismatch",
]


class MinicheckError(Exception):
    """Say what was given, what was expected, and, as `hint`, what to do next."""

    exit_code = 3
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint is not None:
            # A note (PEP 678) is shown below a traceback, where there is no command line that shows the hint.
            self.add_note(f"hint: {hint}")


class BadInput(MinicheckError):
    """What was given cannot be used as it is."""

    exit_code = 2


class CasesError(BadInput):
    """A file of cases has rows that cannot be read."""


class ManifestError(BadInput):
    """A judge's manifest is wrong, or no judge has the name that was asked for."""


class RunMismatch(BadInput):
    """A run directory holds another run than the one that was asked for."""


class CouldNotJudge(MinicheckError):
    """There is no answer."""


class ModelUnavailable(CouldNotJudge):
    """The weights are not on this machine and could not be fetched."""


class IntegrityError(CouldNotJudge):
    """A file is not the one that was pinned, or a model on a server not the one that was opened."""


class BackendError(CouldNotJudge):
    """The model or its server failed."""

    retryable = True


class GivenUp(BackendError):
    """A server gives no answers any more: whatever asks it stops, and can go on later."""

    retryable = False
