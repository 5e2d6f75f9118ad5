"""What isotonic_regression takes, and what it says to what it does not."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray

import isofold

Array = NDArray[Any]
FIT = [1.0, 2.5, 2.5, 4.0]
Y = [1.0, 3.0, 2.0, 4.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_dtypes_are_kept(dtype: str) -> None:
    x = isofold.isotonic_regression(np.array(Y, dtype=dtype)).x
    assert x.dtype == dtype
    assert x.tolist() == FIT


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_become_float64(dtype: str) -> None:
    x = isofold.isotonic_regression(np.array(Y, dtype=dtype)).x
    assert x.dtype == np.float64
    assert x.tolist() == FIT


def test_booleans_become_float64() -> None:
    x = isofold.isotonic_regression([False, True, False, True]).x
    assert x.dtype == np.float64
    assert x.tolist() == [0.0, 0.5, 0.5, 1.0]


def test_integers_over_2_to_the_53_are_rounded_on_conversion() -> None:
    y = np.array([2**53 + 1, 2**63 - 1], dtype=np.int64)
    assert isofold.isotonic_regression(y).x.tolist() == [2.0**53, 2.0**63]
    assert isofold.isotonic_regression(np.array([2**64 - 1], dtype=np.uint64)).x.tolist() == [2.0**64]


@pytest.mark.parametrize("weight_dtype", ["float16", "float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_weights_have_a_dtype_of_their_own(dtype: str, weight_dtype: str) -> None:
    result = isofold.isotonic_regression(
        np.array([3, 1], dtype=dtype), weights=np.ones(2, dtype=weight_dtype)
    )
    assert result.x.tolist() == [2, 2]
    assert result.weights.tolist() == [2]


def test_weights_are_never_rounded_to_the_dtype_of_y() -> None:
    # In float16 these weights would be equal, and 1e6 infinite.
    y = np.array([1, 0], dtype=np.float16)
    assert isofold.isotonic_regression(y, weights=[1e6, 1e-6]).x.tolist() == [1, 1]
    exact = Fraction(2049, 2049 + 2048)
    w = np.array([2049, 2048], dtype=np.float64)
    assert isofold.isotonic_regression(y, weights=w).x[0] == oracle.round_fraction(exact, "float16")
    exact32 = Fraction(2**24 + 1, 2**25 + 1)
    y32 = np.array([1, 0], dtype=np.float32)
    x32 = isofold.isotonic_regression(y32, weights=[2**24 + 1, 2**24]).x
    assert x32[0] == oracle.round_fraction(exact32, "float32")


def _layouts(y: Array) -> dict[str, Array]:
    wide = np.zeros((y.size, 3), dtype=y.dtype)
    wide[:, 1] = y
    unaligned = np.frombuffer(b"x" + y.tobytes(), dtype=np.uint8)[1:].view(y.dtype)
    assert not unaligned.flags.aligned
    readonly = y.copy()
    readonly.flags.writeable = False
    return {
        "contiguous": y,
        "strided": wide[:, 1],
        "reversed": y[::-1].copy()[::-1],
        "byte-swapped": y.astype(y.dtype.newbyteorder()),
        "unaligned": unaligned,
        "read-only": readonly,
        "broadcast": np.broadcast_to(y, (2, y.size))[1],
    }


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", sorted(_layouts(np.ones(1))))
def test_any_layout(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    y, w = rng.standard_normal(50).astype(dtype), rng.uniform(0.5, 2, 50).astype(dtype)
    expected = isofold.isotonic_regression(y, weights=w)
    result = isofold.isotonic_regression(_layouts(y)[layout], weights=_layouts(w)[layout])
    assert oracle.same_bits(result.x, expected.x)
    assert oracle.same_bits(result.weights, expected.weights)
    assert result.x.dtype.isnative


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(axis: int, order: str) -> None:
    y = np.asarray(np.random.default_rng(1).standard_normal((3, 4, 5)), order=order)  # type: ignore[call-overload]
    before = y.copy()
    result = isofold.isotonic_regression(y, axis=axis)
    assert result.x.shape == y.shape
    for index in np.ndindex(*np.delete(y.shape, axis)):
        where = list(index)
        where.insert(axis % 3, slice(None))
        row = y[tuple(where)]
        assert oracle.same_bits(result.x[tuple(where)], isofold.isotonic_regression(row).x)
    assert oracle.same_bits(y, before)


def test_inputs_are_never_mutated_nor_aliased_by_the_fit() -> None:
    y, w = np.array([3.0, 1.0, 2.0, 5.0]), np.array([1.0, 2.0, 1.0, 1.0])
    before_y, before_w = y.copy(), w.copy()
    result = isofold.isotonic_regression(y, weights=w, y_min=0, y_max=4)
    isofold.isotonic_gradient(result, np.ones(4))
    assert oracle.same_bits(y, before_y)
    assert oracle.same_bits(w, before_w)
    assert not np.shares_memory(result.x, y)
    ordered = np.arange(5.0)
    assert not np.shares_memory(isofold.isotonic_regression(ordered).x, ordered)
    assert result.x.flags.writeable


@pytest.mark.parametrize(
    ("weights", "spread"),
    [
        (2.0, [[2, 2, 2], [2, 2, 2]]),
        ([1.0, 2.0, 3.0], [[1, 2, 3], [1, 2, 3]]),
        ([[1.0, 2.0, 3.0]], [[1, 2, 3], [1, 2, 3]]),
        ([[1.0], [2.0]], [[1, 1, 1], [2, 2, 2]]),
        ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1, 2, 3], [4, 5, 6]]),
    ],
)
def test_weights_broadcast(weights: Any, spread: list[list[float]]) -> None:
    y = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.5]])
    expected = isofold.isotonic_regression(y, weights=np.array(spread, dtype=float))
    assert isofold.isotonic_regression(y, weights=weights) == expected


def test_one_dimensional_weights_go_along_the_fitted_axis() -> None:
    y = np.array([[3.0, 2.0], [1.0, 5.0]])
    along_columns = isofold.isotonic_regression(y, weights=[1.0, 3.0], axis=0)
    assert along_columns.x.tolist() == [[1.5, 2.0], [1.5, 5.0]]


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 2), (1, 2, 3), (2, 4)])
def test_weights_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"weights has shape .* must be that of y, \(2, 3\)"):
        isofold.isotonic_regression(np.zeros((2, 3)), weights=np.ones(shape))


def test_empty_rows() -> None:
    empty = isofold.isotonic_regression([])
    assert empty.x.dtype == np.float64
    assert empty.x.size == empty.weights.size == 0
    assert empty.blocks.tolist() == [0]
    assert empty.block_offsets.tolist() == [0, 0]
    for shape in [(0, 3), (3, 0), (0, 0), (2, 0, 3)]:
        result = isofold.isotonic_regression(np.zeros(shape, dtype=np.float32), weights=np.ones(shape))
        assert result.x.shape == shape
        assert result.x.dtype == np.float32
        assert result.blocks.tolist() == [0]
        assert result.block_offsets.tolist() == [0] * (int(np.prod(shape[:-1])) + 1)


_NOT_FINITE = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("value", _NOT_FINITE)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_value_that_is_not_finite_is_named(value: float, dtype: str) -> None:
    y = np.arange(12, dtype=dtype).reshape(3, 4)
    y[1, 2] = value
    with pytest.raises(ValueError, match=rf"^y must be finite, but is {value} at row 1, position 2$"):
        isofold.isotonic_regression(y)
    with pytest.raises(ValueError, match=rf"^y must be finite, but is {value} at row 2, position 1$"):
        isofold.isotonic_regression(y, axis=0)
    with pytest.raises(ValueError, match=rf"^y must be finite, but is {value} at row 2, position 3$"):
        isofold.isotonic_regression(y.reshape(-1), offsets=[0, 0, 3, 12])


@pytest.mark.parametrize("value", [*_NOT_FINITE, 0.0, -0.0, -1.0, -5e-324])
@pytest.mark.parametrize("where", [0, 3, 4, 11])
def test_a_bad_weight_is_named(value: float, where: int) -> None:
    w = np.ones(12)
    w[where] = value
    place = rf"at row {where // 4}, position {where % 4}$"
    with pytest.raises(
        ValueError, match=rf"^weights must be finite and greater than zero, but is {value} {place}"
    ):
        isofold.isotonic_regression(np.arange(12.0).reshape(3, 4), weights=w.reshape(3, 4))


def test_a_bad_value_in_a_long_row_is_found() -> None:
    y = np.zeros(300_000, dtype=np.float32)
    y[299_999] = np.nan
    with pytest.raises(ValueError, match="position 299999"):
        isofold.isotonic_regression(y, threads=2)


@pytest.mark.parametrize(
    "value",
    [
        [1j, 2],
        ["1", "2"],
        [b"1", b"2"],
        [None, 1.0],
        [Fraction(1, 2), Fraction(1)],
        [datetime.date(2013, 1, 1)],
        np.array(["2013-01-01"], dtype="datetime64[D]"),
        np.array([1, 2], dtype="timedelta64[s]"),
        np.array([(1.0, 2)], dtype=[("a", float), ("b", int)]),
        {1: 2},
        10**400,
    ],
)
def test_what_does_not_hold_real_numbers_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^y must hold real numbers, not dtype"):
        isofold.isotonic_regression(value)
    with pytest.raises(TypeError, match=r"^weights must hold real numbers, not dtype"):
        isofold.isotonic_regression([1.0, 2.0], weights=value)


def test_wider_floats_are_not_rounded_behind_your_back() -> None:
    with pytest.raises(TypeError, match=r"^y has dtype (longdouble|float128); convert it to float64"):
        isofold.isotonic_regression(np.array([1, 2], dtype=np.longdouble))


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    with pytest.raises(TypeError, match=r"y is a masked array.*y\.compressed\(\)"):
        isofold.isotonic_regression(masked)
    with pytest.raises(TypeError, match="weights is a masked array"):
        isofold.isotonic_regression([1.0, 2.0], weights=masked)


def test_lists_of_different_lengths_point_to_offsets() -> None:
    with pytest.raises(ValueError, match=r"y must be a rectangular array .* with offsets"):
        isofold.isotonic_regression([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("axis", [1, -2, 5])
def test_axis_out_of_range(axis: int) -> None:
    with pytest.raises(ValueError, match=f"axis {axis} is out of range for y with 1 dimensions"):
        isofold.isotonic_regression([1.0], axis=axis)


def test_scalars_and_odd_axes() -> None:
    with pytest.raises(ValueError, match="y must have at least one dimension"):
        isofold.isotonic_regression(1.0)
    with pytest.raises(TypeError):
        isofold.isotonic_regression([1.0], axis=0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offsets", "error", "message"),
    [
        ([1, 4], ValueError, r"offsets must start at 0, but offsets\[0\] is 1"),
        ([0, 3], ValueError, r"offsets must end at the number of values, 4, but offsets\[1\] is 3"),
        ([0, 5], ValueError, r"offsets must end at the number of values, 4, but offsets\[1\] is 5"),
        ([0, 3, 2, 4], ValueError, r"offsets must not fall, but offsets\[2\] is 2 after offsets\[1\], 3"),
        ([0, -1, 4], ValueError, r"offsets\[1\] is -1"),
        (np.array([0, 2**64 - 1, 4], dtype=np.uint64), ValueError, "offsets must not fall"),
        ([], ValueError, "offsets must be 1-D"),
        ([[0, 4]], ValueError, "offsets must be 1-D"),
        (4, ValueError, "offsets must be 1-D"),
        ([0.0, 4.0], TypeError, "offsets must hold integers, not dtype float64"),
        ([False, True], TypeError, "offsets must hold integers, not dtype bool"),
    ],
)
def test_bad_offsets(offsets: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        isofold.isotonic_regression([1.0, 2.0, 3.0, 4.0], offsets=offsets)


def test_offsets_need_a_flat_y() -> None:
    with pytest.raises(ValueError, match=r"offsets cut a 1-D array into rows, but y has shape \(2, 2\)"):
        isofold.isotonic_regression(np.zeros((2, 2)), offsets=[0, 4])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16", "uint64", ">i8"])
def test_offsets_of_any_integer_dtype(dtype: str) -> None:
    offsets = np.array([0, 2, 2, 4], dtype=dtype)
    result = isofold.isotonic_regression([2.0, 1.0, 4.0, 3.0], offsets=offsets)
    assert result.x.tolist() == [1.5, 1.5, 3.5, 3.5]
    assert result.block_offsets.tolist() == [0, 1, 1, 2]


def test_no_ragged_rows_at_all() -> None:
    result = isofold.isotonic_regression([], offsets=[0])
    assert result.blocks.tolist() == [0]
    assert result.block_offsets.tolist() == [0]


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ({"y_min": 2, "y_max": 1}, ValueError),
        ({"y_min": np.nan}, ValueError),
        ({"y_max": np.nan}, ValueError),
        ({"y_min": np.inf}, ValueError),
        ({"y_max": -np.inf}, ValueError),
        ({"y_min": "1"}, TypeError),
        ({"y_min": 1j}, TypeError),
        ({"y_max": [1.0]}, TypeError),
        ({"y_max": object()}, TypeError),
        ({"y_max": 10**400}, ValueError),
    ],
)
def test_bad_bounds(bounds: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"y_min.*y_max|{next(iter(bounds))}"):
        isofold.isotonic_regression([1.0, 2.0], **bounds)


def test_bounds() -> None:
    y = [5.0, -1.0, 0.5, 3.0, 9.0]
    result = isofold.isotonic_regression(y, y_min=1.75, y_max=8)
    assert result.x.tolist() == [1.75, 1.75, 1.75, 3.0, 8.0]
    assert result.blocks.tolist() == [0, 3, 4, 5]
    infinite = isofold.isotonic_regression(y, y_min=-np.inf, y_max=np.inf)
    assert infinite.x.tolist() == [1.5, 1.5, 1.5, 3.0, 9.0]
    # Bounds are rounded to the dtype of y.
    small = isofold.isotonic_regression(np.array([0, 1], dtype=np.float16), y_min=0.1, y_max=0.1)
    assert small.x.tolist() == [float(np.float16(0.1))] * 2


@pytest.mark.parametrize(
    ("threads", "error"),
    [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), ("2", TypeError)],
)
def test_bad_threads(threads: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="threads must be"):
        isofold.isotonic_regression([1.0], threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 7, np.int8(3), 10**30, None])
def test_any_number_of_threads(threads: Any) -> None:
    assert isofold.isotonic_regression(Y, threads=threads).x.tolist() == FIT


@pytest.mark.parametrize("increasing", [1, "auto", None])
def test_increasing_is_a_boolean(increasing: Any) -> None:
    with pytest.raises(TypeError, match="increasing must be True or False"):
        isofold.isotonic_regression(Y, increasing=increasing)
    assert isofold.isotonic_regression(Y, increasing=np.True_).x.tolist() == FIT


def test_options_are_keywords() -> None:
    with pytest.raises(TypeError):
        isofold.isotonic_regression(Y, [1.0, 1.0, 1.0, 1.0])  # type: ignore[misc]


def test_pandas_and_sequences() -> None:
    import pandas as pd

    assert isofold.isotonic_regression(pd.Series(Y, index=list("abcd"))).x.tolist() == FIT
    assert isofold.isotonic_regression(range(4)).x.tolist() == [0, 1, 2, 3]
    assert isofold.isotonic_regression(tuple(Y)).x.tolist() == FIT
    with pytest.raises(TypeError, match="y must hold real numbers"):
        isofold.isotonic_regression(pd.Series([1.0, None], dtype="object"))
