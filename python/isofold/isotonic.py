"""Isotonic regression of NumPy arrays: one row, a batch along any axis, or ragged rows."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from isofold import _native
from isofold._arrays import (
    AnyArray,
    FloatArray,
    cuda_device,
    fit_bounds,
    flat,
    normalize_axis,
    real_array,
    row_offsets,
    thread_count,
)

__all__ = ["IsotonicResult", "isotonic_gradient", "isotonic_regression"]


_Scalar = TypeVar("_Scalar", bound=np.generic)


class _Problem(NamedTuple):
    """A batch of rows laid out flat, as the native module takes it."""

    values: FloatArray
    weights: FloatArray | None
    offsets: NDArray[np.int64] | None
    row_length: int | None
    increasing: bool
    lower: float
    upper: float
    shape: tuple[int, ...]  # of y with the fitted axis moved to the end
    axis: int  # where that axis belongs
    threads: int

    def bring_back(self, values: NDArray[_Scalar]) -> NDArray[_Scalar]:
        """Flat values in y's shape."""
        rows = values.reshape(self.shape)
        return rows if self.axis == len(self.shape) - 1 else np.moveaxis(rows, -1, self.axis)

    def row_ends(self) -> NDArray[np.int64]:
        """Flat positions where rows start, and the end of the last."""
        if self.offsets is not None:
            return self.offsets
        rows = int(np.prod(self.shape[:-1], dtype=np.int64))
        return np.arange(rows + 1, dtype=np.int64) * self.shape[-1]


class IsotonicResult:
    """What `isotonic_regression` returns. Immutable, picklable, comparable with ==.

    Blocks are the maximal runs of equal exact mean, numbered over all rows one after another; they do not
    depend on how the fit was computed, and y_min and y_max do not change them. Positions are flat: for a
    batch they count through ``np.moveaxis(y, axis, -1)`` in C order.

    Attributes
    ----------
    x : ndarray of y's shape and dtype
        The fit.
    weights : float64 ndarray of shape (number of blocks,)
        Each block's total weight, the exact sum rounded once; without weights, its length.
    blocks : int64 ndarray of shape (number of blocks + 1,)
        Where each block starts, and after the last one the number of elements: block j holds the flat
        elements ``blocks[j]`` to ``blocks[j + 1] - 1``. For one row these are SciPy's blocks.
    block_offsets : int64 ndarray of shape (number of rows + 1,)
        Row r owns blocks ``block_offsets[r]`` to ``block_offsets[r + 1] - 1``. An empty row owns none.
    block_mask : boolean ndarray of y's shape
        True where a block starts. Read-only.

    Notes
    -----
    For `isotonic_gradient` the result keeps y and the weights, by reference where they needed no conversion:
    a gradient taken after they were changed in place would belong to the changed values.

    For a y in the memory of a GPU all of these are arrays of y's library in that memory. There ``x`` and
    ``block_mask`` wait for nothing, while ``weights``, ``blocks`` and ``block_offsets``, whose sizes only the
    device knows, are computed when first read, and wait for it. Such a result is compared by identity, and
    not picklable.
    """

    __slots__ = ("_block_offsets", "_blocks", "_problem", "_starts", "_weights", "x")

    x: FloatArray
    _problem: _Problem
    _starts: NDArray[np.uint8]
    _weights: NDArray[np.float64] | None
    _blocks: NDArray[np.int64] | None
    _block_offsets: NDArray[np.int64] | None

    def __init__(self, x: FloatArray, problem: _Problem, starts: NDArray[np.uint8]) -> None:
        _set_x(self, x)
        _set_problem(self, problem)
        _set_starts(self, starts)
        _set_blocks(self, None)
        _set_block_offsets(self, None)
        if problem.weights is None:
            _set_weights(self, None)
            return
        # Now, and not when first asked for: by then the caller may have changed them.
        weights = _native.block_weights(
            problem.values, problem.weights, problem.offsets, problem.row_length, starts, problem.threads
        )
        _set_weights(self, weights)

    @property
    def weights(self) -> NDArray[np.float64]:
        if self._weights is None:
            self._assign({"_weights": _native.block_lengths(self.blocks)})
        assert self._weights is not None
        return self._weights

    @property
    def blocks(self) -> NDArray[np.int64]:
        if self._blocks is None:
            # NumPy has two kinds of 64-bit integers; users expect the one named int64.
            self._assign({"_blocks": _native.block_bounds(self._starts).view(np.int64)})
        assert self._blocks is not None
        return self._blocks

    @property
    def block_offsets(self) -> NDArray[np.int64]:
        if self._block_offsets is None:
            ends = np.searchsorted(self.blocks[:-1], self._problem.row_ends(), side="left")
            self._assign({"_block_offsets": ends.astype(np.int64, copy=False)})
        assert self._block_offsets is not None
        return self._block_offsets

    @property
    def block_mask(self) -> NDArray[np.bool_]:
        mask = self._problem.bring_back(self._starts.view(np.bool_))
        mask.flags.writeable = False
        return mask

    def _gradient(self, grad: AnyArray) -> tuple[FloatArray, FloatArray | None]:
        problem = self._problem
        if cuda_device(grad) is not None:
            raise TypeError("grad is on a CUDA device, but the fit is in host memory: move one to the other")
        given = real_array(grad, "grad")
        if given.shape != self.x.shape:
            raise ValueError(f"grad has shape {given.shape}, but the fit has shape {self.x.shape}")
        grad_values, grad_weights = _native.gradient(
            problem.values,
            problem.weights,
            problem.offsets,
            problem.row_length,
            problem.increasing,
            problem.lower,
            problem.upper,
            self._starts,
            flat(np.moveaxis(given, problem.axis, -1)),
            problem.weights is not None,
            None,
            problem.threads,
        )
        return (
            problem.bring_back(grad_values),
            None if grad_weights is None else problem.bring_back(grad_weights),
        )

    def _assign(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot assign to {name!r}: an IsotonicResult is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name!r}: an IsotonicResult is immutable")

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._assign(state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IsotonicResult):
            return NotImplemented
        return (
            self.x.dtype == other.x.dtype
            and np.array_equal(self.x, other.x)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.blocks, other.blocks)
            and np.array_equal(self.block_offsets, other.block_offsets)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"IsotonicResult(x={self.x!r}, weights={self.weights!r}, blocks={self.blocks!r}, "
            f"block_offsets={self.block_offsets!r})"
        )


