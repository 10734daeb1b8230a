"""Closes the ways by which text becomes a control token inside a tokenizer's own model.

Splitting control tokens that are written out in a text is not enough where they are pieces of the model as well: a
Unigram model finds "</s>" in its vocabulary, after normalisation also for full-width characters, and a BPE model may
merge its way to it, or looks whole words up before it merges.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer

__all__ = ["sealed"]


def sealed(tokenizer: Tokenizer, control: Collection[str]) -> Tokenizer:
    """Return the tokenizer with all its ids, but without a way from any text to a control token."""
    control = frozenset(control)
    description = json.loads(tokenizer.to_str())
    model = description["model"]
    if "merges" in model:
        merges = [pair for pair in model["merges"] if control.isdisjoint([*pair, "".join(pair)])]
        looked_up = model.get("ignore_merges") and not control.isdisjoint(model["vocab"])
        if len(merges) == len(model["merges"]) and not looked_up:
            return tokenizer
        model["merges"] = merges
        if looked_up:
            model["ignore_merges"] = _leaves_no_space(tokenizer)
            _rename(description, control)
    else:
        _rename(description, control)
    made = Tokenizer.from_str(json.dumps(description))
    made.encode_special_tokens = tokenizer.encode_special_tokens
    return made


def _rename(description: dict[str, Any], control: Collection[str]) -> None:
    """Put a space before each control token: where its spaces are gone before the model sees it, no text is one."""
    model = description["model"]
    renamed = {token: f" {token}" for token in control if token != model.get("unk_token")}
    if isinstance(model["vocab"], dict):
        model["vocab"] = {renamed.get(piece, piece): i for piece, i in model["vocab"].items()}
    else:
        model["vocab"] = [[renamed.get(piece, piece), weight] for piece, weight in model["vocab"]]
    for token in description["added_tokens"]:
        token["content"] = renamed.get(token["content"], token["content"])
    description["post_processor"] = None


def _leaves_no_space(tokenizer: Tokenizer) -> bool:
    splitter = tokenizer.pre_tokenizer
    return splitter is not None and not any(" " in piece for piece, _ in splitter.pre_tokenize_str(" </s> <s> a"))
