"""Faults that users of other packages met, each with its right value."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

import isofold


@pytest.mark.parametrize("n", [1, 2, 3, 70, 1000, 1_000_000])
def test_a_constant_float32_row_of_a_tenth_is_left_alone(n: int) -> None:
    # A running float32 sum gives 0.1088 at ten million.
    y = np.full(n, 0.1, dtype=np.float32)
    result = isofold.isotonic_regression(y)
    assert oracle.same_bits(result.x, y)
    assert result.blocks.tolist() == [0, n]


def test_three_tenths() -> None:
    # Summed in doubles: 0.10000000000000002.
    assert isofold.isotonic_regression([0.1, 0.1, 0.1]).x.tolist() == [0.1, 0.1, 0.1]


def test_blocks_are_not_found_by_a_tolerance() -> None:
    result = isofold.isotonic_regression([3e-10, 2e-10, 1e-10], increasing=False)
    assert isofold.isotonic_gradient(result, [1.0, 2.0, 3.0])[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_is_an_error_and_never_a_fit(dtype: str) -> None:
    with pytest.raises(ValueError, match="y must be finite, but is nan at row 0, position 1"):
        isofold.isotonic_regression(np.array([1, np.nan, 0], dtype=dtype))


def test_memory_of_the_empty_input() -> None:
    result = isofold.isotonic_regression([])
    assert result.x.tolist() == []
    assert result.blocks.tolist() == [0]


def test_the_documented_example() -> None:
    y = [1.5, 1, 4, 6, 5.7, 5, 7.8, 9, 7.5, 9.5, 9]
    x = isofold.isotonic_regression(y).x
    third = oracle.round_fraction(
        sum((oracle.Fraction(v) for v in y[3:6]), oracle.Fraction(0)) / 3, "float64"
    )
    assert x.tolist() == [1.25, 1.25, 4, third, third, third, 7.8, 8.25, 8.25, 9.25, 9.25]
    assert third == pytest.approx(5.5667, abs=1e-4)


def test_sums_that_overflow_midway() -> None:
    assert isofold.isotonic_regression([1e308, 1e308, -1e308, -1e308]).x.tolist() == [0, 0, 0, 0]
    pair = oracle.round_fraction((oracle.Fraction(1.7e308) + oracle.Fraction(1.6e308)) / 2, "float64")
    x = isofold.isotonic_regression([1.7e308, 1.6e308]).x
    assert x.tolist() == [pair, pair]
    assert pair == pytest.approx(1.65e308, rel=1e-15)


def test_ties_in_a_decreasing_curve() -> None:
    # Scores 0, 0, 1, 1, 2: thresholds 4.5, 4.5, 3.
    result = isofold.isotonic_regression([4.0, 4.0, 5.0, 5.0, 3.0], increasing=False)
    assert result.x.tolist() == [4.5, 4.5, 4.5, 4.5, 3]


@pytest.mark.parametrize("n", [10, 1000, 200_000])
def test_no_super_linear_trap_in_consecutive_runs(n: int) -> None:
    y = np.r_[0:n, -(n - 1) : n, -(n - 1) : 1].astype(np.float64)
    result = isofold.isotonic_regression(y)
    assert (result.x == 0).all()
    assert result.blocks.tolist() == [0, len(y)]


@pytest.mark.parametrize("n", [800, 200_000])
def test_no_super_linear_trap_in_falling_steps(n: int) -> None:
    y = np.arange(n, 0, -1, dtype=np.float64)
    y[1::2] -= 1.5
    result = isofold.isotonic_regression(y)
    assert (result.x == (n + 1) / 2 - 0.75).all()
    if n == 800:
        assert result.x[0] == 399.75


def test_values_keep_the_order_of_the_input() -> None:
    y = [0.52, 0.58, -1.91, -1.12, -1.04]
    mean = oracle.round_fraction(sum(map(oracle.Fraction, y), oracle.Fraction(0)) / 5, "float64")
    assert isofold.isotonic_regression(y).x.tolist() == [mean] * 5
    assert mean == pytest.approx(-0.594)


def test_half_precision_rows_longer_than_their_dtype_can_count() -> None:
    y = np.zeros(70_000, dtype=np.float16)
    y[::2] = 1
    result = isofold.isotonic_regression(y)
    assert (result.x == 0.5).all()
    assert result.weights.tolist() == [70_000]
