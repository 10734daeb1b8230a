"""Gets a judge's files from the Hugging Face hub, with the hub's own client, and checks each before it is used."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from minicheck_eval.errors import IntegrityError, ModelUnavailable
from minicheck_eval.manifest import Hub

__all__ = ["Promise", "download", "promise_of"]

SHA256, GIT_BLOB = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


class Promise(NamedTuple):
    """What the hub says of a file before it sends it."""

    commit: str
    etag: str

    def check(self, path: Path, sha256: str) -> None:
        """Compare a file with the promise: the etag is the SHA-256 of a large file, the git blob's of a small one."""
        if SHA256.fullmatch(self.etag):
            kept = self.etag == sha256
        elif GIT_BLOB.fullmatch(self.etag):
            kept = self.etag == _git_blob(path)
        else:
            raise IntegrityError(
                f"{path} cannot be verified: the server gives no digest of it (etag {self.etag!r})",
                hint="fetch from huggingface.co, or bring the files and use `minicheck-eval fetch --from FOLDER`",
            )
        if not kept:
            raise IntegrityError(
                f"{path} has SHA-256 {sha256}, which is not what the server announced (etag {self.etag})",
                hint="it was damaged on its way: run `minicheck-eval fetch` again",
            )


def _git_blob(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def promise_of(hub: Hub, name: str) -> Promise:
    """Ask the hub for the commit and the digest of a file."""
    try:
        url = hf_hub_url(hub.repository, name, revision=hub.revision, endpoint=_endpoint())
        metadata = get_hf_file_metadata(url, endpoint=_endpoint())
    except Exception as error:  # the client's errors have no common ancestor
        raise _explained(hub, name, error) from error
    if metadata.commit_hash != hub.revision:
        raise IntegrityError(
            f"the server answered with commit {metadata.commit_hash} of {hub.repository}, expected {hub.revision}",
            hint="ask another server: see HF_ENDPOINT",
        )
    return Promise(metadata.commit_hash, metadata.etag or "")


def download(hub: Hub, name: str, folder: Path) -> Path:
    """Bring one file into `folder`; after a cut the client asks for the rest, a few times."""
    try:
        return Path(
            hf_hub_download(
                hub.repository, name, revision=hub.revision, local_dir=folder, endpoint=_endpoint(),
                library_name="minicheck-eval",
            )
        )  # fmt: skip
    except Exception as error:  # the client's errors have no common ancestor
        raise _explained(hub, name, error) from error


def _endpoint() -> str | None:
    """Return $HF_ENDPOINT as it is now; the client looks when it is imported."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _explained(hub: Hub, name: str, error: Exception) -> Exception:
    """Say in words of the house what went wrong."""
    where = f"{name} of {hub.repository} at {hub.revision[:12]}"
    at_hand = "or bring the files here and run `minicheck-eval fetch JUDGE --from FOLDER`"
    match error:
        case GatedRepoError():
            why, hint = "access is restricted", f"ask for access at the hub and set HF_TOKEN, {at_hand}"
        case RepositoryNotFoundError():
            why, hint = "no such repository, or it is private", f"set HF_TOKEN if it is private, {at_hand}"
        case RevisionNotFoundError():
            why, hint = "the hub has no such revision any more", at_hand.removeprefix("or ")
        case OfflineModeIsEnabled() | LocalEntryNotFoundError():
            why, hint = (
                "the hub cannot be reached",
                f"unset HF_HUB_OFFLINE and look at the network and the proxy, {at_hand}",
            )
        case EntryNotFoundError():
            why, hint = "the repository has no such file", at_hand.removeprefix("or ")
        case HfHubHTTPError():
            why, hint = f"the hub answered {error.response.status_code}", f"try again later, {at_hand}"
        case OSError() if error.errno is not None:
            return OSError(error.errno, error.strerror, error.filename)
        case _:
            why, hint = (
                f"{type(error).__name__}: {error}",
                f"run the command again: files that came are kept, {at_hand}",
            )
    return ModelUnavailable(f"{where} could not be fetched: {why}", hint=hint)
