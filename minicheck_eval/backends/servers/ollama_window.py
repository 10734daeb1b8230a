"""How many tokens an Ollama server is asked to hold (`num_ctx`), and how a prompt shows that it did not fit.

Each other value of num_ctx makes the server load the model again, so a run uses few of them and only ever goes up.
Which tokens a server that was not asked to hold enough leaves out depends on its version; all of them leave out the
start of the document and keep the claim, and answer as if nothing had happened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

from minicheck_eval.backends.servers.too_long import MOST_BYTES_A_TOKEN, tells_of_length

__all__ = ["Era", "TooLong", "looks_cut", "next_step", "read_too_long", "step_for", "steps"]

LEAST_STEP = 2048

KEPT_AT_THE_START = range(4, 7)
"""Ollama keeps four tokens and those that the tokenizer puts before them: none, one, or for some models two."""


@dataclass(frozen=True, slots=True)
class Era:
    """What a version of Ollama can do."""

    version: str
    number: tuple[int, int, int]

    @classmethod
    def of(cls, version: str) -> Self:
        """Read a version; one that was built from source without a number counts as new."""
        found = re.match(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", version.strip())
        number = tuple(int(part or 0) for part in found.groups()) if found else ()
        major, minor, patch = number if any(number) else (999, 0, 0)
        return cls(version, (major, minor, patch))

    @property
    def gives_logprobs(self) -> bool:
        """Whether replies come with the probabilities of their tokens."""
        return self.number >= (0, 12, 11)

    @property
    def refuses_long_prompts(self) -> bool:
        """Whether `truncate: false` is understood; before, every prompt that is too long was cut."""
        return self.number >= (0, 12, 6)

    @property
    def keeps_half(self) -> bool:
        """Whether a cut prompt fills about half of the context, and not all of it."""
        return self.number >= (0, 25, 0)

    @property
    def counts_cached_tokens(self) -> bool:
        """Whether the count of a prompt's tokens covers those that were computed for an earlier one."""
        return self.number != (0, 30, 0)


def steps(window_tokens: int) -> list[int]:
    """Return the values of num_ctx that a run may use: powers of two, and the window."""
    below = []
    step = LEAST_STEP
    while step < window_tokens:
        below.append(step)
        step *= 2
    return [*below, window_tokens]


def step_for(tokens: int, window_tokens: int) -> int:
    """Return the smallest num_ctx that holds so many tokens and one more, or the window where none does."""
    return next((step for step in steps(window_tokens) if tokens < step), window_tokens)


def next_step(num_ctx: int, window_tokens: int) -> int | None:
    """Return the num_ctx after this one, or None at the window."""
    return next((step for step in steps(window_tokens) if step > num_ctx), None)


def looks_cut(prompt_eval_count: int | None, num_ctx: int, prompt_bytes: int, era: Era) -> bool:
    """Tell whether the server may have read only a part of the prompt.

    `prompt_bytes` is the most that the whole rendered prompt can have.  True is a suspicion: a prompt that was not cut
    may have just as many tokens.  False is as sure as what the server says.
    """
    if prompt_bytes < num_ctx:  # a token has at least one byte
        return False
    if prompt_eval_count is None:
        return True
    halves = {num_ctx - (num_ctx - kept) // 2 for kept in KEPT_AT_THE_START} if era.keeps_half else set()
    if prompt_eval_count >= num_ctx or prompt_eval_count in halves:
        return True
    return prompt_eval_count * MOST_BYTES_A_TOKEN < prompt_bytes


class TooLong(NamedTuple):
    """What is known of a prompt that did not fit."""

    tokens: int | None = None
    cut: bool = False
    """It was not refused: a part of it was left out, or may have been."""


# The engine's JSON stands as a string inside Ollama's: its quotes may come with a backslash.
TOKENS = re.compile(r'n_prompt_tokens\\?"\s*:\s*(\d{1,9})|request \((\d{1,9}) tokens\)')


def read_too_long(error: str) -> TooLong | None:
    """Read the text of an error; None where it is about something else."""
    if not tells_of_length(error):
        return None
    found = TOKENS.search(error)
    return TooLong(int(found[1] or found[2]) if found else None)
