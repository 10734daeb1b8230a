"""The numbers of a calibration, against scikit-learn and SciPy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from minicheck_eval.calibration import log_odds
from minicheck_eval.harness.calibration_maps import RISE, fit_isotonic, fit_platt, try_map
from minicheck_eval.harness.calibration_measures import (
    BINS,
    Judged,
    area_under_curve,
    balanced_accuracy,
    bins_of,
    difference,
    estimates,
    resamples,
)
from minicheck_eval.harness.calibration_thresholds import best_thresholds, find_threshold, folds


def judged(count, *, seed=0, clusters=None, digits=2, threshold=0.5, skill=1.5):
    """Answers of a judge that is better than chance, with equal supports among them."""
    random = np.random.default_rng(seed)
    labels = random.random(count) < 0.6
    supports = (1 / (1 + np.exp(-(random.normal(size=count) + skill * (labels - 0.5))))).round(digits)
    own = np.arange(count) if clusters is None else np.arange(count) % clusters
    return Judged(supports=supports, labels=labels, passed=supports > threshold, clusters=own)


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_those_of_scikit_learn(seed):
    """Balanced accuracy, kappa, AUC, Brier and the rest are the library's, ties and all."""
    rows = judged(200, seed=seed)
    found = {name: estimate.value for name, estimate in estimates(rows, seed=0).items()}
    expected = {
        "balanced_accuracy": metrics.balanced_accuracy_score(rows.labels, rows.passed),
        "accuracy": metrics.accuracy_score(rows.labels, rows.passed),
        "sensitivity": metrics.recall_score(rows.labels, rows.passed),
        "specificity": metrics.recall_score(rows.labels, rows.passed, pos_label=False),
        "base_rate": rows.labels.mean(),
        "kappa": metrics.cohen_kappa_score(rows.labels, rows.passed),
        "auc": metrics.roc_auc_score(rows.labels, rows.supports),
        "brier": metrics.brier_score_loss(rows.labels, rows.supports),
    }
    assert expected == pytest.approx({name: found[name] for name in expected}, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_library_s_sample_weights(seed):
    """A resample measures what the library measures with the same weights."""
    rows = judged(80, seed=seed, clusters=20)
    weights = next(resamples(rows.clusters, seed=seed))[:5]
    for row in weights:
        assert metrics.balanced_accuracy_score(rows.labels, rows.passed, sample_weight=row) == pytest.approx(
            balanced_accuracy(rows.labels, rows.passed, row[None])[0]
        )
        keep = row > 0
        auc = metrics.roc_auc_score(rows.labels[keep], rows.supports[keep], sample_weight=row[keep])
        assert auc == pytest.approx(area_under_curve(rows.labels, rows.supports, row[None])[0])


def test_calibration_error_by_hand():
    """Two bins: 3 answers at 0.9 of which 2 are supported, 1 at 0.2 that is: (3 · |0.9 - 2/3| + 1 · |0.2 - 1|) / 4."""
    rows = Judged(
        supports=np.array([0.9, 0.9, 0.9, 0.2]),
        labels=np.array([True, True, False, True]),
        passed=np.array([True, True, True, False]),
        clusters=np.arange(4),
    )
    assert (0.7 + 0.8) / 4 == pytest.approx(estimates(rows, seed=0)["calibration_error"].value)


@pytest.mark.parametrize("seed", range(10))
def test_the_calibration_error_is_the_gap_of_scikit_learn_s_curve(seed):
    """Over the library's ten bins, the gaps between what was said and what was right, weighted by their answers."""
    random = np.random.default_rng(seed)
    supports, labels = random.random(150), random.random(150) < 0.6
    rows = Judged(supports=supports, labels=labels, passed=supports > 0.5, clusters=np.arange(150))
    right, said = calibration_curve(labels, supports, n_bins=BINS)
    counts = np.histogram(supports, bins=BINS, range=(0, 1))[0]
    expected = (np.abs(right - said) * counts[counts > 0]).sum() / 150
    assert expected == pytest.approx(estimates(rows, seed=0)["calibration_error"].value, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_each_support_is_in_one_bin(supports):
    """The bins take 0 and 1 in, and nothing twice."""
    bins = bins_of(np.array(supports))
    assert BINS == len(bins)
    assert list(range(len(supports))) == sorted(place for inside in bins for place in inside)


def test_what_is_not_defined_is_none():
    """With one label there is no AUC, no specificity and no kappa to speak of; no NaN comes out."""
    rows = judged(30)
    found = estimates(rows.only(rows.labels), seed=0)
    assert {"auc", "specificity", "balanced_accuracy"} <= {name for name, e in found.items() if e.value is None}
    assert all(e.value is None or np.isfinite(e.value) for e in found.values())
    assert 1.0 == found["base_rate"].value


def test_one_document_has_no_interval():
    """Answers about one document say nothing about other documents."""
    found = estimates(judged(30, clusters=1), seed=0)["accuracy"]
    assert (None, None) == (found.low, found.high)


def test_intervals_are_wider_over_documents_than_over_answers():
    """Answers that are repeated forty times each are not forty times the evidence."""
    one = judged(25, seed=3)
    many = Judged(**{name: np.tile(getattr(one, name), 40) for name in ("supports", "labels", "passed", "clusters")})
    alone, naive = estimates(one, seed=1)["accuracy"], estimates(many, seed=1)["accuracy"]
    assert (alone.low, alone.high) == pytest.approx((naive.low, naive.high))
    loose = Judged(supports=many.supports, labels=many.labels, passed=many.passed, clusters=np.arange(1000))
    narrow = estimates(loose, seed=1)["accuracy"]
    assert alone.high - alone.low > 3 * (narrow.high - narrow.low)


def test_the_bootstrap_agrees_with_the_standard_error_of_a_mean():
    """Of independent answers the interval of the accuracy is 1.96 standard errors to each side."""
    rows = judged(400, seed=5)
    found = estimates(rows, seed=2)["accuracy"]
    right = (rows.labels == rows.passed).astype(float)
    assert 2 * 1.96 * right.std() / 20 == pytest.approx(found.high - found.low, rel=0.15)


def test_the_same_seed_gives_the_same_intervals():
    """Nothing depends on a global generator."""
    rows = judged(50)
    assert estimates(rows, seed=4) == estimates(rows, seed=4)
    assert estimates(rows, seed=4) != estimates(rows, seed=5)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=2, max_size=40), st.integers(0, 12))
