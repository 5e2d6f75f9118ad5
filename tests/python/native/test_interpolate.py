"""Interpolation: the exact value, rounded once, and so monotone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from isofold import _native

Array = NDArray[Any]
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NARROW = st.integers(-64, 64).map(lambda i: i / 16)


@st.composite
def curves(draw: st.DrawFn) -> tuple[Array, Array]:
    """Non-decreasing knots, of all magnitudes or on a coarse grid."""
    numbers = draw(st.sampled_from([FINITE, NARROW, st.floats(0, 1), st.floats(-1e-307, 1e-307)]))
    x = draw(st.lists(numbers, min_size=1, max_size=6, unique=True).map(sorted))
    y = draw(st.lists(numbers, min_size=len(x), max_size=len(x)).map(sorted))
    # 0.0 and -0.0 are one score.
    keep = [i for i in range(len(x)) if i == 0 or x[i] > x[i - 1]]
    return np.array(x)[keep], np.array(y)[keep]


@st.composite
def points_of(draw: st.DrawFn, x: Array) -> Array:
    dtype = draw(st.sampled_from(["float16", "float32", "float64"]))
    inside = st.floats(x[0], x[-1])
    values = draw(
        st.lists(st.one_of(inside, FINITE, st.sampled_from(x.tolist()), NARROW), min_size=1, max_size=8)
    )
    with np.errstate(over="ignore"):
        points: Array = np.array(values).astype(dtype)
    return points[np.isfinite(points)]


@given(curves(), st.data(), st.sampled_from(["float16", "float32", "float64"]))
def test_exact_and_rounded_once(curve: tuple[Array, Array], data: st.DataObject, out_dtype: str) -> None:
    x, y = curve
    points = data.draw(points_of(x))
    values = _native.interpolate(x, y, points, out_dtype)
    expected = [oracle.interpolate(x.tolist(), y.tolist(), float(point), out_dtype) for point in points]
    with np.errstate(over="ignore"):
        assert oracle.same_bits(
            values, np.array(expected, dtype=np.float64).astype(out_dtype) + np.array(0, out_dtype)
        )


@given(curves(), st.data())
def test_monotone_over_neighbouring_floats(curve: tuple[Array, Array], data: st.DataObject) -> None:
    x, y = curve
    dtype = data.draw(st.sampled_from(["float16", "float32", "float64"]))
    start = np.array(data.draw(st.one_of(st.floats(x[0], x[-1]), st.sampled_from(x.tolist()))))
    with np.errstate(over="ignore"):
        point = start.astype(dtype)
        points = [point]
        for _ in range(60):
            points.append(np.nextafter(points[-1], np.array(np.inf, dtype=dtype)))
    values = _native.interpolate(x, y, np.array(points)[np.isfinite(points)], "float64")
    assert (values[1:] >= values[:-1]).all()
    assert (values >= y[0]).all()
    assert (values <= y[-1]).all()


def test_at_the_knots_and_outside() -> None:
    x, y = np.array([0.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.7])
    assert _native.interpolate(x, y, x).tolist() == y.tolist()
    assert _native.interpolate(x, y, np.array([-1e300, -np.inf, 4.0, np.inf])).tolist() == [
        0.1,
        0.1,
        0.7,
        0.7,
    ]
    assert np.isnan(_native.interpolate(x, y, np.array([np.nan, 1.0]))).tolist() == [True, False]
    assert _native.interpolate(x, y, np.array([], dtype=np.float32)).dtype == np.float32


def test_one_knot_is_a_constant() -> None:
    values = _native.interpolate(
        np.array([2.0]), np.array([0.3]), np.array([-5, 2, 7], dtype=np.float16), "float64"
    )
    assert values.tolist() == [0.3, 0.3, 0.3]


def test_the_whole_range_of_doubles() -> None:
    x, y = np.array([-1.7e308, 1.7e308]), np.array([-1.5e308, 1.5e308])
    assert _native.interpolate(x, y, np.array([0.0, 1.7e308])).tolist() == [0, 1.5e308]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1.0, 1.0], [0.0, 1.0]),
        ([2.0, 1.0], [0.0, 1.0]),
        ([0.0, math.nan], [0.0, 1.0]),
        ([0.0], [math.inf]),
    ],
)
def test_bad_knots(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="knots"):
        _native.interpolate(np.array(x, dtype=float), np.array(y, dtype=float), np.array([0.5]))


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.random(1000)), np.sort(rng.random(1000))
    points = rng.uniform(-0.1, 1.1, 200_000)
    one = _native.interpolate(x, y, points, None, 1)
    for threads in (2, 7):
        assert oracle.same_bits(_native.interpolate(x, y, points, None, threads), one)


@pytest.mark.parametrize("offsets", [[], [0], [0, 9, 4], [0, 10**9, 4], [0, -3, 4], [1, 4], [0, 3], [0, 5]])
def test_knot_offsets_never_reach_past_the_knots(offsets: list[int]) -> None:
    x = np.arange(4.0)
    with pytest.raises(ValueError, match="knot_offsets must rise from 0 to the number of knots"):
        _native.interpolate_curves(x, x, np.array(offsets, dtype=np.int64), np.array([0]), np.array([0.5]))


def test_several_curves_in_one_call_are_the_curves_alone() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([np.sort(rng.random(size)) for size in (1, 5, 30)])
    y = np.concatenate([np.sort(rng.random(size)) for size in (1, 5, 30)])
    offsets = np.array([0, 1, 6, 36])
    curve, points = rng.integers(0, 3, 400), rng.uniform(-0.1, 1.1, 400)
    together = _native.interpolate_curves(x, y, offsets, curve, points, "float32")
    for c in range(3):
        knots = slice(offsets[c], offsets[c + 1])
        alone = _native.interpolate(x[knots], y[knots], points[curve == c], "float32")
        assert oracle.same_bits(together[curve == c], alone)
    for bad in (-1, 3):
        with pytest.raises(ValueError, match=f"curve_of_point: position 1 is {bad}"):
            _native.interpolate_curves(x, y, offsets, np.array([0, bad]), points[:2])
