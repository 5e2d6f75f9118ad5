"""isotonic_gradient: shapes, dtypes, policies; its bits are checked in test_against_oracle.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest

import isofold


def test_averages_over_blocks() -> None:
    result = isofold.isotonic_regression([3.0, 1.0, 2.0, 5.0])
    grad_y, grad_weights = isofold.isotonic_gradient(result, [1.0, 2.0, 6.0, 7.0])
    assert grad_y.tolist() == [3, 3, 3, 7]
    assert grad_weights is None


def test_weighted() -> None:
    result = isofold.isotonic_regression([4.0, 1.0, 9.0], weights=[1.0, 2.0, 5.0])
    grad_y, grad_weights = isofold.isotonic_gradient(result, [1.0, 2.0, 6.0])
    assert grad_y.tolist() == [1, 2, 6]
    # m = 2, q = 1; a block of one element has no derivative in its weight.
    assert grad_weights is not None
    assert grad_weights.tolist() == [2, -1, 0]


def test_the_derivative_is_that_of_the_fit() -> None:
    rng = np.random.default_rng(2)
    y, w, grad = rng.standard_normal(30), rng.uniform(0.5, 2, 30), rng.standard_normal(30)
    grad_y, grad_w = isofold.isotonic_gradient(isofold.isotonic_regression(y, weights=w), grad)
    assert grad_w is not None
    step = 1e-6
    for i in range(30):
        for array, found in ((y, grad_y), (w, grad_w)):
            moved = [array.copy(), array.copy()]
            moved[0][i] += step
            moved[1][i] -= step
            fits = [
                isofold.isotonic_regression(m if array is y else y, weights=m if array is w else w).x
                for m in moved
            ]
            assert found[i] == pytest.approx(np.dot(grad, fits[0] - fits[1]) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("grad", [0.0, 2.0**-40, 3.0])
def test_values_further_from_their_mean_than_the_largest_float(grad: float) -> None:
    """y - mean overflows: nothing to pass on is still 0, not NaN, and a small share is finite."""
    result = isofold.isotonic_regression([1.5e308, -1.5e308, -1.5e308], weights=[1.0, 1.0, 1.0])
    _, grad_w = isofold.isotonic_gradient(result, [grad, -grad, 3 * grad])
    assert grad_w is not None
    # The mean is -5e307 and the share grad: 2e308 grad, -1e308 grad twice.
    assert grad_w.tolist() == pytest.approx([1e308 * (2 * grad), -1e308 * grad, -1e308 * grad], rel=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("weight_dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("grad_dtype", ["float16", "float32", "float64", "int64", "bool"])
def test_dtypes(dtype: str, weight_dtype: str, grad_dtype: str) -> None:
    result = isofold.isotonic_regression(
        np.array([2, 1, 3], dtype=dtype), weights=np.array([1, 1, 2], dtype=weight_dtype)
    )
    grad_y, grad_w = isofold.isotonic_gradient(result, np.array([1, 0, 1], dtype=grad_dtype))
    assert grad_w is not None
    assert grad_y.dtype == dtype
    assert grad_w.dtype == weight_dtype
    assert grad_y.tolist() == [0.5, 0.5, 1]
    assert grad_w.tolist() == [0.25, -0.25, 0]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_batches_along_any_axis(axis: int) -> None:
    rng = np.random.default_rng(4)
    y, grad = rng.standard_normal((5, 6)), rng.standard_normal((5, 6))
    w = rng.uniform(1, 2, y.shape[axis])
    result = isofold.isotonic_regression(y, weights=w, axis=axis)
    grad_y, grad_w = isofold.isotonic_gradient(result, grad)
    assert grad_w is not None
    rows = np.moveaxis(y, axis, -1)
    for r, row in enumerate(rows):
        alone = isofold.isotonic_regression(row, weights=w)
        expected = isofold.isotonic_gradient(alone, np.moveaxis(grad, axis, -1)[r])
        assert oracle.same_bits(np.moveaxis(grad_y, axis, -1)[r], expected[0])
        assert expected[1] is not None
        assert oracle.same_bits(np.moveaxis(grad_w, axis, -1)[r], expected[1])


def test_ragged_rows() -> None:
    y, grad = [2.0, 1.0, 2.0, 1.0, 0.0], [1.0, 3.0, 3.0, 0.0, 3.0]
    result = isofold.isotonic_regression(y, offsets=[0, 2, 2, 5])
    assert isofold.isotonic_gradient(result, grad)[0].tolist() == [2, 2, 2, 2, 2]


def test_nothing_passes_outside_the_bounds_and_everything_at_them() -> None:
    result = isofold.isotonic_regression([1.0, 2.0, 3.0, 4.0], y_min=2, y_max=3, weights=[1, 1, 1, 1])
    grad_y, grad_w = isofold.isotonic_gradient(result, [5.0, 6.0, 7.0, 8.0])
    assert grad_y.tolist() == [0, 6, 7, 0]
    assert grad_w is not None
    assert grad_w.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_spoils_its_block_only(value: float) -> None:
    result = isofold.isotonic_regression([2.0, 1.0, 5.0, 7.0, 6.0], weights=[1, 1, 1, 2, 1])
    grad_y, grad_w = isofold.isotonic_gradient(result, [1.0, value, 3.0, 4.0, 5.0])
    assert grad_w is not None
    assert np.isnan(grad_y).tolist() == [True, True, False, False, False]
    assert np.isnan(grad_w).tolist() == [True, True, False, False, False]
    assert grad_y[2:].tolist() == [3, 6, 3]


@pytest.mark.parametrize("shape", [(3,), (1, 4), (2, 2), ()])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    result = isofold.isotonic_regression([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"grad has shape .* but the fit has shape \(4,\)"):
        isofold.isotonic_gradient(result, np.ones(shape))


@pytest.mark.parametrize("grad", [[1j, 1], ["a", "b"], np.ma.masked_array([1.0, 2.0])])
def test_what_does_not_hold_real_numbers_is_refused(grad: Any) -> None:
    with pytest.raises(TypeError, match=r"^grad "):
        isofold.isotonic_gradient(isofold.isotonic_regression([1.0, 2.0]), grad)


def test_needs_a_result() -> None:
    with pytest.raises(TypeError, match="result must come from isotonic_regression, but is a list"):
        isofold.isotonic_gradient([1.0], [1.0])  # type: ignore[arg-type]


def test_empty() -> None:
    result = isofold.isotonic_regression(np.zeros((0, 3)))
    grad_y, _ = isofold.isotonic_gradient(result, np.zeros((0, 3)))
    assert grad_y.shape == (0, 3)
