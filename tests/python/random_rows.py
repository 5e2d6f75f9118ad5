"""Random rows that are hard for floating point: any family, dtype, weights, ties and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Random = np.random.Generator

DTYPES = ("float16", "float32", "float64")
LONGEST = 70


@dataclass(frozen=True)
class Row:
    family: str
    y: Array
    w: Array | None
    increasing: bool
    tie_offsets: NDArray[np.int64] | None
    lower: float
    upper: float
    grad: Array
    out_dtype: str
    threads: int
    chunk_size: int


def to_finite(values: Array, dtype: str) -> Array:
    """`values` in the dtype, what overflows replaced by the largest number."""
    largest = float(np.finfo(dtype).max)
    return np.clip(values, -largest, largest).astype(dtype)


def random_bits(rng: Random, length: int, dtype: str) -> Array:
    """Any finite number's bits alike: all exponents, subnormals, zeros of either sign."""
    size = np.dtype(dtype).itemsize
    values = np.frombuffer(rng.bytes(length * size), dtype=dtype).copy()
    values[~np.isfinite(values)] = 0
    return values


def _noise(rng: Random, n: int, dtype: str) -> Array:
    return rng.standard_normal(n)


def _rising(rng: Random, n: int, dtype: str) -> Array:
    return np.sort(rng.standard_normal(n))


def _falling(rng: Random, n: int, dtype: str) -> Array:
    return np.sort(rng.standard_normal(n))[::-1]


def _ramp_with_noise(rng: Random, n: int, dtype: str) -> Array:
    return np.arange(n) * rng.choice([0.01, 0.1, 1.0]) + rng.standard_normal(n)


def _constant(rng: Random, n: int, dtype: str) -> Array:
    return np.full(n, rng.choice([0.1, 0.0, -0.0, 1 / 3, rng.standard_normal()]))


def _clicks(rng: Random, n: int, dtype: str) -> Array:
    return (rng.random(n) < rng.choice([0.05, 0.5])).astype(float)


def _few_levels(rng: Random, n: int, dtype: str) -> Array:
    return rng.integers(0, 4, n) * rng.choice([1.0, 0.1, 1 / 3])


def _decimals(rng: Random, n: int, dtype: str) -> Array:
    return (np.arange(n) * rng.integers(1, 9) % 9) * 0.1


def _one_decimal(rng: Random, n: int, dtype: str) -> Array:
    return np.round(rng.standard_normal(n), 1)


def _sawtooth(rng: Random, n: int, dtype: str) -> Array:
    return np.arange(n) % rng.integers(2, 12) + np.arange(n) * rng.choice([0.0, 0.1])


def _cliff(rng: Random, n: int, dtype: str) -> Array:
    row = np.arange(n, dtype=float)
    row[n - 1 :] = -rng.integers(1, 10) * n
    return row


def _mirrored_cliff(rng: Random, n: int, dtype: str) -> Array:
    return -_cliff(rng, n, dtype)[::-1]


def _cancellation(rng: Random, n: int, dtype: str) -> Array:
    return rng.choice([1e3, 1e7, 1e12]) + rng.standard_normal(n) * rng.choice([1.0, 1e-4])


def _cancelling_pairs(rng: Random, n: int, dtype: str) -> Array:
    big = rng.choice([1e4, 1e18, 1e300])
    return np.where(rng.random(n) < 0.5, big, -big) + np.where(rng.random(n) < 0.3, rng.standard_normal(n), 0)


def _near_ties(rng: Random, n: int, dtype: str) -> Array:
    base = to_finite(np.array([rng.choice([0.1, 1.0, 1e5, 3.3])]), dtype)
    steps = np.full(n, base[0], dtype=dtype)
    for _ in range(2):
        up = rng.random(n) < 0.4
        steps[up] = np.nextafter(steps[up], np.array(np.inf, dtype=dtype))
    return steps


