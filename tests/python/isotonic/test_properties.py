"""What must hold for every row, whoever solves it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import isofold
from isofold import IsotonicResult, _native

Array = NDArray[Any]

DTYPES = ("float16", "float32", "float64")
WIDTHS = {"float16": 16, "float32": 32, "float64": 64}


def finite(dtype: str) -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False, width=WIDTHS[dtype])  # type: ignore[arg-type]


def positive(dtype: str) -> st.SearchStrategy[float]:
    return st.floats(
        min_value=0,
        exclude_min=True,
        allow_nan=False,
        allow_infinity=False,
        width=WIDTHS[dtype],  # type: ignore[arg-type]
    )


def nearby() -> st.SearchStrategy[float]:
    """Values that tie, cancel and pool often."""
    return st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 1.0, 1.5, -1.0, 1e16, -1e16])


@st.composite
def rows(draw: st.DrawFn, max_size: int = 40) -> tuple[Array, Array | None]:
    """(y, weights or None) of independent dtypes."""
    dtype, weight_dtype = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(DTYPES))
    size = draw(st.integers(0, max_size))
    elements = finite(dtype)
    if dtype == "float64":
        elements = st.one_of(elements, nearby())
    y = draw(arrays.arrays(dtype, size, elements=elements))
    w = draw(st.one_of(st.none(), arrays.arrays(weight_dtype, size, elements=positive(weight_dtype))))
    return y, w


def blocks_of(result: IsotonicResult) -> list[tuple[int, int]]:
    ends = result.blocks.tolist()
    return list(itertools.pairwise(ends))


@given(rows(), st.booleans())
def test_optimal_by_the_kkt_conditions(row: tuple[Array, Array | None], increasing: bool) -> None:
    y, w = row
    result = isofold.isotonic_regression(y, weights=w, increasing=increasing)
    sign = 1 if increasing else -1
    values = [sign * Fraction(value) for value in oracle.as_floats(y)]
    weights = [Fraction(1)] * len(values) if w is None else [Fraction(v) for v in oracle.as_floats(w)]
    previous = None
    for start, end in blocks_of(result):
        total = sum(map(Fraction.__mul__, weights[start:end], values[start:end]), Fraction(0))
        mean = total / sum(weights[start:end])
        # Blocks rise strictly, so they are maximal; within one, no prefix lies below the mean (the
        # multipliers of the order constraints are not negative) and they end at zero.
        assert previous is None or previous < mean
        previous = mean
        excess = Fraction(0)
        for i in range(start, end):
            excess += weights[i] * (values[i] - mean)
            assert excess >= 0
        assert excess == 0
        rounded = oracle.round_fraction(sign * mean, y.dtype.name)
        assert (result.x[start:end] == rounded).all()


@given(rows(), st.booleans())
def test_never_steps_the_wrong_way_and_stays_in_range(
    row: tuple[Array, Array | None], increasing: bool
) -> None:
    y, w = row
    x = isofold.isotonic_regression(y, weights=w, increasing=increasing).x
    assert x.dtype == y.dtype
    if increasing:
        assert (x[1:] >= x[:-1]).all()
    else:
        assert (x[1:] <= x[:-1]).all()
    if y.size:
        assert (x >= y.min()).all()
        assert (x <= y.max()).all()


@given(rows(), st.booleans())
def test_idempotent(row: tuple[Array, Array | None], increasing: bool) -> None:
    y, w = row
    once = isofold.isotonic_regression(y, weights=w, increasing=increasing).x
    again = isofold.isotonic_regression(once, weights=w, increasing=increasing)
    assert oracle.same_bits(again.x, once)


@given(rows(), st.booleans())
def test_a_sorted_row_is_left_alone(row: tuple[Array, Array | None], increasing: bool) -> None:
    y, w = row
    ordered = np.sort(y)
    if not increasing:
        ordered = ordered[::-1]
    result = isofold.isotonic_regression(ordered, weights=w, increasing=increasing)
    assert (result.x == ordered).all()


@given(
    arrays.arrays("float64", st.integers(0, 40), elements=st.integers(-4096, 4096).map(lambda i: i / 64)),
    st.integers(-200, 200),
    st.integers(-200, 200),
    st.booleans(),
)
def test_powers_of_two_scale_through(y: Array, value_scale: int, weight_scale: int, increasing: bool) -> None:
    weights = np.arange(1, y.size + 1, dtype=float)
    plain = isofold.isotonic_regression(y, weights=weights, increasing=increasing)
    scaled = isofold.isotonic_regression(
        y * 2.0**value_scale, weights=weights * 2.0**weight_scale, increasing=increasing
    )
    assert oracle.same_bits(scaled.x, plain.x * 2.0**value_scale)
    assert oracle.same_bits(scaled.weights, plain.weights * 2.0**weight_scale)
    assert (scaled.blocks == plain.blocks).all()


@given(rows(), st.booleans())
def test_negation_and_reversal_swap_the_direction(row: tuple[Array, Array | None], increasing: bool) -> None:
    y, w = row
    result = isofold.isotonic_regression(y, weights=w, increasing=increasing)
    negated = isofold.isotonic_regression(-y, weights=w, increasing=not increasing)
    assert (negated.x == -result.x).all()
    assert (negated.blocks == result.blocks).all()
    backwards = isofold.isotonic_regression(
        y[::-1], weights=None if w is None else w[::-1], increasing=not increasing
    )
    assert oracle.same_bits(backwards.x[::-1], result.x)
    assert (y.size - backwards.blocks[::-1] == result.blocks).all()


@given(
    st.lists(st.tuples(finite("float64"), st.integers(1, 6)), max_size=25),
    st.booleans(),
)
def test_a_weight_means_repetition(pairs: list[tuple[float, int]], increasing: bool) -> None:
    y = np.array([value for value, _ in pairs], dtype=np.float64)
    counts = np.array([count for _, count in pairs], dtype=np.int64)
    weighted = isofold.isotonic_regression(y, weights=counts, increasing=increasing)
    repeated = isofold.isotonic_regression(np.repeat(y, counts), increasing=increasing)
    assert oracle.same_bits(np.repeat(weighted.x, counts), repeated.x)
    assert oracle.same_bits(weighted.weights, repeated.weights)
    # Within a row of repetitions a block never starts.
    starts = np.concatenate(([0], np.cumsum(counts)))
    assert (starts[weighted.blocks] == repeated.blocks).all()


@given(rows(), st.integers(1, 5), st.booleans())
def test_a_row_in_a_batch_is_the_row_alone(
    row: tuple[Array, Array | None], copies: int, increasing: bool
) -> None:
    y, w = row
    alone = isofold.isotonic_regression(y, weights=w, increasing=increasing)
    batch = np.stack([y if i % 2 == 0 else y[::-1] for i in range(copies)])
    weights = None if w is None else np.stack([w if i % 2 == 0 else w[::-1] for i in range(copies)])
    together = isofold.isotonic_regression(batch, weights=weights, increasing=increasing)
    for i in range(0, copies, 2):
        assert oracle.same_bits(together.x[i], alone.x)
        first, last = together.block_offsets[i : i + 2]
        assert (together.blocks[first:last] - i * y.size == alone.blocks[:-1]).all()
        assert oracle.same_bits(together.weights[first:last], alone.weights)
    columns = isofold.isotonic_regression(
        batch.T, weights=None if weights is None else weights.T, increasing=increasing, axis=0
    )
    assert oracle.same_bits(columns.x.T, together.x)


@given(st.integers(0, 6), rows(max_size=24))
def test_ragged_rows_of_one_length_are_the_rectangle(count: int, row: tuple[Array, Array | None]) -> None:
    y, w = row
    length = y.size // count if count else 0
    y = y[: count * length]
    w = None if w is None else w[: count * length]
    offsets = np.arange(count + 1) * length
    ragged = isofold.isotonic_regression(y, weights=w, offsets=offsets)
    rectangle = isofold.isotonic_regression(
        y.reshape(count, length), weights=None if w is None else w.reshape(count, length)
    )
    assert oracle.same_bits(ragged.x, rectangle.x.reshape(-1))
    assert (ragged.blocks == rectangle.blocks).all()
    assert (ragged.block_offsets == rectangle.block_offsets).all()
    assert oracle.same_bits(ragged.weights, rectangle.weights)


@given(rows(), st.data())
def test_ragged_rows_are_the_rows_alone(row: tuple[Array, Array | None], data: st.DataObject) -> None:
    y, w = row
    cuts = data.draw(st.lists(st.integers(0, y.size), max_size=6).map(sorted))
    offsets = [0, *cuts, y.size]
    ragged = isofold.isotonic_regression(y, weights=w, offsets=offsets)
    for r, (begin, end) in enumerate(itertools.pairwise(offsets)):
        alone = isofold.isotonic_regression(y[begin:end], weights=None if w is None else w[begin:end])
        assert oracle.same_bits(ragged.x[begin:end], alone.x)
        first, last = ragged.block_offsets[r : r + 2]
        assert (ragged.blocks[first:last] - begin == alone.blocks[:-1]).all()


@given(rows(), st.booleans(), st.data())
def test_tie_groups_in_any_order_are_one_observation(
    row: tuple[Array, Array | None], increasing: bool, data: st.DataObject
) -> None:
    y, w = row
    assume(y.size > 0)
    inner = data.draw(st.lists(st.integers(1, y.size - 1), unique=True).map(sorted)) if y.size > 1 else []
    ties = np.array([0, *inner, y.size], dtype=np.int64)
    fitted, starts = _native.fit(y, w, None, None, increasing, -math.inf, math.inf, ties, None, 1)
    solution = oracle.solve(y, w, increasing=increasing, tie_offsets=ties.tolist())
    assert oracle.same_bits(fitted, solution.fit(y.dtype.name))
    assert oracle.same_bits(starts, solution.flags())


@given(rows(), st.booleans(), st.data())
def test_bounds_clip_the_rounded_fit_and_leave_the_blocks(
    row: tuple[Array, Array | None], increasing: bool, data: st.DataObject
) -> None:
    y, w = row
    low, high = sorted(data.draw(st.tuples(finite("float64"), finite("float64"))))
    free = isofold.isotonic_regression(y, weights=w, increasing=increasing)
    bounded = isofold.isotonic_regression(y, weights=w, increasing=increasing, y_min=low, y_max=high)
    with np.errstate(over="ignore"):
        clipped = np.clip(free.x, y.dtype.type(low), y.dtype.type(high))
    assert (bounded.x == clipped).all()
    assert (bounded.blocks == free.blocks).all()
    assert oracle.same_bits(bounded.weights, free.weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", ["noise", "rising", "cliff", "decimals", "wide"])
def test_threads_and_chunks_change_no_bit(family: str, weighted: bool, dtype: str) -> None:
    from random_rows import FAMILIES, random_bits, to_finite

    rng = np.random.default_rng(5)
    # Exponents over the whole range take the long way at every step.
    n = 4_000 if family == "wide" else 100_000
    y = to_finite(FAMILIES[family](rng, n, dtype), dtype)
    w = None
    if weighted:
        w = np.abs(random_bits(rng, n, dtype)) if family == "wide" else rng.uniform(0.5, 2, n).astype(dtype)
        w[w == 0] = 1
    outcomes = [
        _native.fit(y, w, None, None, True, -math.inf, math.inf, None, None, threads, chunk_size=chunk)
        for threads, chunk in ((1, 0), (2, 0), (7, 0), (1, 32), (2, 1024), (7, 65536))
    ]
    for fitted, starts in outcomes[1:]:
        assert oracle.same_bits(fitted, outcomes[0][0])
        assert oracle.same_bits(starts, outcomes[0][1])
    grad = rng.standard_normal(n)
    gradients = [
        _native.gradient(
            y, w, None, None, True, -math.inf, math.inf, outcomes[0][1], grad, weighted, None, threads
        )
        for threads in (1, 2, 7)
    ]
    for in_values, in_weights in gradients[1:]:
        assert oracle.same_bits(in_values, gradients[0][0])
        if weighted:
            assert in_weights is not None
            assert gradients[0][1] is not None
            assert oracle.same_bits(in_weights, gradients[0][1])