# A result takes no assignments; these are a third of object.__setattr__'s time.
_set_x = IsotonicResult.__dict__["x"].__set__
_set_problem = IsotonicResult.__dict__["_problem"].__set__
_set_starts = IsotonicResult.__dict__["_starts"].__set__
_set_weights = IsotonicResult.__dict__["_weights"].__set__
_set_blocks = IsotonicResult.__dict__["_blocks"].__set__
_set_block_offsets = IsotonicResult.__dict__["_block_offsets"].__set__


def isotonic_regression(
    y: AnyArray,
    *,
    weights: AnyArray | None = None,
    increasing: bool = True,
    y_min: float | None = None,
    y_max: float | None = None,
    axis: int = -1,
    offsets: AnyArray | None = None,
    threads: int | None = None,
) -> IsotonicResult:
    """The non-decreasing rows nearest to those of `y` in weighted least squares, exact and rounded once.

    Every fitted value is the exact real mean of its block, for the floats given, rounded once to y's dtype
    (nearest, ties to even). So the fit never steps the wrong way, stays within its row's range, leaves a
    sorted row as it is, is idempotent, and is the same to the bit for a row alone or in any batch, on any
    number of threads.

    Parameters
    ----------
    y : array_like of real numbers, any shape with at least one dimension
        float16, float32 and float64 are fitted as they are; integers and booleans become float64, those
        beyond 2**53 rounded. Any strides, alignment and byte order; never written to. Must be finite.
    weights : array_like of real numbers, optional
        Finite and greater than zero. Of y's shape, or one weight for each position of a row (1-D, as long as
        y along `axis`), or as many dimensions as y with some of size 1, or a scalar. Never rounded to y's
        dtype: float16, float32 and float64 weights are used as they are.
    increasing : bool
        False fits non-increasing rows.
    y_min, y_max : float, optional
        The rounded fit is clipped to these, themselves rounded to y's dtype. Blocks stay unclipped.
    axis : int
        The dimension along which a row lies.
    offsets : array_like of integers, shape (number of rows + 1,), optional
        For a 1-D y that holds rows of different lengths one after another: row r is
        ``y[offsets[r]:offsets[r + 1]]``. Starts at 0, never falls, ends at ``len(y)``.
    threads : int, optional
        How many threads to use, the calling one included; by default the environment's ISOFOLD_NUM_THREADS,
        else the processors that this process may use. Changes no bit.

    Returns
    -------
    IsotonicResult
        With ``.x``, ``.weights``, ``.blocks`` and ``.block_offsets``.

    Raises
    ------
    ValueError
        A NaN or infinity in y, a weight that is not finite and greater than zero (naming row and position),
        weights of the wrong shape, bad offsets, an axis out of range, y_min above y_max, threads below 1.
    TypeError
        Masked arrays; dtypes that are not real numbers (complex, object, strings, dates) or are wider than
        float64.
    MemoryError
        Out of memory.
    RuntimeError
        An array on a GPU, and no CUDA in this build or on this machine, or what CUDA reports.

    Device arrays
    -------------
    Where y is a torch CUDA tensor, a CuPy array, a JAX array on a CUDA device, or another array on one with
    ``__dlpack__`` and ``__array_namespace__``, the fit runs there (isofold must have been built with CUDA),
    has the same bits, and everything comes back as arrays of y's library. weights and offsets, where given,
    are of that library and on that device; weights may be a number. What differs:

    - The call only enqueues work and waits for nothing: on the current stream of torch or CuPy, or on the
      legacy default stream, ordered after the inputs and before the result's readers by DLPack. With torch it
      can be captured in a CUDA graph.
    - So values are judged on the device, and nothing raises for them: a row with a NaN, an infinity or a
      weight that is not positive comes out NaN, the others right. Offsets that do not rise from 0 to the end
      make all of it NaN.
    - float32 and float64 are fitted; integers and booleans become the library's default float. float16 and
      bfloat16 weights and gradients are taken as the float32 they equal, integer ones as the widest float
      that the library has; their gradients are of that type.
    - torch's autograd is not told: a tensor that requires a gradient is a TypeError where gradients are
      enabled. threads means nothing.

    Notes
    -----
    O(n) work for n elements apart from a merge tree of O(m log m) for the m chunks of a long row. The GIL is
    released and signals such as KeyboardInterrupt are served while it runs.

    The fit is the slope of the lower convex hull of the running totals (Barlow, Bartholomew, Bremner and
    Brunk 1972, Statistical Inference under Order Restrictions); chunk hulls are merged as in 'Merge Hulls
    Without Copying Vertices', sections 3 and 4.

    Examples
    --------
    >>> import isofold
    >>> result = isofold.isotonic_regression([1.5, 1, 4, 6, 5.7, 5, 7.8, 9, 7.5, 9.5, 9])
    >>> result.x.tolist()[:3]
    [1.25, 1.25, 4.0]
    >>> result.blocks.tolist()
    [0, 2, 3, 6, 7, 9, 11]
    """
    if (
        type(y) is np.ndarray
        and weights is None
        and offsets is None
        and threads is None
        and y_min is None
        and y_max is None
        and axis == -1
        and (increasing is True or increasing is False)
    ):
        row = _fit_plain_row(y, increasing)
        if row is not None:
            return row
    if any(cuda_device(array) is not None for array in (y, weights, offsets)):
        from isofold import _device

        return _device.isotonic_regression(y, weights, increasing, y_min, y_max, axis, offsets, threads)
    problem = _pose(y, weights, increasing, y_min, y_max, axis, offsets, threads)
    fitted, starts = _fit(problem)
    return IsotonicResult(problem.bring_back(fitted), problem, starts)


