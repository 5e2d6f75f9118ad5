"""Soft ranks and soft sorting: projections onto the permutahedron (Blondel et al. 2020)."""

from __future__ import annotations

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
