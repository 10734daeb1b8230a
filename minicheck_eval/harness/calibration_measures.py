"""How well a judge's verdicts and supports agree with people, with intervals from a bootstrap over documents.

Every measure takes weights, a row for each sample: ones give the value itself, counts of drawn clusters a resample.
What is not defined, as an AUC of one label, is NaN inside and None in what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BINS",
    "Estimate",
    "Judged",
    "bins_of",
    "count_clusters",
    "difference",
    "estimates",
    "interval",
    "resamples",
]

Array = NDArray[Any]
BINS = 10
"""Of equal width, as the expected calibration error is usually taken."""
RESAMPLES = 1000
BLOCK = 100
FEWEST_CLUSTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Judged answers with labels, one place for each."""

    supports: Array
    labels: Array
    """What people said: True is supported."""
    passed: Array
    """What the judge said."""
    clusters: Array
    """Numbers from 0; answers of one cluster are about the same document, and not independent."""

    def only(self, chosen: Array) -> Judged:
        """Return some of the answers."""
        _, clusters = np.unique(self.clusters[chosen], return_inverse=True)
        return Judged(
            supports=self.supports[chosen], labels=self.labels[chosen], passed=self.passed[chosen], clusters=clusters
        )

    @property
    def cluster_count(self) -> int:
        """Count the documents."""
        return count_clusters(self.clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A measure with its 95 % interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def is_above_zero(self) -> bool:
        """Tell whether it is above zero beyond noise."""
        return self.low is not None and self.low > 0

    @property
    def is_below_zero(self) -> bool:
        """Tell whether it is below zero beyond noise."""
        return self.high is not None and self.high < 0

    def to_json(self) -> dict[str, float | None]:
        """Return the estimate as JSON-ready values."""
        return {"value": self.value, "low": self.low, "high": self.high}


def count_clusters(clusters: Array) -> int:
    """Count clusters by the number of each answer, from 0."""
    return int(clusters.max()) + 1 if len(clusters) else 0


def estimates(judged: Judged, *, seed: int) -> dict[str, Estimate]:
    """Return every measure by name: agreement of verdicts, order of supports, and supports as probabilities."""
    ones = np.ones((1, len(judged.labels)))
    drawn: dict[str, list[Array]] = {name: [] for name in MEASURES}
    for weights in resamples(judged.clusters, seed=seed):
        for name, values in _measures(judged, weights).items():
            drawn[name].append(values)
    return {
        name: Estimate(value=_number(values[0]), **interval(drawn[name]))
        for name, values in _measures(judged, ones).items()
    }


def resamples(clusters: Array, *, seed: int) -> Iterator[Array]:
    """Draw clusters anew, with replacement, and yield the weights of their answers, some resamples at a time."""
    count = count_clusters(clusters)
    if count < FEWEST_CLUSTERS:
        return
    random = np.random.default_rng(seed)
    for _ in range(RESAMPLES // BLOCK):
        yield random.multinomial(count, np.full(count, 1 / count), size=BLOCK)[:, clusters].astype(float)


def interval(drawn: Sequence[Array]) -> dict[str, float | None]:
    """Return the middle 95 % of what was drawn, as `low` and `high`."""
    values = np.concatenate(drawn) if drawn else np.array([])
    known = values[~np.isnan(values)]
    if not len(known):
        return {"low": None, "high": None}
    low, high = np.quantile(known, [0.025, 0.975])
    return {"low": float(low), "high": float(high)}


def difference(judged: Judged, measure: Callable[[Array], Array], *, seed: int) -> Estimate:
    """Return the value and interval of any measure of weights."""
    value = measure(np.ones((1, len(judged.labels))))[0]
    return Estimate(
        value=_number(value), **interval([measure(weights) for weights in resamples(judged.clusters, seed=seed)])
    )


def balanced_accuracy(labels: Array, passed: Array, weights: Array) -> Array:
    """Return the mean of the shares that are right among the supported and among the unsupported."""
    right = np.where(labels, passed, 1 - passed)
    return (_share(weights, right, labels) + _share(weights, right, ~labels)) / 2


def squared_error(labels: Array, supports: Array, weights: Array) -> Array:
    """Return the Brier score: the mean squared distance of support and label."""
    return _divide(weights @ (supports - labels) ** 2, weights.sum(1))


def calibration_error(labels: Array, supports: Array, weights: Array) -> Array:
    """Return the expected calibration error over bins of equal width."""
    gaps = np.zeros(len(weights))
    for inside in bins_of(supports):
        gaps += np.abs(weights[:, inside] @ (supports[inside] - labels[inside]))
    return _divide(gaps, weights.sum(1))


def bins_of(supports: Array) -> list[Array]:
    """Return the places of the answers in each bin of the support; the last bin has both its ends."""
    bins = np.minimum((supports * BINS).astype(int), BINS - 1)
    return [np.flatnonzero(bins == place) for place in range(BINS)]


def area_under_curve(labels: Array, supports: Array, weights: Array) -> Array:
    """Return the chance that a supported answer has more support than an unsupported one; equal ones count half."""
    order = np.argsort(supports, kind="stable")
    _, starts = np.unique(supports[order], return_index=True)
    ours, others = ((weights * chosen)[:, order] for chosen in (labels, ~labels))
    ours, others = np.add.reduceat(ours, starts, axis=1), np.add.reduceat(others, starts, axis=1)
    below = np.cumsum(others, axis=1) - others / 2
    return _divide((ours * below).sum(1), ours.sum(1) * others.sum(1))


def kappa(labels: Array, passed: Array, weights: Array) -> Array:
    """Return Cohen's kappa: agreement beyond what the two rates would give by chance."""
    total = weights.sum(1)
    said, meant = _divide(weights @ passed, total), _divide(weights @ labels, total)
    agreed = _divide(weights @ (labels == passed), total)
    chance = said * meant + (1 - said) * (1 - meant)
    return _divide(agreed - chance, 1 - chance)


MEASURES: Mapping[str, Callable[[Judged, Array], Array]] = {
    "balanced_accuracy": lambda j, w: balanced_accuracy(j.labels, j.passed, w),
    "accuracy": lambda j, w: _divide(w @ (j.labels == j.passed), w.sum(1)),
    "sensitivity": lambda j, w: _share(w, j.passed, j.labels),
    "specificity": lambda j, w: _share(w, ~j.passed, ~j.labels),
    "base_rate": lambda j, w: _divide(w @ j.labels, w.sum(1)),
    "kappa": lambda j, w: kappa(j.labels, j.passed, w),
    "auc": lambda j, w: area_under_curve(j.labels, j.supports, w),
    "brier": lambda j, w: squared_error(j.labels, j.supports, w),
    "calibration_error": lambda j, w: calibration_error(j.labels, j.supports, w),
}


def _measures(judged: Judged, weights: Array) -> dict[str, Array]:
    return {name: measure(judged, weights) for name, measure in MEASURES.items()}


def _share(weights: Array, right: Array, among: Array) -> Array:
    return _divide(weights @ (right * among), weights @ among)


def _divide(above: Array, below: Array) -> Array:
    # A resample may hold one label alone: what is not defined there is left out of the interval.
    defined = below > 1e-12  # noqa: PLR2004 - 1 - chance may miss zero by a rounding
    shares: Array = np.divide(above, below, out=np.full(len(below), np.nan), where=defined)
    return shares


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
