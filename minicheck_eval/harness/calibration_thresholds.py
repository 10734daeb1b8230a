"""The best threshold for a judge, and whether it is better than the one it has by more than noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minicheck_eval.harness.calibration_measures import (
    Array,
    Estimate,
    Judged,
    balanced_accuracy,
    count_clusters,
    difference,
    interval,
    resamples,
)

__all__ = ["ThresholdFinding", "best_thresholds", "find_threshold", "folds"]

FOLDS = 5
PARTITIONS = 10
"""Ways to cut the documents into folds; what comes of it is averaged, so that no single cut decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdFinding:
    """What another threshold would bring."""

    current: float
    best: float
    """Over all answers; of thresholds that are equally good the one nearest to the current."""
    low: float | None
    """The 95 % interval of the best, over resampled documents."""
    high: float | None
    now: Estimate
    """Balanced accuracy at the current threshold."""
    then: Estimate
    """Balanced accuracy on answers about documents that the threshold was not chosen on."""
    gain: Estimate
    """The difference of the two, answer by answer."""

    @property
    def is_better(self) -> bool:
        """Tell whether another threshold beats the current one beyond noise."""
        return self.gain.is_above_zero

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON-ready values."""
        return {
            "current": self.current,
            "best": {"value": self.best, "low": self.low, "high": self.high},
            "balanced_accuracy": self.now.to_json(),
            "cross_validated": self.then.to_json(),
            "gain": self.gain.to_json(),
            "is_better": self.is_better,
        }


def find_threshold(judged: Judged, current: float, *, seed: int) -> ThresholdFinding | None:
    """Choose a threshold on some documents and try it on the others; None without both labels on several documents."""
    parts = folds(judged.clusters, seed=seed)
    if parts is None or judged.labels.all() or not judged.labels.any():
        return None
    ones = np.ones((1, len(judged.labels)))
    passed = np.zeros(len(judged.labels))
    for part in parts:
        held_out = part[None] == np.unique(part)[:, None]
        chosen = best_thresholds(judged, (~held_out).astype(float), current)
        passed += judged.supports > chosen[part]
    # Counts are divided once: a sum of tenths is no whole, and its rounding would be a gain.
    passed /= len(parts)
    now = (judged.supports > current).astype(float)
    drawn = [best_thresholds(judged, weights, current) for weights in resamples(judged.clusters, seed=seed)]

    def accuracy(verdicts: Array) -> Estimate:
        return difference(judged, lambda w: balanced_accuracy(judged.labels, verdicts, w), seed=seed)

    def gained(weights: Array) -> Array:
        then_and_now = (balanced_accuracy(judged.labels, verdicts, weights) for verdicts in (passed, now))
        return np.subtract(*then_and_now)

    return ThresholdFinding(
        current=current,
        best=float(best_thresholds(judged, ones, current)[0]),
        **interval(drawn),
        now=accuracy(now),
        then=accuracy(passed),
        gain=difference(judged, gained, seed=seed),
    )


def best_thresholds(judged: Judged, weights: Array, current: float) -> Array:
    """Return the threshold with the highest balanced accuracy for each row of weights.

    Of those that are equally good it is the one nearest to `current`, which is itself among them; it stays where one
    label is missing.
    """
    order = np.argsort(judged.supports, kind="stable")
    distinct = np.unique(judged.supports)
    between = (distinct[1:] + distinct[:-1]) / 2
    candidates = np.concatenate([[current], between[np.argsort(np.abs(between - current), kind="stable")]])
    below = np.searchsorted(judged.supports[order], candidates, side="right")
    ours, others = (_cumulated((weights * chosen)[:, order]) for chosen in (judged.labels, ~judged.labels))
    positives, negatives = ours[:, -1:], others[:, -1:]
    both = (positives > 0) & (negatives > 0)
    # Sensitivity + specificity, over the counts that are not zero; rounded, so that equal ones are equal.
    scores = (positives - ours[:, below]) / np.maximum(positives, 1) + others[:, below] / np.maximum(negatives, 1)
    best: Array = candidates[np.argmax(np.where(both, scores.round(12), 0), axis=1)]
    return best


def folds(clusters: Array, *, seed: int) -> list[Array] | None:
    """Cut the documents into folds in several ways; return the fold of each answer, or None for a single document."""
    count = count_clusters(clusters)
    parts = min(FOLDS, count)
    if parts < 2:  # noqa: PLR2004 - one fold leaves nothing to choose on
        return None
    random = np.random.default_rng(seed)
    return [random.permutation(np.arange(count) % parts)[clusters] for _ in range(PARTITIONS)]


def _cumulated(values: Array) -> Array:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