def test_the_best_threshold_is_one_that_no_other_beats(pairs, current):
    """Every cut between supports is tried by hand; none is better, and of equal ones none is nearer to the current."""
    supports, labels = np.array([s / 12 for s, _ in pairs]), np.array([label for _, label in pairs])
    current = current / 12
    rows = Judged(supports=supports, labels=labels, passed=supports > current, clusters=np.arange(len(pairs)))
    best = best_thresholds(rows, np.ones((1, len(pairs))), current)[0]
    if labels.all() or not labels.any():
        assert current == best
        return
    distinct = np.unique(supports)
    tried = [current, *((distinct[1:] + distinct[:-1]) / 2)]
    scores = [round(metrics.balanced_accuracy_score(labels, supports > one), 9) for one in tried]
    assert max(scores) == round(metrics.balanced_accuracy_score(labels, supports > best), 9)
    nearest = min(abs(one - current) for one, score in zip(tried, scores, strict=True) if score == max(scores))
    assert nearest == pytest.approx(abs(best - current))


def test_a_threshold_that_is_far_off_is_beaten_beyond_noise():
    """A judge whose supports are all high is better with a higher threshold, on held-out documents too."""
    rows = judged(300, threshold=0.05, skill=3.0)
    found = find_threshold(rows, 0.05, seed=0)
    assert found.is_better
    assert 0.05 < found.low <= found.best <= found.high
    assert found.then.value - found.now.value == pytest.approx(found.gain.value)


def test_a_good_threshold_is_not_beaten_by_noise():
    """Of supports that say nothing no threshold is better than another, whatever fits the sample best."""
    better = [find_threshold(judged(120, seed=seed, skill=0.0), 0.5, seed=seed).is_better for seed in range(10)]
    assert sum(better) <= 1


@pytest.mark.parametrize("clusters", [2, 3, 7, 40])
def test_folds_keep_documents_whole(clusters):
    """No document is in two folds, and no fold is empty."""
    own = np.arange(200) % clusters
    for part in folds(own, seed=0):
        assert all(1 == len(set(part[own == one])) for one in range(clusters))
        assert min(5, clusters) == len(set(part))


@pytest.mark.parametrize("rows", [judged(20, clusters=1), judged(20).only(judged(20).labels)])
def test_no_threshold_is_looked_for_where_none_can_be_tried(rows):
    """One document, or one label, gives nothing to choose on."""
    assert None is find_threshold(rows, 0.5, seed=0)


