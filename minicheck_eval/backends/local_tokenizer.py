"""Turns prompts into token ids; text from users never becomes a control token, unless parity asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby, takewhile
from pathlib import Path
from secrets import token_hex

from tokenizers import AddedToken, Tokenizer

from minicheck_eval.backends.sealing import sealed
from minicheck_eval.engine.plan import TokenPrompt
from minicheck_eval.errors import ManifestError
from minicheck_eval.scoring import Prompt, Segment

__all__ = ["PromptTokenizer", "well_formed"]

Ids = tuple[int, ...]
Segments = tuple[Segment, ...]

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
        self._path = path
        self._tokenizer = _read(path)
        self._bos = tuple(self._tokenizer.encode("").ids) if double_bos else ()
        added = list(self._tokenizer.get_added_tokens_decoder().values())
        self._added = tuple(token.content for token in added)
        self.largest_id = max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        """The largest id that a text may become."""
        self._parse = parse_control_tokens
        self._control = {} if parse_control_tokens else self._protect()
        self._control_pattern = _pattern([token for token in added if token.content in self._control])
        self._mark = "" if parse_control_tokens else self._mark_of_what_follows()
        self._cuts = not parse_control_tokens and self._has_clean_cuts()

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

    def _mark_of_what_follows(self) -> str:
        """Return what is put before a text that follows another, where the tokenizer would take it for a beginning.

        SentencePiece's rule is one: a prompt's first word has a space put before it, and a text after a control token
        has none.
        """
        plain, mark = self._ids(["x y"]), f"<{token_hex(16)}>"
        description = self._tokenizer.to_str()
        self._tokenizer.add_tokens([AddedToken(mark, normalized=False)])
        if [ids[1:] for ids in self._ids([f"{mark}x y"])] != plain:
            return mark
        self._tokenizer = Tokenizer.from_str(description)
        self._tokenizer.encode_special_tokens = True
        return ""

    def _has_clean_cuts(self) -> bool:
        """Tell whether a text that is cut before a space has the tokens of its two parts."""
        (whole, start), (end,) = self._ids(["a: b c", "a:"]), self._following([" b c"])
        return whole == start + end

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

    def ids_of_word(self, word: str, *, spaced: bool = False) -> list[int]:
        """Return the ids of all tokens whose text is the lower-case `word`, in any case; otherwise as `token_id`.

        With `spaced` white space around the word does not matter.
        """
        vocabulary = self._tokenizer.get_vocab()
        # A byte-level vocabulary spells what is not ASCII in other letters.
        near = [i for token, i in vocabulary.items() if not word.isascii() or word in token.lower()]
        texts = ((i, self.text(i).casefold()) for i in near)
        found = sorted(i for i, text in texts if (text.strip() if spaced else text) == word)
        return found or [self.token_id(word)]

    def control_id(self, text: str) -> int | None:
        """Return the id of the first control token that is written out in a text of our own."""
        return next((piece for piece in self._trusted(text) if isinstance(piece, int)), None)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of many tokens, without control tokens."""
        return str(self._reader.decode(list(ids)))

    @property
    def description(self) -> str:
        """Return the tokenizer as its makers wrote it."""
        return str(self._reader.to_str())

    @cached_property
    def _reader(self) -> Tokenizer:
        return _read(self._path)

    def text(self, token_id: int) -> str:
        """Return the text of one token."""
        return str(self._tokenizer.decode([token_id], skip_special_tokens=False))

    def encode(self, prompts: Sequence[Prompt]) -> list[TokenPrompt]:
        """Encode many prompts, each distinct prefix and suffix once."""
        if self._cuts:
            starts = self._encoded(prompt.prefix for prompt in prompts)
            ends = self._encoded((prompt.suffix for prompt in prompts), follows=True)
            return [TokenPrompt(self._bos + starts[prompt.prefix], ends[prompt.suffix]) for prompt in prompts]
        return self._encode_whole(prompts)

    def _encode_whole(self, prompts: Sequence[Prompt]) -> list[TokenPrompt]:
        """Encode each prompt as a whole, and cut it where its tokens leave those of its prefix alone."""
        wholes = self._encoded(prompt.prefix + prompt.suffix for prompt in prompts)
        starts = self._encoded(prompt.prefix for prompt in prompts)
        cut = []
        for prompt in prompts:
            ids = wholes[prompt.prefix + prompt.suffix]
            pairs = zip(ids, starts[prompt.prefix], strict=False)
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            cut.append(TokenPrompt(self._bos + ids[:shared], ids[shared:]))
        return cut

    def _encoded(self, parts: Iterable[Segments], *, follows: bool = False) -> dict[Segments, Ids]:
        """Encode parts of prompts, which begin a prompt or follow what began it."""
        distinct = list(dict.fromkeys(parts))
        pieces = [self._pieces(part) for part in distinct]
        first = [piece for split in pieces for piece in split[: not follows] if isinstance(piece, str)]
        later = [piece for split in pieces for piece in split[not follows :] if isinstance(piece, str)]
        encoded = (iter(self._ids(first)), iter(self._following(later)))

        def ids_of(split: list[str | int]) -> Ids:
            found = [
                next(encoded[follows or place > 0]) if isinstance(piece, str) else (piece,)
                for place, piece in enumerate(split)
            ]
            return tuple(i for ids in found for i in ids)

        return {part: ids_of(split) for part, split in zip(distinct, pieces, strict=True)}

    def _following(self, texts: Sequence[str]) -> list[Ids]:
        """Encode texts that stand behind others."""
        if not self._mark:
            return self._ids(texts)
        return [ids[1:] for ids in self._ids([self._mark + text for text in texts])]

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        return [tuple(one.ids) for one in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _pieces(self, segments: Iterable[Segment]) -> list[str | int]:
        """Cut segments into control token ids and runs of plain text; a run crosses the borders of segments."""
        if self._parse:
            return [well_formed("".join(segment.text for segment in segments))]
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
            pieces += [text[end : match.start()], self._control[match[match.lastindex or 0]]]
            end = match.end()
        return [piece for piece in [*pieces, text[end:]] if piece != ""]


def _read(path: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _pattern(control: Iterable[AddedToken]) -> re.Pattern[str]:
    """Return what finds control tokens, each in a group, with the white space that some of them swallow."""
    longest_first = sorted(control, key=lambda token: len(token.content), reverse=True)
    space = r"\s*"
    found = [f"{space * t.lstrip}({re.escape(t.content)}){space * t.rstrip}" for t in longest_first]
    return re.compile("|".join(found) or r"(?!)")