def isotonic_gradient(result: IsotonicResult, grad: AnyArray) -> tuple[FloatArray, FloatArray | None]:
    """The gradient of a loss in y and in the weights, from its gradient in the fit.

    Within a block of weight W, with G the sum of `grad` over the block and S that of w y: dL/dy_i = w_i G /
    W, the exact value rounded once; dL/dw_i = (y_i - m) q with m = S / W and q = G / W each rounded once to
    float64, in float64, then rounded to its dtype, and 0 in blocks of one element. Elements whose fit lies
    strictly outside y_min and y_max get 0. A block in which `grad` is NaN or infinite is NaN.

    Parameters
    ----------
    result : IsotonicResult
        From `isotonic_regression`.
    grad : array_like of real numbers, of the shape of ``result.x``
        dL/dx. In device memory if the fit is, and then so are the results.

    Returns
    -------
    grad_y : ndarray of y's shape and dtype
    grad_weights : ndarray of y's shape and the weights' dtype, or None
        None when the fit had no weights. Where weights were broadcast over rows this is the gradient of each
        element's own weight: sum it over the rows to get that of the shared one.

    Raises
    ------
    ValueError
        grad has another shape than the fit.
    TypeError
        result is no IsotonicResult, or grad does not hold real numbers.

    Notes
    -----
    O(n). The blocks are those of the exact solution, so the gradient never depends on a tolerance.
    """
    if not isinstance(result, IsotonicResult):
        raise TypeError(f"result must come from isotonic_regression, but is a {type(result).__name__}")
    return result._gradient(grad)


