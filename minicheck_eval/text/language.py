"""Which language's abbreviations and quotation marks a text is read with: a cheap guess, good enough for that alone.

The script that most letters belong to decides; for Latin letters, the language whose commonest words occur most often.
Without evidence the answer is the given default. Languages that are not listed are read like English.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

__all__ = ["language_of"]

_SAMPLE_CHARACTERS = 2000

_SCRIPTS = re.compile(
    "(?P<latin>[A-Za-z\u00c0-\u024f]+)"
    "|(?P<zh>[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134f]+)"
    "|(?P<ja>[\u3041-\u30ff]+)"
    "|(?P<ko>[\uac00-\ud7a3]+)"
    "|(?P<ar>[\u0620-\u06d3]+)"
    "|(?P<he>[\u05d0-\u05ea]+)"
    "|(?P<hi>[\u0900-\u0963]+)"
    "|(?P<ru>[\u0400-\u04ff]+)"
    "|(?P<el>[\u0370-\u03ff]+)"
    "|(?P<hy>[\u0531-\u0587]+)"
    "|(?P<my>[\u1000-\u109f]+)"
)

_WORD = re.compile(r"[^\W\d_]+")

_COMMON_WORDS = {
    "en": "the of and to is was are were with that for by from it this he she",
    "de": "der die das und ist nicht von ein eine den dem des im mit auf für wurde sich auch am zum er sie",
    "fr": "le la les des est et une dans du que pour au par sur qui",
    "es": "el la los las es y una en que del por con su fue",
    "it": "il di che è della una per sono nel con gli alla",
    "nl": "het een van en is de niet voor dat op zijn werd",
    "pt": "o os as é uma do da não em que para com foi",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _COMMON_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_language)


def language_of(text: str, default: str = "en") -> str:
    """Guess the language from the beginning of the text, as an ISO 639-1 code."""
    sample = text[:_SAMPLE_CHARACTERS]
    script = "latin" if sample.isascii() else _script_of(sample)
    return _latin_language_of(sample, default) if script == "latin" else script


def _script_of(sample: str) -> str:
    letters: Counter[str] = Counter()
    for match in _SCRIPTS.finditer(sample):
        letters[match.lastgroup or ""] += len(match[0])
    # Japanese is written with Chinese characters too, and only Japanese with kana.
    if letters["ja"]:
        letters["ja"] += letters.pop("zh", 0)
    return max(letters, key=lambda script: letters[script], default="latin")


def _latin_language_of(sample: str, default: str) -> str:
    common = [languages for word in _WORD.findall(sample.casefold()) if (languages := _LANGUAGES_OF.get(word))]
    hits = Counter(chain.from_iterable(common))
    most = max(hits.values(), default=0)
    best = [language for language in _COMMON_WORDS if hits[language] == most]
    return default if default in best or not most else best[0]
