"""Sums, dot products and norms of segments: the exact real values, each rounded once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isofold import _native
from isofold._arrays import (
    AnyArray,
    FloatArray,
    cuda_device,
    flat,
    normalize_axis,
    real_array,
    row_offsets,
    thread_count,
)

__all__ = ["segment_dot", "segment_dots", "segment_norm", "segment_sum"]

# A value for each segment; of a single segment, a scalar.
Values: TypeAlias = Any

_MOST_AT_ONCE = 16
_FLOATS = ("float16", "float32", "float64")


def segment_sum(
    a: AnyArray,
    offsets: AnyArray | None = None,
    *,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
) -> Values:
    """The sum of every segment of `a`: the exact real value, rounded once.

    So it is a function of the segment's own elements: not of their order, of other segments, of where it
    starts, of the number of threads, or of the device. Nothing overflows or underflows midway.

    Parameters
    ----------
    a : array_like of real numbers
        float16, float32 and float64 are summed as they are; integers and booleans become float64, those
        beyond 2**53 rounded. Any strides, alignment and byte order; never written to.
    offsets : array_like of integers, shape (number of segments + 1,), optional
        Cuts a 1-D `a` into segments: segment s is ``a[offsets[s]:offsets[s + 1]]``. Starts at 0, never falls,
        ends at ``len(a)``.
    axis : int
        Without offsets, the dimension along which the segments lie: a 1-D array is one.
    dtype : float16, float32 or float64, optional
        What the exact value is rounded to; by default a's dtype.
    threads : int, optional
        How many threads to use, the calling one included; by default the environment's ISOFOLD_NUM_THREADS,
        else the processors that this process may use. Changes no bit.

    Returns
    -------
    ndarray or scalar
        With offsets one value for each segment; else the shape of `a` without `axis`, and for a 1-D `a` a
        scalar. An empty segment has the sum 0.0, and no sum is -0.0.

    Raises
    ------
    ValueError
        Offsets that do not rise from 0 to the end, offsets with an array that is not 1-D, an axis out of
        range, threads below 1.
    TypeError
        Masked arrays; dtypes that are not real numbers or are wider than float64; another `dtype`.

    Notes
    -----
    A NaN, or infinities of both signs, make the segment's sum NaN, and another infinity makes it that; other
    segments are untouched. A sum beyond the dtype is infinite. Linear in the number of elements.

    Of arrays in the memory of a CUDA device (torch, CuPy, JAX, ...) all arguments must be there, of one
    library, and so are the values; the call waits for nothing, and offsets that do not rise from 0 to the end
    make all values NaN. There float16 and bfloat16 are taken of torch and CuPy.

    Examples
    --------
    >>> import isofold
    >>> isofold.segment_sum([1e16, 1.0, -1e16, 0.1, 0.2], [0, 3, 3, 5]).tolist()
    [1.0, 0.0, 0.30000000000000004]
    """
    return _reduce([("sum", a, None)], offsets, axis, dtype, threads)[0]


def segment_dot(
    a: AnyArray,
    b: AnyArray,
    offsets: AnyArray | None = None,
    *,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
) -> Values:
    """The dot product of every segment of `a` with that of `b`: the exact real value, rounded once.

    `b` has the shape of `a`. By default the values have the wider of both dtypes; neither array is rounded.
    A zero times an infinity is NaN. Otherwise as `segment_sum`.

    Examples
    --------
    >>> import isofold
    >>> isofold.segment_dot([1e200, 3.0, -1e200], [1e200, 2.0, 1e200])
    np.float64(6.0)
    """
    return _reduce([("dot", a, b)], offsets, axis, dtype, threads)[0]


def segment_norm(
    a: AnyArray,
    offsets: AnyArray | None = None,
    *,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
) -> Values:
    """The Euclidean norm of every segment of `a`: the square root of the exact sum of squares, rounded once.

    Otherwise as `segment_sum`.

    Examples
    --------
    >>> import isofold
    >>> isofold.segment_norm([[3e-200, 4e-200], [5.0, 12.0]]).tolist()
    [5e-200, 13.0]
    """
    return _reduce([("norm", a, None)], offsets, axis, dtype, threads)[0]


def segment_dots(
    pairs: Iterable[tuple[AnyArray, AnyArray]],
    offsets: AnyArray | None = None,
    *,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
) -> tuple[Values, ...]:
    """Several dot products over the same segments, in one pass over the data.

    All arrays have one shape. The values are those of `segment_dot` of each pair.
    """
    return _reduce([("dot", a, b) for a, b in pairs], offsets, axis, dtype, threads)


_Reduction: TypeAlias = tuple[str, AnyArray, AnyArray | None]


def _reduce(
    reductions: Sequence[_Reduction],
    offsets: AnyArray | None,
    axis: int,
    dtype: DTypeLike | None,
    threads: int | None,
) -> tuple[Values, ...]:
    if not reductions:
        return ()
    arrays = [array for _, a, b in reductions for array in (a, b)]
    if any(cuda_device(array) is not None for array in (*arrays, offsets)):
        from isofold import _device_segments

        return _device_segments.reduce(reductions, offsets, axis, dtype, threads)
    several = len(reductions) > 1
    named = [
        (name, _named(a, "a", index, several), None if b is None else _named(b, "b", index, several))
        for index, (name, a, b) in enumerate(reductions)
    ]
    shape = named[0][1].shape
    for index, (_, a, b) in enumerate(named):
        for array, letter in ((a, "a"), (b, "b")):
            if array is not None and array.shape != shape:
                what = f"{letter} of pair {index}" if several else letter
                first = "a of pair 0" if several else "a"
                raise ValueError(f"{what} has shape {array.shape}, but {first} has shape {shape}")
    along = normalize_axis(axis, len(shape), "a")
    ragged = None
    if offsets is not None:
        if len(shape) != 1:
            raise ValueError(f"offsets cut a 1-D array into segments, but a has shape {shape}")
        ragged = row_offsets(offsets, shape[0])
    count = thread_count(threads)
    length = shape[along]
    outer = (*shape[:along], *shape[along + 1 :])
    found: list[Any] = []
    for start in range(0, len(named), _MOST_AT_ONCE):
        some = named[start : start + _MOST_AT_ONCE]
        types = [_value_dtype(dtype, a, b) for _, a, b in some]
        if ragged is None and length == 0:
            found.extend(np.zeros(outer, form) for form in types)
            continue
        calls = [
            (name, _rows(a, along), None if b is None else _rows(b, along), form)
            for (name, a, b), form in zip(some, types, strict=True)
        ]
        total = int(np.prod(shape, dtype=np.int64))
        found.extend(_native.segment_reductions(calls, ragged, length, total, count))
    if ragged is not None:
        return tuple(found)
    return tuple(values.reshape(outer)[()] for values in found)


def _named(array: AnyArray, letter: str, index: int, several: bool) -> FloatArray:
    return real_array(array, f"{letter} of pair {index}" if several else letter)


def _rows(array: FloatArray, axis: int) -> FloatArray:
    return flat(array if axis == array.ndim - 1 else np.moveaxis(array, axis, -1))


def _value_dtype(dtype: DTypeLike | None, a: NDArray[Any], b: NDArray[Any] | None) -> str:
    if dtype is None:
        found: np.dtype[Any] = a.dtype if b is None else np.result_type(a.dtype, b.dtype)
        return found.newbyteorder("=").name
    return float_name(dtype)


def float_name(dtype: Any) -> str:
    """The name of a dtype that values can have."""
    name = str(np.dtype(dtype).name)
    if name not in _FLOATS:
        raise TypeError(f"dtype must be float16, float32 or float64, not {name}")
    return name
