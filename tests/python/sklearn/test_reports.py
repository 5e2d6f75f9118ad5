"""Faults that users of calibration software met, each with its right value."""

from __future__ import annotations

import numpy as np
import oracle
import pandas as pd
import pytest

from isofold.sklearn import IsotonicRegression, isotonic_regression


def _third(numerator: int) -> float:
    return oracle.round_ratio(numerator, 3, "float64")


def test_ties_keep_their_weight() -> None:
    fitted = IsotonicRegression().fit([0, 1, 1, 2, 3], [0, 0, 1, 0, 1])
    third = _third(1)
    assert fitted.predict([0, 1, 1, 2, 3]).tolist() == [0, third, third, third, 1]


def test_fit_transform_is_fit_then_transform() -> None:
    x, y = [1, 1, 2, 2, 3, 3, 3], [5, 1, 2, 0, 4, 7, 1]
    for increasing in (True, False):
        both = IsotonicRegression(increasing=increasing).fit_transform(x, y)
        apart = IsotonicRegression(increasing=increasing).fit(x, y).transform(x)
        assert oracle.same_bits(both, apart)


def test_tied_lowest_score_is_inside() -> None:
    assert IsotonicRegression().fit([0, 0, 1], [0, 0, 1]).predict([0]).tolist() == [0]


def test_subnormal_gaps_give_no_infinite_slope() -> None:
    x, y = np.array([0, 4.1e-320, 4.4e-314, 1]), np.array([0.42, 0.42, 0.44, 0.44])
    fitted = IsotonicRegression().fit(x, y)
    points = np.concatenate((x, [2.1e-319, 5.4e-316, 1e-310, 4.4e-314, 1e-300, 1e-10, 0.5, 5e-324]))
    predicted = fitted.predict(points)
    assert np.isfinite(predicted).all()
    assert (predicted >= 0.42).all()
    assert (predicted <= 0.44).all()


def test_small_float32_scores_stay_apart() -> None:
    x = np.array([1e-7, 5e-7, 9e-7], dtype=np.float32)
    fitted = IsotonicRegression().fit(x, [0, 0, 1])
    assert fitted.predict(x).tolist() == [0, 0, 1]
    assert fitted.X_thresholds_.tolist() == x.tolist()


def test_small_float32_scores_merge_when_asked_to() -> None:
    x = np.array([1e-7, 5e-7, 9e-7], dtype=np.float32)
    merged = IsotonicRegression(merge_tolerance=1e-6).fit(x, [0, 0, 1])
    third = float(np.float32(1) / np.float32(3))
    assert merged.predict(x).tolist() == [third] * 3


def test_zero_weights_are_removal() -> None:
    x = np.linspace(-3, 3, 50)
    rng = np.random.default_rng(42)
    y, w = x + rng.random(50), rng.random(50)
    w[5:8] = 0
    weighted = IsotonicRegression().fit(x, y, sample_weight=w)
    removed = IsotonicRegression().fit(x[w > 0], y[w > 0], sample_weight=w[w > 0])
    assert oracle.same_bits(weighted.predict(x), removed.predict(x))
    clipped = IsotonicRegression(out_of_bounds="clip").fit([1, 2, 3], [1, 2, 3], sample_weight=[1, 1, 0])
    assert clipped.predict([3]).tolist() == [2]
    assert clipped.X_max_ == 2


@pytest.mark.parametrize("n", [800, 100_000])
def test_falling_steps_do_not_stall(n: int) -> None:
    y = np.arange(n, 0, -1, dtype=np.float64)
    y[1::2] -= 1.5
    fitted = IsotonicRegression().fit(np.arange(n), y)
    assert fitted.y_thresholds_.tolist() == [(n + 1) / 2 - 0.75] * 2
    if n == 800:
        assert fitted.y_thresholds_[0] == 399.75


