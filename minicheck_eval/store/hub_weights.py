"""The files of a judge from the hub, on this machine: brought once, verified, locked, and checked at each opening."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from minicheck_eval.errors import IntegrityError, ModelUnavailable
from minicheck_eval.identity import digest
from minicheck_eval.manifest import Hub, Manifest
from minicheck_eval.manifest.schema import File, is_pickle
from minicheck_eval.store.lock import Lock, settled_digest
from minicheck_eval.store.paths import store_folder
from minicheck_eval.store.tensor_files import ONE

__all__ = ["Convert", "HubWeights"]

Convert = Callable[[Path, Path], None]
"""Turns a pickle of tensors into a safetensors file."""


@dataclass(frozen=True, slots=True)
class HubWeights:
    """A judge's files in the store."""

    manifest: Manifest
    hub: Hub

    @property
    def folder(self) -> Path:
        """Return where the files lie or will lie: the name holds a digest of what the manifest asks for."""
        files = [[file.name, file.sha256] for file in self.manifest.files]
        asked = digest([self.hub.repository, self.hub.revision, files])
        return store_folder() / f"{self.manifest.name}-{asked[:16]}"

    @property
    def lock(self) -> Lock:
        """Return what was verified so far."""
        return Lock.read(self.folder, self.hub.repository)

    def are_ready(self) -> bool:
        """Tell whether all files are at hand; one that is not the one that was locked raises `IntegrityError`."""
        lock = self.lock
        locked = {**lock.files, **lock.made}
        for name in self._names():
            path = self.folder / name
            if not path.is_file() or name not in locked:
                return False
            if (got := settled_digest(path)) != locked[name]:
                raise IntegrityError(
                    f"{path} has SHA-256 {got}, but {locked[name]} was fetched",
                    hint=f"it was changed or damaged: remove it and run `minicheck-eval fetch {self.manifest.name}`",
                )
        return True

    def refuse_strays(self, files: Iterable[Path]) -> None:
        """Raise `IntegrityError` where one of the files that would be loaded was never verified."""
        verified = self._names()
        if strays := [path for path in files if path.name not in verified]:
            raise IntegrityError(
                f"{strays[0]} is no file of {self.manifest.name}, but would be loaded as one",
                hint="remove it, or list it among [[weights]] in the manifest",
            )

    def _names(self) -> list[str]:
        """Return the names of the files in the folder; each is verified before the judge is opened."""
        return [ONE if is_pickle(file.name) else file.name for file in self.manifest.files]

    def bring(self, source: Path | None, convert: Convert) -> None:
        """Bring the files that are not at hand, from the folder `source` or from the hub."""
        _tell(f"{self.manifest.name} is {self.hub.repository}; licence: {self.manifest.licence}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.folder}.lock"):
                for file in self.manifest.files:
                    target = self.folder / (ONE if is_pickle(file.name) else file.name)
                    if file.name not in self.lock.files or not target.is_file():
                        self._bring(file, source, convert)
                # What the client remembers of a download under way.
                shutil.rmtree(self.folder / ".cache", ignore_errors=True)
        except OSError as error:
            hint = "make room, or name another folder in $MINICHECK_EVAL_HOME"
            raise ModelUnavailable(f"the weights cannot be kept in {self.folder}: {error}", hint=hint) from error

    def _bring(self, file: File, source: Path | None, convert: Convert) -> None:
        path, commit = self._taken(file, source) if source else self._downloaded(file)
        lock = self.lock.with_file(file.name, settled_digest(path), commit)
        if is_pickle(file.name):
            making = self.folder / f".{ONE}"
            convert(path, making)
            making.replace(self.folder / ONE)
            lock.with_made(ONE, settled_digest(self.folder / ONE)).write(self.folder)
            path.unlink()
        else:
            path.replace(self.folder / file.name)
            lock.write(self.folder)

    def _downloaded(self, file: File) -> tuple[Path, str]:
        from minicheck_eval.store.hub import download, promise_of

        promise = promise_of(self.hub, file.name)
        _tell(f"fetching {file.name} ({self.hub.megabytes} MB in all)" if file.sha256 else f"fetching {file.name}")
        path = download(self.hub, file.name, self.folder)
        try:
            if not self._is_known(file, path):
                promise.check(path, settled_digest(path))
        except IntegrityError:
            path.unlink()
            raise
        return path, promise.commit

    def _taken(self, file: File, source: Path) -> tuple[Path, str]:
        path, taken = source / file.name, self.folder / f".taken-{file.name}"
        if not path.is_file():
            raise ModelUnavailable(f"{path} is not there", hint="name a folder that holds all files of the judge")
        shutil.copyfile(path, taken)
        try:
            if not self._is_known(file, taken):
                _tell(f"{file.name} has no published digest and is locked as it is: SHA-256 {settled_digest(taken)}")
        except IntegrityError:
            taken.unlink()
            raise
        return taken, ""

    def _is_known(self, file: File, path: Path) -> bool:
        """Tell whether the digest is the pinned or locked one: False where none is known, an error for another."""
        got, name = settled_digest(path), self.manifest.name
        locked = self.lock.files.get(file.name)
        if file.sha256 and got != file.sha256:
            raise IntegrityError(
                f"{file.name} has SHA-256 {got}, the manifest of {name} says {file.sha256}",
                hint="it is damaged or another file: fetch it again, or bring the published one",
            )
        if locked and got != locked:
            raise IntegrityError(
                f"{file.name} has SHA-256 {got}, but had {locked} at the same revision when it was first fetched",
                hint=f"somebody changed what was published; to accept it, remove {self.folder} and fetch {name} again",
            )
        return bool(file.sha256 or locked)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - stdout stays free for results