def _fit_plain_row(y: FloatArray, increasing: bool) -> IsotonicResult | None:
    """For small rows, whose fit takes less than what `_pose` does; None where it is no such row."""
    fitted = np.empty_like(y)
    starts = np.empty(y.size, np.uint8)
    if not _native.fit_row(y, increasing, fitted, starts):
        return None
    problem = _Problem(y, None, None, None, increasing, -np.inf, np.inf, y.shape, 0, 0)
    return IsotonicResult(fitted, problem, starts)


def _pose(
    y: AnyArray,
    weights: AnyArray | None,
    increasing: bool,
    y_min: float | None,
    y_max: float | None,
    axis: int,
    offsets: AnyArray | None,
    threads: int | None,
) -> _Problem:
    values = real_array(y, "y")
    along = normalize_axis(axis, values.ndim)
    if not isinstance(increasing, (bool, np.bool_)):
        raise TypeError(f"increasing must be True or False, not {increasing!r}")
    lower, upper = fit_bounds(y_min, y_max)
    rows = values if along == values.ndim - 1 else np.moveaxis(values, along, -1)
    ragged = None
    if offsets is not None:
        if values.ndim != 1:
            raise ValueError(f"offsets cut a 1-D array into rows, but y has shape {values.shape}")
        ragged = row_offsets(offsets, values.size)
    return _Problem(
        values=flat(rows),
        weights=None if weights is None else flat(_spread_weights(weights, values.shape, along)),
        offsets=ragged,
        row_length=None if values.ndim == 1 else rows.shape[-1],
        increasing=bool(increasing),
        lower=lower,
        upper=upper,
        shape=rows.shape,
        axis=along,
        threads=thread_count(threads),
    )


def _spread_weights(weights: AnyArray, shape: tuple[int, ...], axis: int) -> FloatArray:
    """The weights over y's shape, with the fitted axis moved to the end."""
    array = real_array(weights, "weights")
    if array.shape == shape:
        return array if axis == array.ndim - 1 else np.moveaxis(array, axis, -1)
    if array.ndim == 1 and len(shape) > 1 and array.size == shape[axis]:
        rows = (*shape[:axis], *shape[axis + 1 :], shape[axis])
        return np.broadcast_to(array, rows)
    if array.ndim in (0, len(shape)):
        try:
            return np.moveaxis(np.broadcast_to(array, shape), axis, -1)
        except ValueError:
            pass
    raise ValueError(
        f"weights has shape {array.shape}: it must be that of y, {shape}, or ({shape[axis]},) for one weight "
        f"a position along axis {axis}, or broadcast to that of y with as many dimensions"
    )


def _fit(
    problem: _Problem,
    *,
    tie_offsets: NDArray[np.int64] | None = None,
    out_dtype: str | None = None,
    value_name: str = "y",
    weight_name: str = "weights",
) -> tuple[FloatArray, NDArray[np.uint8]]:
    """Flat fit and block starts; errors in the terms of the caller's arguments."""
    try:
        return _native.fit(
            problem.values,
            problem.weights,
            problem.offsets,
            problem.row_length,
            problem.increasing,
            problem.lower,
            problem.upper,
            tie_offsets,
            out_dtype,
            problem.threads,
        )
    except ValueError:
        with _native.DefaultFloatEnvironment():
            _blame(problem, problem.values, value_name, positive=False)
            if problem.weights is not None:
                _blame(problem, problem.weights, weight_name, positive=True)
        raise


def _blame(problem: _Problem, array: FloatArray, name: str, *, positive: bool) -> None:
    """Raises for the first bad element of `array`, if any: the library has refused the call already."""
    bad = ~np.isfinite(array)
    if positive:
        bad |= ~(array > 0)
    if not bad.any():
        return
    at = int(np.argmax(bad))
    ends = problem.row_ends()
    row = int(np.searchsorted(ends, at, side="right")) - 1
    position = at - int(ends[row])
    need = "finite and greater than zero" if positive else "finite"
    raise ValueError(f"{name} must be {need}, but is {array[at]} at row {row}, position {position}") from None