def test_predictions_interpolate() -> None:
    fitted = IsotonicRegression().fit([0, 0.1, 0.2, 0.3], [0, 1, 0, 1])
    assert fitted.predict([0.05, 0.15, 0.25]).tolist() == [0.25, 0.5, 0.75]


def test_decreasing_interpolates() -> None:
    fitted = IsotonicRegression(increasing=False).fit([0, 1, 2], [3, 2, 1])
    assert fitted.predict([0.5]).tolist() == [2.5]


def test_values_come_in_the_order_of_the_input() -> None:
    y = [0.52, 0.58, -1.91, -1.12, -1.04]
    mean = oracle.round_fraction(sum(map(oracle.Fraction, y), oracle.Fraction(0)) / 5, "float64")
    assert isotonic_regression(y).tolist() == [mean] * 5
    assert mean == pytest.approx(-0.594)
    shuffled = IsotonicRegression().fit([2, 0, 1], [30, 10, 20])
    assert shuffled.predict([2, 0, 1]).tolist() == [30, 10, 20]


def test_one_distinct_score() -> None:
    fitted = IsotonicRegression().fit(np.ones(4), np.arange(4))
    assert fitted.predict([1]).tolist() == [1.5]
    fitted.set_output(transform="pandas")
    frame = fitted.transform([1, 1])
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_numpy().tolist() == [[1.5], [1.5]]
    assert fitted.X_thresholds_.tolist() == [1]


def test_one_column_is_accepted_and_more_are_not() -> None:
    x, y = np.arange(4.0), [1.0, 3.0, 2.0, 4.0]
    column = IsotonicRegression().fit(x.reshape(-1, 1), y)
    assert column.predict(x.reshape(-1, 1)).tolist() == IsotonicRegression().fit(x, y).predict(x).tolist()
    for wide in (np.c_[x, x], np.zeros((4, 0)), np.zeros((4, 1, 1))):
        with pytest.raises(ValueError, match=r"1d array or 2d array with 1 feature|0 feature|dim 3"):
            IsotonicRegression().fit(wide, y)


def test_float32_scores_of_exactly_zero_and_one() -> None:
    x = np.array([0, 0, 0.5, 1, 1], dtype=np.float32)
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, [0, 1, 1, 1, 1])
    assert fitted.predict(x).tolist() == [0.5, 0.5, 1, 1, 1]
    assert fitted.predict(np.array([-1, 2], dtype=np.float32)).tolist() == [0.5, 1]


def test_the_whole_range_of_doubles() -> None:
    fitted = IsotonicRegression().fit([-1.7e308, 1.7e308], [1.5e308, 1.7e308])
    assert fitted.predict([0]).tolist() == [1.6e308]
    same = IsotonicRegression().fit([1, 1], [1.7e308, 1.6e308])
    pair = oracle.round_fraction((oracle.Fraction(1.7e308) + oracle.Fraction(1.6e308)) / 2, "float64")
    assert same.predict([1]).tolist() == [pair]


def test_constant_labels_have_a_documented_direction() -> None:
    fitted = IsotonicRegression(increasing="auto").fit([1, 2, 3], [2, 2, 2])
    assert fitted.increasing_ is True
    text = " ".join((IsotonicRegression.__doc__ or "").split())
    assert "increasing where there is none (constant scores or labels, or a single sample)" in text


def test_ties_in_a_decreasing_curve() -> None:
    fitted = IsotonicRegression(increasing=False).fit([0, 0, 1, 1, 2], [4, 4, 5, 5, 3])
    assert fitted.X_thresholds_.tolist() == [0, 1, 2]
    assert fitted.y_thresholds_.tolist() == [4.5, 4.5, 3]


def test_fifty_thousand_skewed_points() -> None:
    rng = np.random.default_rng(4)
    x = rng.beta(0.3, 9, 50_000)
    y = (rng.random(50_000) < x).astype(float)
    fitted = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    predicted = fitted.predict(np.sort(x))
    assert (np.diff(predicted) >= 0).all()
    assert predicted.mean() == pytest.approx(y.mean(), rel=1e-12)
