"""Strings that a server may read as control tokens, in the texts of users, are made plain text by a visible space.

A server tokenises the whole rendered chat, and most turn `<|im_end|>` into one token wherever it stands: a document
could close its own turn.  Which strings are control tokens depends on the model and is not told by the server, so all
forms in use are broken, whatever the model.
"""

from __future__ import annotations

import re

__all__ = ["neutralised"]

PIPE = r"[|\uff5c]"  # DeepSeek's is as wide as a Chinese character
# Behind the opening mark.  Each is bounded, so that no text takes more than linear time.
ANGLED = (
    rf"{PIPE}[^<>|\uff5c\n]{{1,64}}{PIPE}>",  # <|im_end|>
    rf"{PIPE}\w{{1,64}}>|\w{{1,64}}{PIPE}>",  # <|turn>, <turn|>
    r"/?(?=\w{0,64}_)\w{1,64}>",  # <start_of_turn>, <fim_prefix>, <tool_call>, <extra_id_0>: no HTML has a low line
    r"/?(?:s|bos|eos|unk|pad|mask|cls|sep|sop|eop|eoa|eoh|eod|eot|eom|suf|mid|repo|reponame)>",
    r"/?(?:think|thinking|answer|image|ai|用户)>",
    r"/?(?-i:PRE)>",  # <pre> is HTML
    r"/?fim-\w{1,64}>",
    r"/?(?:seed|mask):\w{1,64}>",
    r"(?:unused|dummy)\d{1,6}>",
    r"</?SYS>>",
)
SQUARE = (
    r"\|[^\[\]\n]{1,64}\|\]",  # [|user|]
    r"/?(?:INST|CLS|SEP|MASK|gMASK|sMASK|PAD|UNK|BOS|EOS)\]",
    r"/?(?-i:[A-Z]{1,32}(?:_[A-Z\d]{1,32}){1,4})\]",  # [TOOL_CALLS], [UNUSED_TOKEN_145]
    r"/?(?-i:IMG|THINK|ARGS|AUDIO|PREFIX|MIDDLE|SUFFIX)\]",  # in small letters they are ordinary words
    r"unused\d{1,6}\]",
    r"img-\d{1,6}\]",  # where Ollama puts a picture
    r"e~\[",
)
CLOSING_SQUARE = (r"~!?b[\[\]]", r"<\]")  # ]~b] and ]<]: turns of MiniMax

OPENING = re.compile(
    rf"<(?={'|'.join(ANGLED)})|\[(?={'|'.join(SQUARE)})|\](?={'|'.join(CLOSING_SQUARE)})", re.IGNORECASE
)


def neutralised(text: str) -> tuple[str, bool]:
    """Return the text without anything that a server may read as a control token, and whether it had any.

    The space goes behind the opening mark, where no control token has one: so nothing new can arise, and doing it twice
    changes nothing more.
    """
    plain, found = OPENING.subn(r"\g<0> ", text)
    return plain, found > 0
