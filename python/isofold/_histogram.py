"""Histograms of gradients over binned features: integer sums, so nothing depends on an order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold import _native
from isofold._arrays import cuda_device, flat, real_array, thread_count, unmasked

__all__ = ["GradientGrid", "Histogram", "QuantizedGradients", "histogram", "quantize_gradients"]

MOST_ROWS = 2**31 - 1


class GradientGrid(NamedTuple):
    """What a unit of the integer sums is worth: ``2.0**gradient_exponent``, ``2.0**hessian_exponent``."""

    gradient_exponent: int
    hessian_exponent: int


class QuantizedGradients(NamedTuple):
    """Each row's gradient and hessian as integers on a grid: what `quantize_gradients` returns."""

    values: NDArray[np.int32]  # (rows, 2): gradient, hessian
    grid: GradientGrid


def quantize_gradients(
    gradients: ArrayLike,
    hessians: ArrayLike | None = None,
    *,
    grid: GradientGrid | None = None,
    threads: int | None = None,
) -> QuantizedGradients:
    """Round gradients and hessians, once, to a fixed-point grid.

    The unit of the gradients is the power of two that makes the largest magnitude 2**28 to 2**29 units, that
    of the hessians the one that makes the largest 2**23 to 2**24. Rounding is to nearest, ties to even; a
    hessian above zero becomes at least one unit. The grid depends on the two maxima alone.

    Parameters
    ----------
    gradients, hessians : array_like of shape (rows,)
        float32 or float64. Hessians must not be negative; without them all are one.
    grid : GradientGrid, optional
        Put them on this grid, which must hold them: for histograms that are to be added or subtracted.
    """
    g = _gradient_array(gradients, "gradients")
    h = None if hessians is None else _gradient_array(hessians, "hessians")
    if h is not None and h.shape != g.shape:
        raise ValueError(f"hessians has shape {h.shape}, but gradients has shape {g.shape}")
    if grid is not None:
        grid = GradientGrid(*grid)
    pairs, exponents = _native.quantize_gradients(g, h, grid, thread_count(threads))
    return QuantizedGradients(pairs.view(np.int32).reshape(-1, 2), GradientGrid(*exponents))


