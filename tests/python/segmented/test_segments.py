"""Segment sums, dots and norms against integers and fractions, and the arguments that are refused."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import round_ratio

import isofold
from isofold import _native

CASES = json.loads((Path(__file__).parents[2] / "data" / "dot_cases.json").read_text(encoding="utf-8"))
DTYPES = ("float16", "float32", "float64")


def exact_sum(a: Any, b: Any = None) -> Fraction:
    terms = [Fraction(float(x)) for x in a]
    if b is not None:
        terms = [x * Fraction(float(y)) for x, y in zip(terms, b, strict=True)]
    return sum(terms, Fraction(0))


def rounded(value: Fraction, dtype: str) -> float:
    return round_ratio(value.numerator, value.denominator, dtype)


def rounded_root(value: Fraction, dtype: str) -> float:
    """By an integer square root with bits to spare, and one more set where it is not exact."""
    scaled = value * 4**1300
    assert scaled.denominator == 1
    root = math.isqrt(scaled.numerator)
    sticky = 2 * root + (root * root != scaled.numerator)
    return round_ratio(sticky, 2**1301, dtype)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_stored_cases(case: dict[str, Any]) -> None:
    a, b, expected = (
        np.array([float.fromhex(x) for x in case[key]], case["dtype"]) for key in ("a", "b", "dot")
    )
    found = isofold.segment_dot(a, b, case["offsets"])
    assert found.dtype == case["dtype"]
    assert np.array_equal(found, expected)
    assert not np.signbit(found[found == 0]).any()
    together = isofold.segment_dots([(a, b), (b, a), (a, a)], case["offsets"])
    assert np.array_equal(together[0], expected)
    assert np.array_equal(together[1], expected)
    assert np.array_equal(together[2], isofold.segment_dot(a, a, case["offsets"]))


finite = {dtype: st.floats(allow_nan=False, allow_infinity=False, width=int(dtype[5:])) for dtype in DTYPES}


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, Any, Any, Any]:
    dtype = draw(st.sampled_from(DTYPES))
    lengths = draw(st.lists(st.integers(0, 12), max_size=6))
    total = sum(lengths)
    values = st.lists(finite[dtype], min_size=total, max_size=total)
    a, b = (np.array(draw(values), dtype) for _ in range(2))
    if draw(st.booleans()) and total > 1:
        a[total // 2 :] = -a[: total - total // 2]  # so that much cancels
        b[total // 2 :] = b[: total - total // 2]
    return dtype, a, b, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@given(batches(), st.sampled_from(DTYPES))
def test_random_batches(batch: tuple[str, Any, Any, Any], out: str) -> None:
    _, a, b, offsets = batch
    sums = isofold.segment_sum(a, offsets, dtype=out)
    dots = isofold.segment_dot(a, b, offsets, dtype=out)
    norms = isofold.segment_norm(a, offsets, dtype=out)
    for s, (begin, end) in enumerate(itertools.pairwise(offsets)):
        x, y = a[begin:end], b[begin:end]
        assert float(sums[s]) == rounded(exact_sum(x), out)
        assert float(dots[s]) == rounded(exact_sum(x, y), out)
        assert float(norms[s]) == rounded_root(exact_sum(x, x), out)
    calls = [("sum", a, None, out), ("dot", a, b, out), ("norm", a, None, out)]
    reference = _native.segment_reductions(calls, offsets, None, len(a), 0, backend="reference")
    for found, expected in zip((sums, dots, norms), reference, strict=True):
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_axes_and_layouts(axis: int) -> None:
    random = np.random.default_rng(1)
    a = random.standard_normal((4, 5, 6))
    b = random.standard_normal((5, 4, 6)).transpose(1, 0, 2)
    found = isofold.segment_dot(a, b, axis=axis)
    moved = [np.moveaxis(x, axis, -1) for x in (a, b)]
    assert found.shape == moved[0].shape[:-1]
    for index in np.ndindex(found.shape):
        assert found[index] == rounded(exact_sum(moved[0][index], moved[1][index]), "float64")
    swapped = a.astype(a.dtype.newbyteorder())
    assert np.array_equal(isofold.segment_dot(swapped, b, axis=axis), found)
    assert np.array_equal(
        isofold.segment_dot(a[::-1], b[::-1], axis=axis),
        isofold.segment_dot(a[::-1].copy(), b[::-1].copy(), axis=axis),
    )


def test_whole_arrays_are_scalars() -> None:
    assert isofold.segment_sum([1e16, 1.0, -1e16]) == 1.0
    assert isofold.segment_norm(np.array([3, 4])) == 5.0
    assert isinstance(isofold.segment_sum(np.ones(3, np.float32)), np.float32)
    assert isofold.segment_sum([]) == 0.0
    assert isofold.segment_sum(np.zeros((3, 0))).tolist() == [0, 0, 0]
    assert isofold.segment_sum(np.zeros((0, 3))).shape == (0,)
    assert isofold.segment_sum([], [0]).shape == (0,)
    assert isofold.segment_sum([True, True], [0, 0, 2]).tolist() == [0.0, 2.0]
    assert isofold.segment_dots([]) == ()


def test_dtypes() -> None:
    a = np.ones(2, np.float32)
    assert isofold.segment_dot(a, np.ones(2)).dtype == np.float64
    assert isofold.segment_dot(a, np.ones(2, np.float16)).dtype == np.float32
    assert isofold.segment_sum(np.ones(2, ">f4")).dtype == np.dtype("=f4")
    many = isofold.segment_dots([(a, a)] * 20)
    assert [float(x) for x in many] == [2.0] * 20


def test_special_values_stay_in_their_segment() -> None:
    a = np.array([1.0, np.nan, 2.0, np.inf, np.inf, -np.inf, 4.0])
    found = isofold.segment_sum(a, [0, 1, 2, 3, 4, 6, 7])
    assert np.array_equal(found, [1, np.nan, 2, np.inf, np.nan, 4], equal_nan=True)
    assert math.isnan(isofold.segment_dot([0.0], [np.inf]))
    assert isofold.segment_norm([-np.inf, 1.0]) == np.inf


# User reports: CCCL 5505 (a bit changed when a start moved), Warp 1608 (a vector longer than its offsets),
# PyTorch 51276 (a row's bits changed with the batch).
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_segment_is_the_same_anywhere(dtype: str) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal(3000).astype(dtype)
    alone = isofold.segment_norm(x)
    for start in (*range(1, 128, 7), 4095, 32768):
        padded = np.concatenate([np.full(start, np.nan, dtype), x, np.full(3, np.inf, dtype)])
        found = isofold.segment_norm(padded, [0, start, start + 3000, start + 3003])
        assert found[1] == alone
        rows = np.stack([x, *random.standard_normal((start % 5, 3000)).astype(dtype)])
        assert isofold.segment_norm(rows)[0] == alone


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: isofold.segment_sum([1.0, 2.0], [0, 1]),
            ValueError,
            "offsets must end at the number of values, 2, but offsets[1] is 1",
        ),
        (
            lambda: isofold.segment_sum([1.0, 2.0], [0, 2, 1, 2]),
            ValueError,
            "offsets must not fall, but offsets[2] is 1 after offsets[1], 2",
        ),
        (
            lambda: isofold.segment_sum([1.0], [1, 1]),
            ValueError,
            "offsets must start at 0, but offsets[0] is 1",
        ),
        (
            lambda: isofold.segment_sum([1.0], [0.0, 1.0]),
            TypeError,
            "offsets must hold integers, not dtype float64",
        ),
        (
            lambda: isofold.segment_sum([[1.0]], [0, 1]),
            ValueError,
            "offsets cut a 1-D array into segments, but a has shape (1, 1)",
        ),
        (
            lambda: isofold.segment_dot([1.0], [1.0, 2.0]),
            ValueError,
            "b has shape (2,), but a has shape (1,)",
        ),
        (
            lambda: isofold.segment_dots([([1.0], [1.0]), ([1.0], [[1.0]])]),
            ValueError,
            "b of pair 1 has shape (1, 1), but a of pair 0 has shape (1,)",
        ),
        (
            lambda: isofold.segment_dots([([1.0], [1.0]), (["x"], [1.0])]),
            TypeError,
            "a of pair 1 must hold real numbers, not dtype <U1",
        ),
        (lambda: isofold.segment_sum(1.0), ValueError, "a must have at least one dimension, but is a scalar"),
        (
            lambda: isofold.segment_sum([1.0], axis=1),
            ValueError,
            "axis 1 is out of range for a with 1 dimensions",
        ),
        (lambda: isofold.segment_sum([1j]), TypeError, "a must hold real numbers, not dtype complex128"),
        (
            lambda: isofold.segment_sum([1.0], dtype="int32"),
            TypeError,
            "dtype must be float16, float32 or float64, not int32",
        ),
        (
            lambda: isofold.segment_sum([1.0], threads=0),
            ValueError,
            "threads must be at least 1, or None for the default, but is 0",
        ),
    ],
)
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(threads: int) -> None:
    random = np.random.default_rng(3)
    a = random.standard_normal(300_001).astype(np.float32) * 10.0 ** random.integers(-20, 20, 300_001)
    a = np.concatenate([a, -a[::-1]])
    offsets = [0, 300_001, 300_010, len(a)]
    found = isofold.segment_sum(a, offsets, threads=threads)
    assert found.tolist() == [
        rounded(exact_sum(a[begin:end]), str(a.dtype)) for begin, end in itertools.pairwise(offsets)
    ]
