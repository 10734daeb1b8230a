"""Which key goes to which server."""

from __future__ import annotations

import os

from minicheck_eval.backends.servers.http import is_this_machine
from minicheck_eval.errors import BadInput

__all__ = ["key_for"]


def key_for(url: str, named: str | None, usual: str) -> str | None:
    """Return the key from the variable that was named, or from the usual one where nobody can read it on its way."""
    if named:
        key = os.environ.get(named, "").strip()
        if not key:
            raise BadInput(f"the environment variable {named} holds no key", hint=f"set {named}, or name another one")
        return key
    is_private = url.startswith("https://") or is_this_machine(url)
    return os.environ.get(usual, "").strip() or None if is_private else None
