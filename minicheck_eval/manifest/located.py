"""Finds a judge: by its name, or in a folder of one's own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from minicheck_eval.border import read
from minicheck_eval.errors import BadInput, ManifestError
from minicheck_eval.manifest.model_folder import adapt, relative_of
from minicheck_eval.manifest.schema import Manifest

__all__ = ["Located", "judge_names", "load_manifest", "models_folder"]


@dataclass(frozen=True, slots=True)
class Located:
    """A manifest and the folder it speaks of."""

    manifest: Manifest
    folder: Path


def models_folder() -> Path:
    """Return the folder of all manifests: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    checkout = package.parent / "models"
    installed = package / "_models"
    return installed if installed.is_dir() else checkout


def judge_names() -> list[str]:
    """List the judges that have a manifest."""
    return sorted(path.parent.name for path in models_folder().glob("*/manifest.toml"))


def load_manifest(name: str) -> Located:
    """Read the manifest of the judge `name`, or of a folder given as a path.

    A folder without a manifest.toml that holds a model of the MiniCheck family has the manifest of its published
    relative.  An unknown name, a file that is not TOML, or a wrong key raises `ManifestError`.
    """
    if not name.strip():
        raise ManifestError("the name of the judge is empty", hint=f"judges at hand: {', '.join(judge_names())}")
    folder = models_folder() / name if name in judge_names() else Path(name)
    if (folder / "manifest.toml").is_file():
        return Located(_read(folder / "manifest.toml"), folder)
    if not folder.is_dir():
        raise ManifestError(
            f"there is no judge {name!r}",
            hint=f"judges at hand: {', '.join(judge_names())}; or give a folder that holds a model or a manifest.toml",
        )
    relative = models_folder() / relative_of(folder) / "manifest.toml"
    return Located(adapt(_read(relative), folder), folder)


def _read(path: Path) -> Manifest:
    try:
        manifest = read(Manifest, tomllib.loads(path.read_text(encoding="utf-8")))
        _ = manifest.template
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, BadInput) as error:
        raise ManifestError(f"{path}: {error}", hint="correct the manifest") from error
    return manifest
