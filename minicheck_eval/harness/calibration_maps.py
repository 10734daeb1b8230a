"""Fits maps from support to probability, and tells on held-out documents whether they come nearer to the labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit

from minicheck_eval.calibration import IsotonicMap, PlattMap, log_odds
from minicheck_eval.harness.calibration_measures import (
    Array,
    Estimate,
    Judged,
    calibration_error,
    difference,
    squared_error,
)
from minicheck_eval.harness.calibration_thresholds import folds

__all__ = ["FITS", "MapFinding", "fit_isotonic", "fit_platt", "try_map"]

SupportMap = PlattMap | IsotonicMap
LEAST_SLOPE = 1e-6
RISE = 1e-4
"""By how much a rising curve is drawn to the diagonal: too little to see, and no stretch of it is level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFinding:
    """What a map brings on documents that it was not fitted on."""

    brier: Estimate
    calibration_error: Estimate
    gain: Estimate
    """How much smaller the Brier score is than without the map."""

    @property
    def is_better(self) -> bool:
        """Tell whether the map beats the judge's own supports beyond noise."""
        return self.gain.is_above_zero

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON-ready values."""
        return {
            "brier": self.brier.to_json(),
            "calibration_error": self.calibration_error.to_json(),
            "gain": self.gain.to_json(),
            "is_better": self.is_better,
        }


def fit_platt(supports: Array, labels: Array) -> PlattMap | None:
    """Fit a logistic curve over the log-odds, with Platt's targets; None where more support does not mean more.

    The targets are pulled in from 0 and 1 as Platt has it (1999), so that labels which a threshold separates without
    a fault do not make the curve a step.
    """
    positives, negatives = int(labels.sum()), int((~labels).sum())
    if not positives or not negatives or supports.min() == supports.max():
        return None
    targets = np.where(labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    odds = np.array([log_odds(float(support)) for support in supports])

    def loss(parameters: Array) -> tuple[float, Array]:
        z = parameters[0] * odds + parameters[1]
        slopes = expit(z) - targets
        return float((np.logaddexp(0, z) - targets * z).sum()), np.array([slopes @ odds, slopes.sum()])

    found = minimize(loss, x0=np.array([1.0, 0.0]), jac=True, method="BFGS", options={"gtol": 1e-8})
    slope, intercept = map(float, found.x)
    return PlattMap(slope=slope, intercept=intercept) if slope > LEAST_SLOPE else None


def fit_isotonic(supports: Array, labels: Array) -> IsotonicMap | None:
    """Fit the rising curve with the least squared error; None where more support does not mean more.

    It rises from 0 to 1 without a level stretch, so that supports keep their order and verdicts do not change.
    """
    points, places = np.unique(supports, return_inverse=True)
    counts = np.bincount(places)
    shares = np.bincount(places, weights=labels) / counts
    heights = isotonic_regression(shares, weights=counts).x
    if heights[0] == heights[-1]:
        return None
    ends = np.union1d(points, [0.0, 1.0])
    points, heights = ends, np.interp(ends, points, heights)
    # Inside a level stretch only its two ends say something.
    inside = np.concatenate([[False], (heights[1:-1] == heights[:-2]) & (heights[1:-1] == heights[2:]), [False]])
    points, heights = points[~inside], heights[~inside]
    rising = np.clip(heights + RISE * (points - heights), 0, 1)
    return IsotonicMap(supports=points.tolist(), probabilities=rising.tolist())


FITS: Mapping[str, Callable[[Array, Array], SupportMap | None]] = {"platt": fit_platt, "isotonic": fit_isotonic}


def try_map(judged: Judged, kind: str, *, seed: int) -> MapFinding | None:
    """Fit on some documents and try on the others; None where no map can be fitted."""
    parts = folds(judged.clusters, seed=seed)
    if parts is None:
        return None
    mapped = np.empty(len(judged.labels))
    for fold in np.unique(parts[0]):
        held_out = parts[0] == fold
        fitted = FITS[kind](judged.supports[~held_out], judged.labels[~held_out])
        if fitted is None:
            return None
        mapped[held_out] = [fitted(float(support)) for support in judged.supports[held_out]]
    labels = judged.labels

    def gained(weights: Array) -> Array:
        return squared_error(labels, judged.supports, weights) - squared_error(labels, mapped, weights)

    return MapFinding(
        brier=difference(judged, lambda w: squared_error(labels, mapped, w), seed=seed),
        calibration_error=difference(judged, lambda w: calibration_error(labels, mapped, w), seed=seed),
        gain=difference(judged, gained, seed=seed),
    )
