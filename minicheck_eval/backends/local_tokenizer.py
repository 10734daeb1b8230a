"""Turns prompts into token ids; text from users never becomes a control token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from tokenizers import Tokenizer

from minicheck_eval.engine.plan import TokenPrompt
from minicheck_eval.errors import ManifestError
from minicheck_eval.scoring import Prompt, Segment

__all__ = ["PromptTokenizer", "well_formed"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8 and so no tokens, by the replacement character."""
    return _SURROGATE.sub("\ufffd", text)


class PromptTokenizer:
    """A tokenizer.json, read without padding and without truncation."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # With this on, "<|im_end|>" inside a text is split into ordinary pieces.
        self._tokenizer.encode_special_tokens = True
        added = self._tokenizer.get_added_tokens_decoder()
        self._control = {token.content: i for i, token in added.items() if token.special}
        longest_first = sorted(self._control, key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def count(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as plain text."""
        encoded = self._tokenizer.encode_batch_fast([well_formed(t) for t in texts], add_special_tokens=False)
        return [len(one.ids) for one in encoded]

    def token_id(self, text: str) -> int:
        """Return the id of a text that is one token; otherwise raise `ManifestError`."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        if len(ids) != 1:
            raise ManifestError(f"the label {text!r} is {len(ids)} tokens {ids}", hint="a label must be one token")
        return int(ids[0])

    def text(self, token_id: int) -> str:
        """Return the text of one token."""
        return str(self._tokenizer.decode([token_id], skip_special_tokens=False))

    def encode(self, prompts: Sequence[Prompt]) -> list[TokenPrompt]:
        """Encode many prompts, each distinct prefix and suffix once."""
        parts = list(dict.fromkeys(part for prompt in prompts for part in (prompt.prefix, prompt.suffix)))
        pieces = [self._pieces(part) for part in parts]
        runs = [piece for part in pieces for piece in part if isinstance(piece, str)]
        encoded = iter(self._tokenizer.encode_batch_fast(runs, add_special_tokens=False))
        ids = {
            part: tuple(i for piece in split for i in (next(encoded).ids if isinstance(piece, str) else (piece,)))
            for part, split in zip(parts, pieces, strict=True)
        }
        return [TokenPrompt(ids[prompt.prefix], ids[prompt.suffix]) for prompt in prompts]

    def _pieces(self, segments: Iterable[Segment]) -> list[str | int]:
        """Cut segments into control token ids and runs of plain text; a run crosses the borders of segments."""
        pieces: list[str | int] = []
        for segment in segments:
            pieces += self._trusted(segment.text) if segment.trusted else [well_formed(segment.text)]
        joined: list[str | int] = []
        for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
            run = list(group)
            joined += ["".join(map(str, run))] if is_text else run
        return joined

    def _trusted(self, text: str) -> list[str | int]:
        pieces: list[str | int] = []
        end = 0
        for match in self._control_pattern.finditer(text):
            pieces += [text[end : match.start()], self._control[match[0]]]
            end = match.end()
        return [piece for piece in [*pieces, text[end:]] if piece != ""]
