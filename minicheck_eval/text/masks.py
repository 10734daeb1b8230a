"""What the sentence splitter must not take for the end of a sentence: hidden from it, at the same length."""

from __future__ import annotations

import re

__all__ = ["masked"]

# Lone surrogates cannot be encoded, and white space beyond ASCII makes the splitter panic or end a paragraph.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WRAP = re.compile(r"[\n\r][\s>]*")
_SPACE = re.compile(r"\s")

_STOP = re.compile(r"[.!?…。！？]")
_CODE = re.compile(r"`[^`]+`")
_ADDRESS = re.compile(r"(?:https?://|www\.)[!-~]*[0-9A-Za-z/#=&_-]")
# Names of files and of code, addresses, numbers; short parts are left alone, for the splitter knows "U.S." and "Ph.D.".
_INSIDE_WORD = re.compile(r"(?<=[\w/.)\]])[.!?](?=[0-9_/=&-]|[A-Za-z\u00c0-\u058f]{3})")


def _words(listing: str) -> str:
    """Make a pattern of words without their last stop: capitals at the start, white space after stops within."""
    words = {form for word in listing.split() for form in (word, word[0].upper() + word[1:])}
    return "|".join(re.escape(word).replace(r"\.", r"\.\s?") for word in sorted(words))


# Only what never ends a sentence; what may end one ("etc.", "U.S.", "p.m.") is left to the splitter.
_ABBREVIATION = re.compile(
    r"(?<![\w.])(?:"
    + _words(
        "e.g i.e cf viz vs approx Mr Mrs Ms Dr Prof Mme Mmes Mlle Sra Srta Sig Dott Dhr Dipl Ing"
        " z.B d.h i.d.R u.U bzw vgl bspw ggf sog inkl exkl zzgl evtl ca bijv p.ej p.ex т.е т.к डॉ د"
    )
    + r")\."
)
_BEFORE_NUMBER = re.compile(
    r"(?<![\w.])(?:"
    + _words(
        "No Nos vol eq eqs fig figs sec ch art p pp est min max ext apt ver par"
        " Nr Nrn Abs Abschn Abb Anl Anm Aufl Az Bd Bde Bsp Kap Pos Rn Rdn Rz S Tab Tel Vers Ziff Hausnr Jg"
        " Okt Dez Sek Stk mind ungef gegr geb gest verh pág págs núm cap"
    )
    + r")\.(?=\s*\d)"
)
# "No." is a number only before one.
_NO = re.compile(r"(?<![\w.])No(?=\.(?!\s*\d))")
_FRENCH_TITLE = re.compile(r"(?<![\w.])M\.(?=\s+[A-ZÀ-Þ])")
_GERMAN_ORDINAL = re.compile(
    r"\b(?:der|die|das|dem|den|des|im|am|zum|zur|vom|beim|ins|eine?[mnrs]?|jede[mnrs]?|(?:ihr|sein|unser)(?:e[mnrs]?)?)"
    r"\s+\d{1,3}\.(?=\s)"
    r"|\b\d{1,2}\.(?=\s?\d{1,2}\.)"
    r"|(?<=[.!]\s)\d{1,2}\.(?=\s)",
    re.IGNORECASE,
)
# The splitter never begins a German sentence with a number.
_GERMAN_NUMBER = re.compile(r"(?<=[^\W\d_][.!?]\s)\d")
# The particle after a Japanese quotation shows that the sentence goes on; a comma does so anywhere.
_QUOTED_PART = re.compile(r"[。！？](?=[」』）”]+[とがはをにのもでやへ、，,])")
# A sentence in brackets, which the splitter would join to the next.
_ASIDE = re.compile(r"(?:^|(?<=[.!?]\s))\(([^()]*[.!?])\)(?=\s)")
_DIGIT_AFTER_STOP = re.compile(r"(?<=[。！？])\d")
_QUOTE_MARKS = '"“”„«»「」『』'
_ONE_QUOTATION = re.compile(f"[{_QUOTE_MARKS}]([^{_QUOTE_MARKS}]*)[{_QUOTE_MARKS}]([.。]?)")


def masked(text: str, language: str) -> str:
    """Return the text as the splitter may see it: every character stands where it stood."""
    text = _SURROGATE.sub("\ufffd", text)
    text = _SPACE.sub(" ", _WRAP.sub(lambda match: " " * len(match[0]), text))
    text = _NO.sub("Na", text)
    for pattern in (_CODE, _ADDRESS, _INSIDE_WORD, _ABBREVIATION, _BEFORE_NUMBER, _QUOTED_PART):
        text = pattern.sub(_without_stops, text)
    if language == "fr":
        text = _FRENCH_TITLE.sub(_without_stops, text)
    if language == "de":
        text = _GERMAN_NUMBER.sub("X", _GERMAN_ORDINAL.sub(_without_stops, text))
    text = _ASIDE.sub(r"X\1 ", text)
    text = _DIGIT_AFTER_STOP.sub("一", text)
    # The splitter leaves quotations whole; a text that is one quotation is split inside.
    quotation = _ONE_QUOTATION.fullmatch(text)
    return f" {quotation[1]} {quotation[2]}" if quotation else text


def _without_stops(match: re.Match[str]) -> str:
    return _STOP.sub("_", match[0])
