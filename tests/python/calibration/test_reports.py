"""Faults that users of other calibration software reported, each with the right value."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from oracle import round_fraction

from isofold.calibration import Calibrator, PlattScaling, brier_decomposition, downsampling_correction

THIRD = round_fraction(Fraction(1, 3), "float64")


def test_ties_are_pooled() -> None:
    """scikit-learn 9432, Spark 38966."""
    curve = Calibrator().fit([0, 1, 1, 2, 3], [0, 0, 1, 0, 1])
    assert curve.predict([0, 1, 1, 2, 3]).tolist() == [0, THIRD, THIRD, THIRD, 1]


def test_predict_on_the_training_scores_is_the_fit() -> None:
    """scikit-learn 4184: fit_transform(X) was not fit(X).transform(X) with ties."""
    curve = Calibrator().fit([1, 1, 2, 2, 3, 3], [1, 0, 0, 0, 1, 1])
    assert curve.predict([1, 2, 3]).tolist() == [0.25, 0.25, 1.0]
    curve = Calibrator().fit([1, 1, 2, 2], [1, 0, 1, 1])
    assert curve.predict([1, 1, 2, 2]).tolist() == [0.5, 0.5, 1.0, 1.0]


def test_a_tie_at_the_left_end_predicts() -> None:
    """scikit-learn 3995: nan."""
    curve = Calibrator().fit([0, 0, 1], [0, 0, 1])
    assert curve.predict([0]).tolist() == [0.0]


def test_subnormal_gaps_between_scores() -> None:
    """scikit-learn 10903, 18639: infinite slopes."""
    x = [0.0, 4.1e-320, 4.4e-314, 1.0]
    curve = Calibrator().fit(x, [0.42, 0.42, 0.44, 0.44])
    points = np.array([*x, 2e-320, 1e-317, 2.2e-314, 4.4e-314, 1e-300, 0.5])
    predictions = curve.predict(points)
    assert np.isfinite(predictions).all()
    assert predictions.min() == 0.42
    assert predictions.max() == 0.44


def test_small_float32_scores_are_different_scores() -> None:
    """scikit-learn merges scores closer than an absolute tolerance: one knot at 1/3."""
    x = np.array([1e-7, 5e-7, 9e-7], np.float32)
    curve = Calibrator().fit(x, [0, 0, 1])
    assert len(curve.knots_x_) == 3
    predictions = curve.predict(x)
    assert predictions.dtype == np.float32
    assert predictions.tolist() == [0.0, 0.0, 1.0]


def test_zero_weights_drop_rows() -> None:
    """scikit-learn 4297: looped for ever."""
    curve = Calibrator().fit([1, 2, 3], [0.0, 0.5, 1.0], [1, 1, 0])
    assert curve.knots_x_.tolist() == [1.0, 2.0]
    assert curve.predict([3]).tolist() == [0.5]


def test_no_quadratic_trap() -> None:
    """Spark 15018: n..1 with 1.5 taken off every second one; the fit is 399.75 at n = 800 (here plus 1)."""
    n = 800
    labels = np.arange(n, 0, -1) - 1.5 * (np.arange(n) % 2)
    assert Calibrator().fit(np.arange(n), (labels + 1) / 1024).knots_y_.tolist() == [400.75 / 1024] * 2
    n = 2**20
    labels = (np.arange(n, 0, -1) - 1.5 * (np.arange(n) % 2) + 1) / 2**21
    started = time.perf_counter()
    curve = Calibrator().fit(np.arange(n), labels)
    assert time.perf_counter() - started < 20
    assert len(curve.knots_x_) == 2


def test_interpolation_between_blocks() -> None:
    """aprender 2155."""
    curve = Calibrator().fit([0, 0.1, 0.2, 0.3], [0, 1, 0, 1])
    assert curve.predict([0.05]).tolist() == [0.25]
    assert curve.predict([0.15]).tolist() == [0.5]
    expected = float(
        Fraction(1, 2) + Fraction(1, 2) * (Fraction(0.25) - Fraction(0.2)) / (Fraction(0.3) - Fraction(0.2))
    )
    assert curve.predict([0.25]).tolist() == [expected]
    assert expected == pytest.approx(0.75, abs=1e-15)


def test_decreasing_interpolation() -> None:
    """pav.rs 1: predict(.5) is 2.5; labels are rates here, so all is divided by 4."""
    curve = Calibrator(increasing=False).fit([0, 1, 2], [0.75, 0.5, 0.25])
    assert curve.predict([0.5]).tolist() == [0.625]


def test_one_distinct_score() -> None:
    """scikit-learn 25763: x = ones(4), y = 0..3, here divided by 4."""
    curve = Calibrator().fit(np.ones(4), np.arange(4) / 4)
    assert curve.knots_x_.tolist() == [1.0]
    assert curve.predict([1, 0, 2]).tolist() == [0.375] * 3


def test_one_column_is_accepted_and_more_are_not() -> None:
    """scikit-learn 15012."""
    column = np.array([[0.0], [1.0]])
    assert Calibrator().fit(column, [0, 1]).predict(column).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"scores must have shape \(n,\) or \(n, 1\), got \(2, 2\)"):
        Calibrator().fit(np.zeros((2, 2)), [0, 1])


def test_platt_does_not_depend_on_the_unit_of_the_scores() -> None:
    """scikit-learn 26913: scores times 1e7 made the fit fail."""
    random = np.random.default_rng(0)
    scores = random.normal(size=1000)
    labels = random.random(1000) < 1 / (1 + np.exp(-2 * scores))
    one = PlattScaling(on_logit=False).fit(scores, labels)
    for factor in (1e7, 1e-7, 1e300, 1e-300):
        other = PlattScaling(on_logit=False).fit(scores * factor, labels)
        np.testing.assert_allclose(other.predict(scores * factor), one.predict(scores), rtol=1e-12)


def test_scores_of_exactly_zero_and_one() -> None:
    """betacal 1: float32 scores of exactly 0 and 1 gave infinities."""
    scores = np.array([0, 0, 0.25, 0.5, 0.75, 1, 1], np.float32)
    labels = [0, 1, 0, 1, 0, 1, 1]
    predictions = PlattScaling().fit(scores, labels).predict(scores)
    assert predictions.dtype == np.float32
    assert np.isfinite(predictions).all()
    assert (np.diff(predictions) >= 0).all()
    assert Calibrator().fit(scores, labels).predict(scores).tolist() == [
        *[np.float32(1 / 3)] * 3,
        *[0.5] * 2,
        *[1.0] * 2,
    ]


def test_scores_at_the_ends_of_the_range() -> None:
    """x = +-1.7e308: the difference overflows, the midpoint is still the midpoint."""
    curve = Calibrator().fit([-1.7e308, 1.7e308], [0, 1])
    assert curve.predict([0.0]).tolist() == [0.5]


def test_weights_at_the_ends_of_the_range() -> None:
    """Sums of weights beyond the largest float."""
    curve = Calibrator().fit([1, 1, 2, 2], [0, 1, 1, 1], [1.7e308, 1.7e308, 1e-300, 5e-324])
    assert curve.predict([1, 2]).tolist() == [0.5, 1.0]


def test_constant_labels() -> None:
    """Either direction: two knots of the same value, bit for bit."""
    for increasing in (True, False):
        curve = Calibrator(increasing=increasing).fit(np.arange(1000), np.full(1000, 0.1))
        assert curve.knots_y_.tolist() == [0.1, 0.1]


def test_analytic_correction() -> None:
    """p / (p + (1 - p) / k) at k = 0.1."""
    corrected = downsampling_correction([0.0386], 0.1)[0]
    exact = Fraction(0.0386) / (Fraction(0.0386) + (1 - Fraction(0.0386)) / Fraction(0.1))
    assert corrected == pytest.approx(float(exact), rel=1e-15)
    assert round(corrected, 4) == 0.0040


def test_corp_terms_of_ten_rows() -> None:
    labels = [0, 0, 0, 1, 0, 0, 1, 0, 1, 1]
    terms = brier_decomposition(labels, np.arange(1, 11) / 10)
    np.testing.assert_allclose(terms, (0.185, 0.0683333333333333, 0.1233333333333333, 0.24), rtol=1e-14)
