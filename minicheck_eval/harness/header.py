"""The header of a run: who judges what, and whether a folder holds that very run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minicheck_eval.errors import RunMismatch
from minicheck_eval.harness.files import encode
from minicheck_eval.harness.journal import HEADER, OTHER_OUT, RESULTS, Journal
from minicheck_eval.harness.provenance import git_state, now, package_versions
from minicheck_eval.identity import JudgeIdentity

__all__ = ["SCHEMA", "begin", "flat", "identities_json", "short_digest"]

SCHEMA = 2
SHORT_DIGEST = 12
SHA256_DIGITS = 64
COMPARED_WHOLE = ("judges.", "app.")


def identities_json(identities: Mapping[str, JudgeIdentity]) -> dict[str, Any]:
    """Return who judges, by evaluator, in their order."""
    return {name: identity.to_json() for name, identity in identities.items()}


def begin(
    journal: Journal,
    identities: Mapping[str, JudgeIdentity],
    source: Mapping[str, Any],
    meta: Mapping[str, str],
    *,
    app: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the header to go on with, or a new one; another run in the folder raises `RunMismatch`."""
    header = journal.header()
    if header is not None:
        # A key that is new says more of the same run; another value says that it is another run.
        known = {key: value for key, value in meta.items() if key in header.get("meta", {})}
        asked = {
            "schema": SCHEMA,
            "evaluators": list(identities),
            "judges": identities_json(identities),
            "app": app,
            "meta": known,
            "cases": {"sha256": source["sha256"], "count": source["count"]},
        }
        _refuse_another(journal.directory, header, asked)
        return header
    if journal.ids:
        raise RunMismatch(f"{journal.directory} holds {RESULTS} without {HEADER}", hint=OTHER_OUT)
    first = next(iter(identities.values()))
    return {
        "schema": SCHEMA,
        "status": "started",
        "judge": first.to_json(),
        "judge_digest": first.digest,
        "evaluators": list(identities),
        "judges": identities_json(identities),
        "cases": dict(source),
        "app": app,
        "packages": package_versions(),
        "git": git_state(Path(source["path"])),
        "arguments": {},
        "meta": {},
        "usage": {},
        "tapes": {},
        "started_at": now(),
        "finished_at": None,
        "summary": None,
        "decision": None,
    }


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested objects under names with dots."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= flat(item, f"{prefix}{key}.") if isinstance(item, dict) else {f"{prefix}{key}": item}
    return found


def _refuse_another(directory: Path, header: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    here = flat(json.loads(encode(asked)))
    there = flat(header)
    wrong = [
        f"{name} is {_shown(there.get(name))} there and {_shown(here.get(name))} here"
        for name in sorted(here.keys() | {name for name in there if name.startswith(COMPARED_WHOLE)})
        if there.get(name) != here.get(name)
    ]
    if wrong:
        raise RunMismatch(f"{directory} holds another run: {'; '.join(wrong)}", hint=OTHER_OUT)


def short_digest(value: object) -> str | None:
    """Return the beginning of what is a SHA-256; None where it is something else."""
    return f"{value[:SHORT_DIGEST]}…" if isinstance(value, str) and len(value) == SHA256_DIGITS else None


def _shown(value: object) -> str:
    return short_digest(value) or ascii(value)
