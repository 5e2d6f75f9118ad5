"""Arguments as users give them, made into the flat arrays that the native module takes."""

from __future__ import annotations

import operator
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]


class DeviceArray(Protocol):
    """An array that DLPack can hand over: of torch, CuPy, JAX and others."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


AnyArray: TypeAlias = ArrayLike | DeviceArray


_Scalar = TypeVar("_Scalar", bound=np.generic)

_MOST_THREADS = 2**31 - 1
_CUDA_MEMORY = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged


def cuda_device(value: object) -> int | None:
    """The number of the CUDA device whose memory holds the array `value`; None for everything else."""
    if isinstance(value, (np.ndarray, list, tuple, float, int)):
        return None
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        return None
    try:
        kind, number = ask()
    except Exception:
        # An array spread over devices, a tracer: no array that could be handed over.
        return None
    return int(number) if int(kind) in _CUDA_MEMORY else None


def unmasked(value: Any, name: str) -> NDArray[Any]:
    """`value` as an array. The values under a mask are anything: using them would be a guess."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose masked values have no meaning here")
    return np.asarray(value)


def real_array(value: AnyArray, name: str) -> FloatArray:
    """`value` as a float16, float32 or float64 array; integers and booleans become float64.

    Integers beyond 2**53 are rounded by that conversion. Floats are never converted, so that the caller's own
    values are fitted. The result may be a view of `value`, of any strides, alignment and byte order.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, which has no place for the masked values in a fit: "
            f"pass the valid ones, {name}.compressed(), or give masked values through weights"
        )
    try:
        array: NDArray[Any] = np.asarray(cast("ArrayLike", value))
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array of real numbers; rows of different lengths go into one "
            f"1-D array with offsets ({error})"
        ) from error
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array
    if array.dtype.kind == "f":
        raise TypeError(
            f"{name} has dtype {array.dtype}; convert it to float64 first, which rounds its values"
        )
    raise TypeError(f"{name} must hold real numbers, not dtype {array.dtype}")


def flat(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """`array` in C order as one contiguous, aligned, native-endian dimension: a view where it already is
    that."""
    if array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
        return array.reshape(-1)
    native = array.dtype.newbyteorder("=")
    return np.require(array, dtype=native, requirements=["C_CONTIGUOUS", "ALIGNED"]).reshape(-1)


def row_offsets(offsets: AnyArray, total: int) -> NDArray[np.int64]:
    """Ragged rows: row r holds elements offsets[r] to offsets[r + 1] - 1. Rises from 0 to `total`."""
    array = unmasked(offsets, "offsets")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"offsets must be 1-D with one entry more than there are rows, but has shape {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"offsets must hold integers, not dtype {array.dtype}")
    if array[0] != 0:
        raise ValueError(f"offsets must start at 0, but offsets[0] is {array[0]}")
    falls = np.flatnonzero(array[1:] < array[:-1])
    if falls.size:
        at = int(falls[0]) + 1
        raise ValueError(
            f"offsets must not fall, but offsets[{at}] is {array[at]} "
            f"after offsets[{at - 1}], {array[at - 1]}"
        )
    if array[-1] != total:
        raise ValueError(
            f"offsets must end at the number of values, {total}, but offsets[{array.size - 1}] is {array[-1]}"
        )
    return np.require(array, dtype=np.int64, requirements=["C_CONTIGUOUS", "ALIGNED"])


def normalize_axis(axis: int, ndim: int, name: str = "y") -> int:
    """`axis` counted from the front."""
    if ndim == 0:
        raise ValueError(f"{name} must have at least one dimension, but is a scalar")
    position = operator.index(axis)
    if not -ndim <= position < ndim:
        raise ValueError(f"axis {position} is out of range for {name} with {ndim} dimensions")
    return position % ndim


def thread_count(threads: int | None) -> int:
    """0 when left to the library: ISOFOLD_NUM_THREADS, else the processors this process may use."""
    if threads is None:
        return 0
    if isinstance(threads, (bool, np.bool_)):
        raise TypeError("threads must be an integer of at least 1, or None, not a boolean")
    try:
        count = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads must be an integer of at least 1, or None, not {threads!r}") from None
    if count < 1:
        raise ValueError(f"threads must be at least 1, or None for the default, but is {count}")
    return min(count, _MOST_THREADS)


def fit_bounds(y_min: float | None, y_max: float | None) -> tuple[float, float]:
    """Bounds as floats, an absent one as an infinity."""
    lower = -np.inf if y_min is None else _bound(y_min, "y_min")
    upper = np.inf if y_max is None else _bound(y_max, "y_max")
    if lower == np.inf or upper == -np.inf or lower > upper:
        raise ValueError(f"no value lies between y_min = {y_min} and y_max = {y_max}")
    return lower, upper


def _bound(value: float, name: str) -> float:
    if isinstance(value, (complex, str, bytes)) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a real number or None, not {value!r}")
    try:
        bound = float(value)
    except TypeError:
        raise TypeError(f"{name} must be a real number or None, not {value!r}") from None
    except OverflowError:
        raise ValueError(f"{name} is too large for a float64") from None
    if np.isnan(bound):
        raise ValueError(f"{name} is not a number")
    return bound
