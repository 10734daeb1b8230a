"""Holds replies to a JSON Schema: llguidance says after each token which may come next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor

from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.errors import BackendError, BadInput

__all__ = ["Held", "Schemas"]

STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""One way to write each value: a model that may write white space may write it for ever."""


class Schemas:
    """Makes grammars of schemas for one vocabulary of so many tokens."""

    def __init__(self, tokenizer: PromptTokenizer, *, vocabulary: int, stop: Sequence[int]) -> None:
        self._prompt_tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._stop = list(stop)

    def grammar(self, schema: Mapping[str, Any]) -> str:
        """Return the grammar of a schema, or raise `BadInput`."""
        guidance = _library()
        grammar: str = guidance.LLMatcher.grammar_from_json_schema(dict(schema), overrides=STYLE)
        if wrong := guidance.LLMatcher.validate_grammar(grammar, self._tokenizer):
            raise BadInput(f"replies cannot be held to this JSON Schema: {wrong}", hint="write a simpler schema")
        return grammar

    def matchers(self, grammar: str, rows: int) -> list[Any]:
        """Return what follows the grammar in each of so many rows."""
        matcher = _library().LLMatcher(self._tokenizer, grammar, log_level=0)
        return [matcher.deep_copy() for _ in range(rows)]

    @cached_property
    def _tokenizer(self) -> Any:
        if not self._stop:
            raise BackendError("the model names no token that ends a reply, so none can be held to a JSON Schema")
        try:
            return _library().LLTokenizer(
                self._prompt_tokenizer.description, n_vocab=self._vocabulary, eos_token=self._stop
            )
        except ValueError as error:
            raise BackendError(f"llguidance does not understand the model's tokenizer: {error}") from error


class Held(LogitsProcessor):
    """Forbids, in each row, the tokens that its matcher does not allow next; a row whose matcher fails goes free."""

    def __init__(self, matchers: Sequence[Any]) -> None:
        self.matchers = matchers
        self.errors: dict[int, str] = {}
        """Row → why its reply was not held to the schema."""
        self._begun = False

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Take in the last token of each row, and return the scores of the allowed ones; the others have -inf."""
        if self._begun:
            for matcher, token in zip(self.matchers, input_ids[:, -1].tolist(), strict=True):
                # A row that has ended is padded on.
                if not matcher.is_stopped():
                    matcher.consume_token(token)
        self._begun = True
        bits = np.frombuffer(b"".join(matcher.compute_bitmask() for matcher in self.matchers), np.uint8)
        words = np.unpackbits(bits.reshape(len(scores), -1), axis=1, bitorder="little")
        allowed = words[:, : scores.shape[1]].astype(bool)  # [rows, vocabulary]
        for row, matcher in enumerate(self.matchers):
            if matcher.is_error():
                self.errors[row] = f"the reply could not be held to its schema: {matcher.get_error()}"
                allowed[row] = True
        return scores.masked_fill(~torch.from_numpy(allowed).to(scores.device), -torch.inf)


def _library() -> Any:
    try:
        import llguidance
    except ImportError:
        raise BadInput(
            "a local model is held to a JSON Schema by llguidance, which is not installed",
            hint="pip install 'minicheck-eval[constrained]'",
        ) from None
    return llguidance
