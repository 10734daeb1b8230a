"""What comes back from a model in the words of the engine and of the scoring seam: errors, failures and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
import transformers

from minicheck_eval.engine.execute import PassTooLargeError, Unscored
from minicheck_eval.errors import BackendError
from minicheck_eval.scoring import Failure, Reply, Score

__all__ = ["answers", "library_name", "translated"]


def library_name() -> str:
    """Name the libraries that run the model, and their versions."""
    return f"transformers {transformers.__version__} torch {torch.__version__}"


@contextmanager
def translated(tokens: int) -> Iterator[None]:
    """Turn what PyTorch raises while it works on so many tokens into `PassTooLargeError` or `BackendError`."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise PassTooLargeError(str(error)) from error
    except (RuntimeError, IndexError) as error:
        # On a CPU PyTorch says so in words alone; an index error is a token that the model does not know.
        if "not enough memory" in str(error) or "can't allocate memory" in str(error):
            raise PassTooLargeError(str(error)) from error
        raise BackendError(f"the model failed on a pass of {tokens} tokens: {error}") from error


Answer = TypeVar("Answer", Score, Reply)


def answers(results: Sequence[Answer | Failure | Unscored]) -> list[Answer | Failure]:
    """Tell in the words of the seam why a prompt has no answer."""
    return [Failure(r.reason, r.message) if isinstance(r, Unscored) else r for r in results]
