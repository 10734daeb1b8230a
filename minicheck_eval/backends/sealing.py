"""Closes the ways by which text becomes a control token inside a tokenizer's own model.

Splitting control tokens that are written out in a text is not enough where they are pieces of the model as well: a
Unigram model finds "</s>" in its vocabulary, after normalisation also for full-width characters, and a BPE model may
merge its way to it.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from tokenizers import Tokenizer

__all__ = ["sealed"]


def sealed(tokenizer: Tokenizer, control: Collection[str]) -> Tokenizer:
    """Return the tokenizer with all its ids, but without a way from any text to a control token."""
    description = json.loads(tokenizer.to_str())
    model = description["model"]
    if "merges" in model:
        merges = [pair for pair in model["merges"] if "".join(pair) not in control]
        if len(merges) == len(model["merges"]):
            return tokenizer
        model["merges"] = merges
    else:
        # Before the model sees a text, its spaces are gone: no text is a piece with a space.
        unknown = model.get("unk_token")
        renamed = {token: f" {token}" for token in control if token != unknown}
        if isinstance(model["vocab"], dict):
            model["vocab"] = {renamed.get(piece, piece): i for piece, i in model["vocab"].items()}
        else:
            model["vocab"] = [[renamed.get(piece, piece), weight] for piece, weight in model["vocab"]]
        for token in description["added_tokens"]:
            token["content"] = renamed.get(token["content"], token["content"])
        description["post_processor"] = None
    made = Tokenizer.from_str(json.dumps(description))
    made.encode_special_tokens = tokenizer.encode_special_tokens
    return made
