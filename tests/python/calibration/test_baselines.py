"""Platt scaling and the downsampling correction."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration import PlattScaling, downsampling_correction


def made_up(n: int = 4000, seed: int = 0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    scores = random.beta(2, 5, n)
    labels = (random.random(n) < scores**1.5).astype(int)
    return scores, labels, random.integers(0, 4, n).astype(float)


def logit(p: Any) -> Any:
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_finds_the_same_parameters(weighted: bool) -> None:
    from sklearn.calibration import _SigmoidCalibration

    scores, labels, weights = made_up()
    sample_weight = weights if weighted else None
    peer = _SigmoidCalibration().fit(logit(scores), labels, sample_weight)
    own = PlattScaling().fit(scores, labels, sample_weight)
    np.testing.assert_allclose(own.predict(scores), peer.predict(logit(scores)), atol=2e-6)
    assert own.slope_ == pytest.approx(-peer.a_, rel=1e-4)
    assert own.intercept_ == pytest.approx(-peer.b_, rel=1e-4)


def gradient(scaling: PlattScaling, scores: Any, labels: Any, weights: Any) -> tuple[float, float]:
    """Of the mean logistic loss with Platt's targets, which must vanish at the optimum."""
    positive, negative = float(np.sum(weights * labels)), float(np.sum(weights * (1 - labels)))
    targets = labels * (positive + 1) / (positive + 2) + (1 - labels) / (negative + 2)
    x = logit(np.clip(scores, 2**-53, 1 - 2**-53))
    residual = weights * (1 / (1 + np.exp(-(scaling.slope_ * x + scaling.intercept_))) - targets)
    return float(np.sum(residual)), float(np.sum(residual * x))


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5]), st.floats(0.5, 50)),
        min_size=2,
        max_size=30,
    )
)
def test_the_optimum_is_reached(rows: list[tuple[float, float, float]]) -> None:
    scores, labels, weights = (np.array(column) for column in zip(*rows, strict=True))
    scaling = PlattScaling().fit(scores, labels, weights)
    if np.unique(logit(np.clip(scores, 2**-53, 1 - 2**-53))).size == 1:
        assert scaling.slope_ == 0.0
        return
    for part in gradient(scaling, scores, labels, weights):
        assert abs(part) < 1e-7 * float(np.sum(weights))


def test_separable_scores_have_a_finite_answer() -> None:
    scaling = PlattScaling().fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    predictions = scaling.predict([0.1, 0.9])
    assert 0 < predictions[0] < 0.5 < predictions[1] < 1


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label: int) -> None:
    predictions = PlattScaling().fit([0.1, 0.2, 0.8], [label] * 3).predict([0.1, 0.5, 0.8])
    # Platt's target for three of a kind is (3 + 1) / (3 + 2), or 1 less that.
    np.testing.assert_allclose(predictions, 0.8 if label else 0.2, rtol=1e-12)


def test_one_distinct_score_gives_the_smoothed_rate() -> None:
    scaling = PlattScaling().fit([0.3] * 4, [0, 1, 1, 1])
    assert scaling.slope_ == 0.0
    # Targets 4/5 three times and 1/3 once.
    np.testing.assert_allclose(scaling.predict([0.3, 0.9]), (3 * 4 / 5 + 1 / 3) / 4, rtol=1e-14)


def test_huge_weights_and_rare_events() -> None:
    scores, labels, _ = made_up()
    assert np.isfinite(PlattScaling().fit(scores, labels, np.full(4000, 1e305)).predict(scores)).all()
    labels = np.zeros(4000)
    labels[scores.argmax()] = 1e-6
    predictions = PlattScaling().fit(scores, labels).predict(scores)
    assert 0 < predictions.mean() < 1e-3


def test_order_of_rows_changes_no_bit() -> None:
    scores, labels, weights = made_up(3001)
    order = np.random.default_rng(2).permutation(3001)
    one = PlattScaling().fit(scores, labels, weights)
    other = PlattScaling().fit(scores[order], labels[order], weights[order])
    assert (one.slope_, one.intercept_) == (other.slope_, other.intercept_)
    kept = weights > 0
    dropped = PlattScaling().fit(scores[kept], labels[kept], weights[kept])
    assert (one.slope_, one.intercept_) == (dropped.slope_, dropped.intercept_)


def test_order_of_tied_rows_changes_no_bit() -> None:
    random = np.random.default_rng(4)
    scores, labels, weights = (
        random.integers(1, 9, 501) / 10,
        random.integers(0, 3, 501) / 2,
        random.random(501),
    )
    order = random.permutation(501)
    one = PlattScaling().fit(scores, labels, weights)
    other = PlattScaling().fit(scores[order], labels[order], weights[order])
    assert (one.slope_, one.intercept_) == (other.slope_, other.intercept_)


def test_a_calibrated_score_is_left_nearly_alone() -> None:
    random = np.random.default_rng(9)
    scores = random.random(200_000)
    scaling = PlattScaling().fit(scores, random.random(200_000) < scores)
    assert scaling.slope_ == pytest.approx(1, abs=0.02)
    assert scaling.intercept_ == pytest.approx(0, abs=0.02)


@given(st.floats(0, 1), st.floats(1e-6, 1))
def test_downsampling_correction(p: float, share: float) -> None:
    exact_p, exact_share = Fraction(p), Fraction(share)
    expected = exact_p / (exact_p + (1 - exact_p) / exact_share)
    found = downsampling_correction([p], share)[0]
    assert abs(Fraction(float(found)) - expected) <= expected * 6 / 2**53 + Fraction(2) ** -1022


def test_downsampling_correction_keeps_ends_dtype_and_order() -> None:
    assert downsampling_correction([0, 1], 0.1).tolist() == [0.0, 1.0]
    narrow = downsampling_correction(np.array([0, 0.5, 1], np.float32), 0.25)
    assert narrow.dtype == np.float32
    assert narrow.tolist() == [0.0, np.float32(0.2), 1.0]
    assert downsampling_correction([0.3], 1.0).tolist() == pytest.approx([0.3], rel=1e-15)
    start = np.random.default_rng(1).random(2000)
    run = [start]
    for _ in range(5):
        run.append(np.nextafter(run[-1], 1))
    for k in (0.1, 0.3, 0.999):
        steps = np.diff([downsampling_correction(points, k) for points in run], axis=0)
        assert (steps >= 0).all()


def test_downsampling_undoes_what_it_describes() -> None:
    """Odds of 1 in 100 among all rows are 10 in 100 once a tenth of the negatives is kept."""
    full, thinned = Fraction(1, 101), Fraction(10, 110)
    assert downsampling_correction([float(thinned)], 0.1)[0] == pytest.approx(float(full), rel=1e-15)