def _subnormal(rng: Random, n: int, dtype: str) -> Array:
    smallest = float(np.finfo(dtype).smallest_subnormal)
    return rng.integers(-9, 10, n) * smallest


def _wide(rng: Random, n: int, dtype: str) -> Array:
    return random_bits(rng, n, dtype)


def _overflowing(rng: Random, n: int, dtype: str) -> Array:
    return rng.choice([-1.0, 1.0, 0.9, 0.5], n) * float(np.finfo(dtype).max)


def _midpoints(rng: Random, n: int, dtype: str) -> Array:
    eps = float(np.finfo(dtype).eps)
    return rng.permutation(1 + rng.integers(0, 3, n) * eps)


FAMILIES: dict[str, Callable[[Random, int, str], Array]] = {
    function.__name__[1:]: function
    for function in (
        _noise,
        _rising,
        _falling,
        _ramp_with_noise,
        _constant,
        _clicks,
        _few_levels,
        _decimals,
        _one_decimal,
        _sawtooth,
        _cliff,
        _mirrored_cliff,
        _cancellation,
        _cancelling_pairs,
        _near_ties,
        _subnormal,
        _wide,
        _overflowing,
        _midpoints,
    )
}


def _weights(rng: Random, n: int) -> Array | None:
    dtype = str(rng.choice(DTYPES))
    kind = rng.integers(0, 7)
    if kind == 0:
        return None
    if kind == 1:
        return np.ones(n, dtype=dtype)
    if kind == 2:
        return rng.integers(1, 9, n).astype(dtype)
    if kind == 3:
        return to_finite(rng.uniform(0.1, 1, n), dtype)
    if kind == 4:
        weights = np.abs(random_bits(rng, n, dtype))
    elif kind == 5:
        weights = rng.integers(1, 9, n).astype(dtype) * np.finfo(dtype).smallest_subnormal
    else:
        weights = rng.choice([1.0, 0.75], n).astype(dtype) * np.finfo(dtype).max
    weights[weights == 0] = 1
    return weights


def random_row(rng: Random) -> Row:
    """One row of any family; a seventh of them are rates k / n with weights n."""
    n = int(rng.integers(0, LONGEST + 1)) if rng.random() < 0.7 else int(rng.integers(0, 9))
    dtype = str(rng.choice(DTYPES))
    with np.errstate(over="ignore", under="ignore"):
        if rng.random() < 1 / 7:
            family = "rates"
            trials = rng.integers(1, 40, n)
            y = to_finite(rng.binomial(trials, 0.3) / trials, dtype)
            w: Array | None = trials.astype(str(rng.choice(DTYPES)))
        else:
            family = str(rng.choice(list(FAMILIES)))
            y = to_finite(np.asarray(FAMILIES[family](rng, n, dtype)), dtype)
            w = _weights(rng, n)
        grad_dtype = str(rng.choice(DTYPES))
        grad = rng.standard_normal(n) if rng.random() < 0.5 else random_bits(rng, n, grad_dtype)
        grad = to_finite(np.asarray(grad), grad_dtype)
        if n and rng.random() < 0.1:
            grad[rng.integers(0, n)] = rng.choice([np.nan, np.inf, -np.inf])
    ties = None
    if n and rng.random() < 0.25:
        inner = np.flatnonzero(rng.random(n - 1) < rng.choice([0.2, 0.7])) + 1
        ties = np.concatenate(([0], inner, [n])).astype(np.int64)
    lower, upper = -np.inf, np.inf
    if n and rng.random() < 0.2:
        lower, upper = sorted(float(bound) for bound in rng.choice(y, 2))
    return Row(
        family=family,
        y=y,
        w=w,
        increasing=bool(rng.random() < 0.5),
        tie_offsets=ties,
        lower=lower,
        upper=upper,
        grad=grad,
        out_dtype=str(rng.choice(DTYPES)) if rng.random() < 0.3 else dtype,
        threads=int(rng.choice([1, 1, 1, 2, 7])),
        chunk_size=int(rng.choice([0, 32, 64])),
    )
