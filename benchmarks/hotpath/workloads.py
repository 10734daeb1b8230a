"""What is judged: documents and claims, made from a seed or read from a file, in MiniCheck's prompt."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from minicheck_eval.scoring import Prompt, PromptTemplate

__all__ = ["TEMPLATE", "Case", "Synthetic", "prompts", "read_cases"]

TEMPLATE = PromptTemplate(
    "<|im_start|>system\nDetermine whether the provided claim is consistent with the corresponding document. "
    "Consistency in this context implies that all information presented in the claim is substantiated by the document. "
    "If not, it should be considered inconsistent. Please assess the claim's consistency with the document by "
    'responding with either "Yes" or "No".<|im_end|>\n<|im_start|>user\nDocument: {document}\nClaim:',
    " {claim}<|im_end|>\n<|im_start|>assistant\n",
)
"""The prompt of Bespoke-MiniCheck-7B."""

SYLLABLES = (
    "a ab al an ar as ba be ca ce co da de di do e ed el en er es fa fi ga ge ha he hi i in ing ion is it ka la le li "
    "lo ly ma me mi mo na ne ni no o of on or ou pa pe po ra re ri ro sa se si so st ta te th ti to tu u un ur ve vi wa"
)
COMMON = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from which or had they an "
    "were their been has more will one all would who when there its out time first new after also people two year into "
    "state company government city world week report country during percent million study health court police music "
    "water house school group market energy history season party number power family second public local system"
)
RARE_SHARE = 0.2
"""Of made-up words, which take several tokens each: about 1.4 tokens a word in all, as in English prose."""


@dataclass(frozen=True, slots=True)
class Case:
    """One document and the claims about it."""

    document: str
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Documents without meaning but with the length of real ones; the same seed gives the same texts."""

    documents: int
    claims_per_document: int
    words: tuple[int, int]
    """The least and the most words of a document."""
    claim_words: tuple[int, int] = (8, 30)
    seed: int = 0

    def cases(self) -> Iterator[Case]:
        """Make one case after the other, keeping none."""
        draw = random.Random(self.seed)  # noqa: S311 - texts, not secrets
        lexicon = _lexicon(draw)
        for _ in range(self.documents):
            document = _text(draw, lexicon, draw.randint(*self.words))
            claims = tuple(
                _text(draw, lexicon, draw.randint(*self.claim_words)) for _ in range(self.claims_per_document)
            )
            yield Case(document, claims)

    def batches(self, documents: int) -> Iterator[list[Prompt]]:
        """Make the prompts of so many documents at a time, keeping none."""
        cases = self.cases()
        while batch := list(islice(cases, documents)):
            yield prompts(batch)


def _lexicon(draw: random.Random) -> list[str]:
    """Make words to draw from: common ones, and made-up ones as often as rare words are."""
    syllables, common = SYLLABLES.split(), COMMON.split()
    rare = ["".join(draw.choices(syllables, k=draw.choice((2, 2, 3)))) for _ in range(1000)]
    times = round(len(rare) * (1 / RARE_SHARE - 1) / len(common))
    return rare + common * times


def _text(draw: random.Random, lexicon: Sequence[str], count: int) -> str:
    """Write sentences of 8 to 25 words, `count` words in all."""
    words = draw.choices(lexicon, k=count)
    start = 0
    while start < count:
        words[start] = words[start].capitalize()
        start += draw.randint(8, 25)
        words[min(start, count) - 1] += "."
    return " ".join(words)


def read_cases(path: Path, documents: int | None) -> list[Case]:
    """Read `document` and `claim` of each line of a JSONL file (also .gz); a document's claims come together."""
    claims: dict[str, list[str]] = {}
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                document, claim = str(row["document"]), str(row["claim"])
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{path}:{number}: {error!r}; expected the fields document and claim") from error
            claims.setdefault(document, []).append(claim)
    return [Case(document, tuple(own)) for document, own in islice(claims.items(), documents)]


def prompts(cases: Sequence[Case]) -> list[Prompt]:
    """Write the prompts of all cases, in order."""
    return [TEMPLATE.fill(case.document, claim) for case in cases for claim in case.claims]
