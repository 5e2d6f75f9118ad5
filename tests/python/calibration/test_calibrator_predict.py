"""Prediction: the exact interpolation, rounded once; monotone over neighbouring floats."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from isofold.calibration import Calibrator

Array = NDArray[Any]

finite = st.floats(allow_nan=False, allow_infinity=False)
nearby = st.floats(0.0, 1.0)
knot_rows = st.one_of(
    st.lists(st.tuples(finite, st.floats(0, 1)), min_size=1, max_size=12),
    st.lists(st.tuples(nearby, st.floats(0, 1)), min_size=1, max_size=12),
    st.lists(
        st.tuples(st.integers(0, 20).map(lambda k: k / 10), st.sampled_from([0, 0.5, 1])),
        min_size=1,
        max_size=30,
    ),
)


def fitted(rows: list[tuple[float, float]], increasing: bool = True) -> Calibrator:
    scores, labels = zip(*rows, strict=True)
    return Calibrator(increasing=increasing).fit(scores, labels)


def points_around(curve: Calibrator, dtype: type[np.floating[Any]]) -> Array:
    """Floats of the dtype at, beside and between the knots."""
    limits = np.finfo(dtype)
    with np.errstate(over="ignore"):
        knots = np.clip(curve.knots_x_, float(limits.min), float(limits.max)).astype(dtype)
    between = [
        dtype(float((Fraction(float(a)) * (3 - k) + Fraction(float(b)) * k) / 3))
        for a, b in itertools.pairwise(knots)
        for k in (1, 2)
    ]
    around = [np.nextafter(knots, dtype(limits.min)), knots, np.nextafter(knots, dtype(limits.max))]
    return np.unique(np.concatenate([*around, np.array(between, dtype)]))


@given(knot_rows, st.booleans(), st.sampled_from([np.float16, np.float32, np.float64]))
def test_prediction_is_the_exact_interpolation_rounded_once(
    rows: list[tuple[float, float]], increasing: bool, dtype: type[np.floating[Any]]
) -> None:
    curve = fitted(rows, increasing)
    points = points_around(curve, dtype)
    x, y = curve.knots_x_.tolist(), curve.knots_y_.tolist()
    expected = [oracle.interpolate(x, y, float(point), np.dtype(dtype).name) for point in points]
    assert oracle.same_bits(curve.predict(points), np.array(expected, dtype))


def check_steps(predictions: Array, increasing: bool) -> None:
    """Compares bits: rates are not negative, and the bits of such floats are ordered as they are."""
    bits = predictions.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[predictions.dtype.itemsize]).astype(
        object
    )
    steps = bits[1:] - bits[:-1]
    assert (steps >= 0).all() if increasing else (steps <= 0).all()


@given(knot_rows, st.booleans(), st.sampled_from([np.float32, np.float64]), st.data())
def test_prediction_is_monotone_over_neighbouring_floats(
    rows: list[tuple[float, float]], increasing: bool, dtype: type[np.floating[Any]], data: st.DataObject
) -> None:
    curve = fitted(rows, increasing)
    start = data.draw(st.sampled_from(points_around(curve, dtype).tolist()))
    run = [dtype(start)]
    with np.errstate(over="ignore"):
        for _ in range(20):
            run.append(np.nextafter(run[-1], dtype(np.inf)))
    run_array = np.array([point for point in run if np.isfinite(point)], dtype)
    check_steps(curve.predict(run_array), increasing)
    check_steps(curve.predict(points_around(curve, dtype)), increasing)


@pytest.mark.parametrize("increasing", [True, False])
def test_prediction_is_monotone_at_scale(increasing: bool) -> None:
    random = np.random.default_rng(3)
    scores = random.random(20_000)
    labels = random.random(20_000) < (scores if increasing else 1 - scores)
    curve = Calibrator(increasing=increasing).fit(scores, labels)
    points = np.sort(
        np.concatenate([random.random(200_000), curve.knots_x_, np.nextafter(curve.knots_x_, 2)])
    )
    predictions = curve.predict(points)
    check_steps(predictions, increasing)
    assert predictions.min() >= curve.knots_y_.min()
    assert predictions.max() <= curve.knots_y_.max()


@given(knot_rows, finite)
def test_prediction_stays_between_its_knots_and_is_constant_outside(
    rows: list[tuple[float, float]], point: float
) -> None:
    curve = fitted(rows)
    rate = curve.predict([point])[0]
    right = int(np.searchsorted(curve.knots_x_, point))
    low = curve.knots_y_[max(right - 1, 0)]
    high = curve.knots_y_[min(right, len(curve.knots_y_) - 1)]
    assert low <= rate <= high
    assert curve.predict([-1.7976931348623157e308])[0] == curve.knots_y_[0]
    assert curve.predict([1.7976931348623157e308])[0] == curve.knots_y_[-1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_prediction_has_the_dtype_of_the_scores(dtype: type[np.floating[Any]]) -> None:
    curve = Calibrator().fit([0, 3], [0, 1])
    rates = curve.predict(np.array([1], dtype))
    assert rates.dtype == dtype
    assert rates[0] == oracle.round_fraction(Fraction(1, 3), np.dtype(dtype).name)


def test_other_numbers_give_float64() -> None:
    curve = Calibrator().fit([0, 4], [0, 1])
    for scores in ([1], np.array([1], np.int8), np.array([True]), np.array([[1]])):
        rates = curve.predict(scores)
        assert rates.dtype == np.float64
        assert rates.tolist() == [0.25]
    assert curve.predict([]).shape == (0,)


def test_predict_needs_a_curve() -> None:
    with pytest.raises(RuntimeError, match="call fit or load first"):
        Calibrator().predict([0.5])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_predict_names_the_position_of_a_bad_score(bad: float) -> None:
    curve = Calibrator().fit([0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"scores\[2\] is -?(nan|inf): scores must be finite"):
        curve.predict([0.0, 0.5, bad])
    with pytest.raises(ValueError, match=r"scores must have shape \(n,\) or \(n, 1\), got \(1, 2\)"):
        curve.predict([[0.1, 0.2]])


def test_pickle_keeps_every_bit() -> None:
    curve = Calibrator(floor=0.01).fit(np.linspace(0, 1, 50), np.arange(50) % 3 > 0)
    curve.score_name = "score"
    copy = pickle.loads(pickle.dumps(curve))
    assert copy.to_json() == curve.to_json()
