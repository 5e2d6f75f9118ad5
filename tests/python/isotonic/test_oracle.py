"""The oracle itself, against independent definitions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

_ENDS = st.integers(min_value=-(2**1100), max_value=2**1100)
_POSITIVE = st.integers(min_value=1, max_value=2**1100)


@given(_ENDS, _POSITIVE)
def test_rounding_to_float64_is_that_of_integer_division(numerator: int, denominator: int) -> None:
    try:
        expected = numerator / denominator
    except OverflowError:
        expected = math.copysign(math.inf, 1 if numerator > 0 else -1)
    assert oracle.round_ratio(numerator, denominator, "float64") == expected


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_a_double_is_the_hardware_conversion(dtype: str, value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        converted = float(np.float64(value).astype(dtype))
    assert oracle.round_float(value, dtype) == converted


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ties_go_to_even_and_the_smallest_subnormal_is_kept(dtype: str) -> None:
    smallest = Fraction(float(np.finfo(dtype).smallest_subnormal))
    largest = Fraction(float(np.finfo(dtype).max))
    half_step = Fraction(2) ** (oracle.FORMATS[dtype].highest - oracle.FORMATS[dtype].precision - 1)
    assert oracle.round_fraction(smallest / 2, dtype) == 0
    assert oracle.round_fraction(smallest * 3 / 2, dtype) == 2 * smallest
    assert oracle.round_fraction(smallest * 51 / 100, dtype) == smallest
    assert oracle.round_fraction(largest + half_step * 99 / 100, dtype) == largest
    assert oracle.round_fraction(largest + half_step, dtype) == float("inf")
    assert oracle.round_fraction(-largest - half_step, dtype) == float("-inf")


def _max_min_formula(y: list[Fraction], w: list[Fraction]) -> list[Fraction]:
    """x_i = max over a <= i of min over b >= i of the mean of y_a .. y_b (Barlow et al. 1972)."""
    n = len(y)

    def mean(a: int, b: int) -> Fraction:
        return sum((w[i] * y[i] for i in range(a, b + 1)), Fraction(0)) / sum(w[a : b + 1])

    return [max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


def test_pooling_agrees_with_the_max_min_formula() -> None:
    generator = random.Random(11)
    for _ in range(300):
        n = generator.randrange(1, 8)
        y = [Fraction(generator.randrange(-4, 5), generator.choice([1, 2, 4])) for _ in range(n)]
        w = [Fraction(generator.randrange(1, 5)) for _ in range(n)]
        expected = _max_min_formula(y, w)
        solution = oracle.solve(np.array(y, dtype=float), np.array(w, dtype=float))
        assert solution.fit("float64").tolist() == [oracle.round_fraction(x, "float64") for x in expected]
        assert solution.starts() == [i for i in range(n) if i == 0 or expected[i] != expected[i - 1]]


def test_a_tie_group_is_one_observation_with_its_mean_and_weight() -> None:
    y, w = np.array([4.0, 1.0, 0.0, 9.0, 2.0]), np.array([1.0, 2.0, 1.0, 1.0, 1.0])
    tied = oracle.solve(y, w, tie_offsets=[0, 1, 3, 5])
    # Means 4, 2/3, 11/2 with weights 1, 3, 2.
    assert tied.fit("float64").tolist() == [1.5, 1.5, 1.5, 5.5, 5.5]
    assert tied.starts() == [0, 3]
    assert tied.block_weights() == [4.0, 2.0]