@pytest.mark.parametrize("seed", range(3))
def test_isotonic_maps_equal_scikit_learn_s(seed):
    """The curve is the library's at every support and between them, but for the rise that leaves no stretch level."""
    rows = judged(150, seed=seed)
    oracle = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(rows.supports, rows.labels)
    fitted = fit_isotonic(rows.supports, rows.labels)
    points = np.linspace(0, 1, 301)
    assert oracle.predict(points) == pytest.approx([fitted(float(one)) for one in points], abs=RISE)


@pytest.mark.parametrize("seed", range(3))
def test_platt_maps_equal_a_logistic_regression(seed):
    """On Platt's targets, given as weights of both labels, the curve is that of an unpenalised regression."""
    rows = judged(150, seed=seed)
    odds = np.array([[log_odds(float(one))] for one in rows.supports])
    positives, negatives = rows.labels.sum(), (~rows.labels).sum()
    targets = np.where(rows.labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    oracle = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(
        np.concatenate([odds, odds]),
        np.repeat([1, 0], len(odds)),
        sample_weight=np.concatenate([targets, 1 - targets]),
    )
    fitted = fit_platt(rows.supports, rows.labels)
    assert (oracle.coef_[0, 0], oracle.intercept_[0]) == pytest.approx((fitted.slope, fitted.intercept), rel=1e-3)


def test_a_perfect_judge_does_not_make_the_curve_a_step():
    """Platt's targets keep the slope finite where a threshold separates the labels."""
    fitted = fit_platt(np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True]))
    assert 0.15 < fitted(0.1) < fitted(0.9) < 0.85


@pytest.mark.parametrize("fit", [fit_platt, fit_isotonic])
def test_no_map_of_one_label(fit):
    """What was never seen has no probability."""
    assert None is fit(np.array([0.1, 0.9]), np.array([True, True]))


@pytest.mark.parametrize("fit", [fit_platt, fit_isotonic])
@pytest.mark.parametrize("supports", [[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]])
def test_no_curve_falls_or_is_level(fit, supports):
    """A judge whose support runs against the labels, or says nothing, gets no map: one would fail all answers alike."""
    assert None is fit(np.array(supports), np.array([True, True, False, False]))


@pytest.mark.parametrize("fit", [fit_platt, fit_isotonic])
@pytest.mark.parametrize("threshold", [0.05, 0.37, 0.5, 0.95])
def test_a_map_keeps_every_verdict(fit, threshold):
    """A mapped support is above the mapped threshold exactly where the support was above the threshold."""
    for seed in range(20):
        rows = judged(100, seed=seed, skill=1.0)
        fitted = fit(rows.supports, rows.labels)
        mapped = [fitted(float(support)) > fitted(threshold) for support in rows.supports]
        assert (rows.supports > threshold).tolist() == mapped


@pytest.mark.parametrize("seed", range(20))
def test_supports_of_0_and_1_have_one_threshold(seed):
    """Where every cut gives the same verdicts nothing is gained or lost, not even a rounding."""
    rows = judged(40, seed=seed)
    supports = rows.passed.astype(float)
    found = find_threshold(replace(rows, supports=supports), 0.5, seed=seed)
    assert (0.5, 0.0, 0.0, 0.0) == (found.best, found.gain.value, found.gain.low, found.gain.high)


@pytest.mark.parametrize("seed", range(5))
def test_a_map_of_yes_and_no_is_how_often_each_is_right(seed):
    """Of a judge without probabilities a map tells two: that of its yes, and that of its no."""
    rows = judged(200, seed=seed)
    supports = rows.passed.astype(float)
    shares = [rows.labels[~rows.passed].mean(), rows.labels[rows.passed].mean()]
    for fit in (fit_platt, fit_isotonic):
        fitted = fit(supports, rows.labels)
        assert shares == pytest.approx([fitted(0.0), fitted(1.0)], abs=0.01)


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_map_helps_a_judge_that_is_sure_too_often(kind):
    """Supports pushed to 0 and 1 come nearer to the labels, on held-out documents, beyond noise."""
    rows = judged(400, skill=1.0, digits=6)
    odds = 4 * np.log(rows.supports / (1 - rows.supports))
    sure = Judged(supports=1 / (1 + np.exp(-odds)), labels=rows.labels, passed=rows.passed, clusters=rows.clusters)
    assert try_map(sure, kind, seed=0).is_better


def test_a_difference_is_paired():
    """A measure that is constant has an interval without width."""
    found = difference(judged(40), lambda weights: np.zeros(len(weights)), seed=0)
    assert (0.0, 0.0, 0.0) == (found.value, found.low, found.high)
