"""Soft ranks, soft sorting and soft top-k: projections onto permutahedra (Blondel et al. 2020)."""

from __future__ import annotations

import operator
from typing import Any

import jax
from jax import Array
from jax.typing import ArrayLike

from isofold._soft_arguments import soft_arguments
from isofold.jax._rows import as_rows
from isofold.jax._soft_primitives import soft


def _arguments(regularization: str, strength: float, direction: str) -> tuple[float, float]:
    if isinstance(strength, jax.core.Tracer):
        raise TypeError("regularization_strength must be a number, known when jit traces, not an array")
    return soft_arguments(regularization, strength, direction, ("l2",))


def soft_rank(
    values: ArrayLike,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "ASCENDING",
    axis: int = -1,
    offsets: ArrayLike | None = None,
) -> Array:
    """Soft ranks of every row: 1 for its smallest value, n for its largest; reversed if DESCENDING.

    Parameters
    ----------
    values : array
        Real, of at least one dimension: float16, bfloat16, float32 or float64.
    regularization : "l2"
    regularization_strength : float
        Positive, a number and not an array: each one is compiled for. The smaller, the closer to hard
        ranks; the larger, the closer to the mean rank.
    direction : "ASCENDING" or "DESCENDING"
    axis : int
        Along which rows run.
    offsets : int array of shape (rows + 1,), optional
        Cuts 1-D values into ragged rows.

    Returns
    -------
    Array of values' shape and dtype
        Formed in float64, whether or not jax_enable_x64 is set, and rounded once. A row with a NaN or an
        infinity is NaN. O(n log n) for a row of n.

    Raises
    ------
    ValueError, TypeError
        For a strength that is not positive and finite, and wrong shapes, dtypes, words and offsets at hand.
    """
    strength, sign = _arguments(regularization, regularization_strength, direction)
    rows = as_rows(values, None, True, axis, offsets, name="values")
    return rows.bring_back(soft(rows.values, rows.cuts, "rank", sign, strength, rows.checked))


def soft_sort(
    values: ArrayLike,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "ASCENDING",
    axis: int = -1,
    offsets: ArrayLike | None = None,
) -> Array:
    """Every row softly sorted, rising, or falling if DESCENDING. Parameters are those of `soft_rank`."""
    strength, sign = _arguments(regularization, regularization_strength, direction)
    rows = as_rows(values, None, True, axis, offsets, name="values")
    return rows.bring_back(soft(rows.values, rows.cuts, "sort", sign, strength, rows.checked))


def _count(k: Any, rows: int | None) -> int:
    """k, of rows of that length."""
    if isinstance(k, jax.core.Tracer):
        raise TypeError("k must be an integer, known when jit traces, not an array")
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise TypeError(f"k must be an integer, not {k!r}")
    count = operator.index(k)
    if count < 0:
        raise ValueError(f"k must be at least 0, but is {count}")
    if rows is not None and count > rows:
        raise ValueError(f"k must be from 0 to the length of the rows, {rows}, but is {count}")
    return count


def soft_topk(
    values: ArrayLike,
    k: int,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "DESCENDING",
    axis: int = -1,
    offsets: ArrayLike | None = None,
) -> Array:
    """A soft mask of the k largest values of every row, or of the k smallest if ASCENDING.

    Parameters
    ----------
    values : array
        As for `soft_rank`.
    k : int
        From 0 to the length of the rows, a number and not an array; ragged rows that are shorter are taken
        whole.
    regularization : "l2"
    regularization_strength : float
        Positive. The smaller, the fewer values lie between 0 and 1.
    direction, axis, offsets
        As for `soft_rank`.

    Returns
    -------
    Array of values' shape and dtype
        In [0, 1], with sum k but for rounding: the point with that sum, of [0, 1]^n, closest to values /
        strength. Most of it is 0 or 1 exactly.

    Raises
    ------
    ValueError, TypeError
        As `soft_rank`; for a k out of range, too.

    Notes
    -----
    Sander et al. 2023, with p = 2. Cost and derivatives are those of `soft_rank`.
    """
    strength, sign = _arguments(regularization, regularization_strength, direction)
    rows = as_rows(values, None, True, axis, offsets, name="values")
    count = _count(k, rows.values.shape[-1] if rows.cuts is None else None)
    return rows.bring_back(soft(rows.values, rows.cuts, "topk", -sign, strength, rows.checked, count))
