"""Turns prompts into token ids; text from users never becomes a control token, unless parity asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from minicheck_eval.backends.sealing import sealed
from minicheck_eval.engine.plan import TokenPrompt
from minicheck_eval.errors import ManifestError
from minicheck_eval.scoring import Prompt, Segment

__all__ = ["PromptTokenizer", "well_formed"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8 and so no tokens, by the replacement character."""
    return _SURROGATE.sub("\ufffd", text)


class PromptTokenizer:
    """A tokenizer.json, read without padding and without truncation.

    With `parse_control_tokens` a prompt is one string, and control tokens are read wherever they are written out; with
    `double_bos` what the tokenizer puts before a text stands before the prompt's own.  The MiniCheck package does both.
    """

    def __init__(self, path: Path, *, parse_control_tokens: bool = False, double_bos: bool = False) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._bos = tuple(self._tokenizer.encode("").ids) if double_bos else ()
        self._added = tuple(token.content for token in self._tokenizer.get_added_tokens_decoder().values())
        self._parse = parse_control_tokens
        self._control = {} if parse_control_tokens else self._protect()
        longest_first = sorted(self._control, key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def _protect(self) -> dict[str, int]:
        """Let control tokens that are written out in a text be split into ordinary pieces; return them all.

        A token that was added to the model's own vocabulary is one even where nothing flags it so, as with "<think>";
        runs of white space are added as text.
        """
        own = self._tokenizer.get_vocab(with_added_tokens=False)
        added = self._tokenizer.get_added_tokens_decoder()
        control = {i: t for i, t in added.items() if t.special or not (t.content in own or t.content.isspace())}
        flags = ("single_word", "lstrip", "rstrip", "normalized")
        self._tokenizer.add_special_tokens(
            [
                AddedToken(token.content, special=True, **{flag: getattr(token, flag) for flag in flags})
                for token in control.values()
                if not token.special
            ]
        )
        self._tokenizer.encode_special_tokens = True
        ids = {token.content: i for i, token in control.items()}
        self._tokenizer = sealed(self._tokenizer, ids)
        return ids

    @property
    def largest_id(self) -> int:
        """Return the largest id that a text may become."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def ends_with_control(self, text: str) -> bool:
        """Tell whether a text of our own ends with a control token of this vocabulary."""
        return text.endswith(self._added)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as a text from a user."""
        return [len(ids) for ids in self._ids([well_formed(text) for text in texts])]

    def token_id(self, text: str) -> int:
        """Return the id of a text that is one token; otherwise raise `ManifestError`."""
        (ids,) = self._ids([text])
        if len(ids) != 1:
            raise ManifestError(
                f"the label {text!r} is {len(ids)} tokens {list(ids)}", hint="a label must be one token"
            )
        return ids[0]

    def ids_of_word(self, word: str) -> list[int]:
        """Return the ids of all tokens whose text is the lower-case `word`, in any case; otherwise as `token_id`."""
        vocabulary = self._tokenizer.get_vocab()
        near = [i for token, i in vocabulary.items() if word in token.lower()]
        return sorted(i for i in near if self.text(i).lower() == word) or [self.token_id(word)]

    def text(self, token_id: int) -> str:
        """Return the text of one token."""
        return str(self._tokenizer.decode([token_id], skip_special_tokens=False))

    def encode(self, prompts: Sequence[Prompt]) -> list[TokenPrompt]:
        """Encode many prompts, each distinct prefix and suffix once."""
        if self._parse:
            return self._encode_parsed(prompts)
        parts = list(dict.fromkeys(part for prompt in prompts for part in (prompt.prefix, prompt.suffix)))
        pieces = [self._pieces(part) for part in parts]
        encoded = iter(self._ids([piece for part in pieces for piece in part if isinstance(piece, str)]))
        ids = {
            part: tuple(i for piece in split for i in (next(encoded) if isinstance(piece, str) else (piece,)))
            for part, split in zip(parts, pieces, strict=True)
        }
        return [TokenPrompt(self._bos + ids[prompt.prefix], ids[prompt.suffix]) for prompt in prompts]

    def _encode_parsed(self, prompts: Sequence[Prompt]) -> list[TokenPrompt]:
        """Encode each prompt as one string, and cut it where its tokens leave those of its prefix alone."""
        wholes = self._ids([well_formed(prompt.text) for prompt in prompts])
        starts = [well_formed("".join(segment.text for segment in prompt.prefix)) for prompt in prompts]
        distinct = list(dict.fromkeys(starts))
        alone = dict(zip(distinct, self._ids(distinct), strict=True))
        cut = []
        for ids, start in zip(wholes, starts, strict=True):
            pairs = zip(ids, alone[start], strict=False)
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            cut.append(TokenPrompt(self._bos + ids[:shared], ids[shared:]))
        return cut

    def _ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [tuple(one.ids) for one in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

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