class Histogram:
    """Sums over the rows in each bin, by node and feature; exact in the grid's units.

    Attributes
    ----------
    gradients, hessians : int64 ndarray of shape (nodes, features, bins)
        Sums of the quantised gradients and hessians.
    counts : int32 ndarray of the same shape
        Numbers of rows.
    grid : GradientGrid
        What the sums' units are worth.
    """

    __slots__ = ("counts", "gradients", "grid", "hessians")

    gradients: NDArray[np.int64]
    hessians: NDArray[np.int64]
    counts: NDArray[np.int32]
    grid: GradientGrid

    def __init__(self, gradients: Any, hessians: Any, counts: Any, grid: GradientGrid) -> None:
        self.gradients = gradients
        self.hessians = hessians
        self.counts = counts
        self.grid = GradientGrid(*grid)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(nodes, features, bins)"""
        nodes, features, bins = self.counts.shape
        return nodes, features, bins

    def subtract(self, child: Histogram) -> Histogram:
        """The histogram of the rows that are not in `child`, a part of these; also ``self - child``."""
        if child.grid != self.grid:
            raise ValueError(
                f"child is on another grid, {tuple(child.grid)}, not {tuple(self.grid)}: "
                "quantise once, or pass grid="
            )
        if child.shape != self.shape:
            raise ValueError(f"child has shape {child.shape}, but its parent has shape {self.shape}")
        beyond = np.argwhere(child.counts > self.counts)
        if len(beyond):
            node, feature, bin_ = (int(i) for i in beyond[0])
            raise ValueError(
                f"child: node {node}, feature {feature}, bin {bin_} has "
                f"{child.counts[node, feature, bin_]} rows, "
                f"and its parent {self.counts[node, feature, bin_]}"
            )
        return Histogram(
            self.gradients - child.gradients,
            self.hessians - child.hessians,
            self.counts - child.counts,
            self.grid,
        )

    __sub__ = subtract

    def select(self, nodes: Any) -> Histogram:
        """These nodes of it, in this order."""
        index = np.atleast_1d(np.asarray(nodes))
        return Histogram(self.gradients[index], self.hessians[index], self.counts[index], self.grid)

    @property
    def gradient_sums(self) -> NDArray[np.float64]:
        """The sums of gradients as float64, each rounded once."""
        return np.ldexp(self.gradients.astype(np.float64), self.grid.gradient_exponent)

    @property
    def hessian_sums(self) -> NDArray[np.float64]:
        """The sums of hessians as float64, each rounded once."""
        return np.ldexp(self.hessians.astype(np.float64), self.grid.hessian_exponent)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return self.grid == other.grid and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("gradients", "hessians", "counts")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        nodes, features, bins = self.shape
        return f"Histogram({nodes} nodes, {features} features, {bins} bins)"


def histogram(
    bins: ArrayLike,
    gradients: ArrayLike | QuantizedGradients,
    hessians: ArrayLike | None = None,
    node_ids: ArrayLike | None = None,
    *,
    nodes: int | None = None,
    rows: ArrayLike | None = None,
    bin_count: int | None = None,
    grid: GradientGrid | None = None,
    threads: int | None = None,
) -> Histogram:
    """Sum gradients, hessians and rows by node, feature and bin, without rounding.

    Parameters
    ----------
    bins : uint8 or uint16 array_like of shape (rows, features)
        Each row's bin in each feature, in any memory layout. A missing value has a bin of its own.
    gradients, hessians : array_like of shape (rows,), or the result of `quantize_gradients`
        Quantised over all rows, whatever `rows` and `node_ids` select, so that the histograms of all nodes of
        a tree are on one grid. To build several, quantise once.
    node_ids : integer array_like of shape (rows,), optional
        The node of each row, -1 for none. Default: all rows in one node.
    nodes : int, optional
        The number of nodes, by default the largest of `node_ids` and one more.
    rows : integer array_like, optional
        Only these rows. One that comes twice counts twice.
    bin_count : int, optional
        The number of bins, by default the largest in `bins` and one more.

    Returns
    -------
    Histogram
        The same bits for any order of the rows and any number of threads.
    """
    matrix = _bin_array(bins)
    if isinstance(gradients, QuantizedGradients):
        if hessians is not None or grid is not None:
            raise TypeError("hessians and grid are part of quantised gradients already")
        quantized = gradients
    else:
        quantized = quantize_gradients(gradients, hessians, grid=grid, threads=threads)
    if len(quantized.values) != len(matrix):
        raise ValueError(f"gradients has {len(quantized.values)} rows, but bins has {len(matrix)}")
    ids = None if node_ids is None else whole_numbers(node_ids, "node_ids", np.int32)
    if ids is not None and len(ids) != len(matrix):
        raise ValueError(f"node_ids has {len(ids)} entries, but bins has {len(matrix)} rows")
    subset = None if rows is None else whole_numbers(rows, "rows", np.int64)
    if nodes is None:
        nodes = 1 if ids is None else int(ids.max(initial=0)) + 1
    if bin_count is None:
        bin_count = int(matrix.max(initial=0)) + 1
    _check_ranges(subset, ids, len(matrix), nodes)
    pairs = _pairs_of(quantized.values)
    if pairs.ctypes.data % 8:
        pairs = pairs.copy()
    arrays = _native.histogram(
        matrix,
        pairs,
        count_of(bin_count, "bin_count", 65536),
        ids,
        count_of(nodes, "nodes", MOST_ROWS),
        subset,
        thread_count(threads),
    )
    shape = (nodes, matrix.shape[1], bin_count)
    return Histogram(
        arrays[0].view(np.int64).reshape(shape),
        arrays[1].view(np.int64).reshape(shape),
        arrays[2].view(np.int32).reshape(shape),
        quantized.grid,
    )


def _pairs_of(values: Any) -> NDArray[np.int32]:
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.newbyteorder("=") != np.int32:
        raise TypeError(
            "gradients: quantised ones are int32 of shape (rows, 2), as quantize_gradients returns them, "
            f"not {array.dtype} of shape {array.shape}"
        )
    return flat(array)


def _refuse_device(value: object, name: str) -> None:
    if cuda_device(value) is not None:
        raise TypeError(f"{name} is on a GPU: isofold.torch has these functions for torch's tensors")


def _gradient_array(value: ArrayLike, name: str) -> NDArray[np.floating[Any]]:
    _refuse_device(value, name)
    array = real_array(value, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {array.shape}")
    if array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    return flat(array)


def _bin_array(value: ArrayLike) -> NDArray[np.uint8] | NDArray[np.uint16]:
    _refuse_device(value, "bins")
    array = unmasked(value, "bins")
    if array.dtype.newbyteorder("=") not in (np.uint8, np.uint16):
        raise TypeError(f"bins must be uint8 or uint16, not {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"bins must have shape (rows, features), not {array.shape}")
    if len(array) > MOST_ROWS:
        raise ValueError(f"bins: at most 2**31 - 1 rows, not {len(array)}")
    if not array.dtype.isnative or not array.flags.aligned or any(step < 0 for step in array.strides):
        array = np.require(array, dtype=array.dtype.newbyteorder("="), requirements=["C", "A"])
        if any(step < 0 for step in array.strides):
            array = array.copy()
    return array


def whole_numbers(value: ArrayLike, name: str, dtype: Any) -> Any:
    array = unmasked(value, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must hold integers, not dtype {array.dtype}")
    limits = np.iinfo(dtype)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        at = int(np.argmax((array < limits.min) | (array > limits.max)))
        raise ValueError(f"{name}[{at}] is out of range: {array[at]}")
    return np.require(array, dtype=dtype, requirements=["C", "A"])


def _check_ranges(rows: Any, node_ids: Any, total: int, nodes: int) -> None:
    for array, name, lowest, end in ((rows, "rows", 0, total), (node_ids, "node_ids", -1, nodes)):
        if array is None or not array.size or (array.min() >= lowest and array.max() < end):
            continue
        at = int(np.argmax((array < lowest) | (array >= end)))
        raise ValueError(f"{name}[{at}] is {array[at]}, which is not within [{lowest}, {end})")


def count_of(value: int, name: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"{name} must be from 0 to {most}, not {value}")
    return int(value)
