"""Isotonic regression under JAX's transforms."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from isofold._arrays import fit_bounds
from isofold.jax import _primitives
from isofold.jax._rows import as_rows, ordered_bits, refuse_bad_rows, rounded_bound


def _clip(fit: Array, lower: float, upper: float) -> Array:
    """The fit within the bounds. Its derivative passes where it lies between them or on one."""
    low, high = (jnp.asarray(rounded_bound(bound, fit.dtype)) for bound in (lower, upper))
    below = ordered_bits(fit) < ordered_bits(low)
    above = ordered_bits(fit) > ordered_bits(high)
    outside = (below | above) & ~jnp.isnan(fit)
    return jnp.where(outside, jnp.where(below, low, high), fit)


def isotonic_regression(
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    increasing: bool = True,
    y_min: float | None = None,
    y_max: float | None = None,
    axis: int = -1,
    offsets: ArrayLike | None = None,
    validate: bool = False,
) -> Array:
    """The isotonic regression of every row of an array: the non-decreasing sequence closest to it.

    Parameters
    ----------
    y : array
        Real, of at least one dimension: float16, bfloat16, float32 or float64 (CUDA takes the last two).
        Integers become JAX's default floating type.
    weights : array or float, optional
        Positive, of y's shape or broadcast to it, of a dtype of their own.
    increasing : bool
        False: the non-increasing fit.
    y_min, y_max : float, optional
        The rounded fit is clipped to these. Where it lies strictly outside, no gradient passes.
    axis : int
        Along which rows run.
    offsets : int array of shape (rows + 1,), optional
        Cuts a 1-D y into ragged rows: row r holds ``y[offsets[r]:offsets[r + 1]]``. int32 or int64.
    validate : bool
        Raise where a row cannot be fitted. This waits for the device, and works outside of jit only.

    Returns
    -------
    Array of y's shape and dtype
        Each value is the exact real one, rounded once. A row with a NaN, an infinity or a weight that is not
        positive is NaN; the others are untouched. So is all of it where offsets that are not at hand (traced,
        or in a GPU's memory) do not rise from 0 to the number of values.

    Raises
    ------
    ValueError, TypeError
        For wrong shapes, dtypes, bounds, offsets at hand, and what ``validate`` finds.

    Notes
    -----
    Gradients in y are exact too, rounded once; those in weights are (y_i - m) G / W in float64. Blocks come
    from the solver. Where blocks join or part the fit has no derivative: the one given is that of the
    blocks as they are. Forward mode without weights is exact; with weights it is float64. Second
    derivatives with weights are float64 where jax_enable_x64 is set, else float32. Linear in the number of
    elements but for O(m log m) for m chunks of a row. The fit is the slope of the lower convex hull of the
    running totals (Barlow et al. 1972).
    """
    lower, upper = fit_bounds(y_min, y_max)
    rows = as_rows(y, weights, increasing, axis, offsets)
    if validate:
        refuse_bad_rows(rows)
    fit, _ = _primitives.fit(rows.values, rows.weights, rows.cuts, increasing, rows.checked)
    if lower > -math.inf or upper < math.inf:
        fit = _clip(fit, lower, upper)
    return rows.bring_back(fit)


def blocks(
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    increasing: bool = True,
    axis: int = -1,
    offsets: ArrayLike | None = None,
) -> Array:
    """A boolean mask of y's shape: True where a maximal block of equal exact mean starts.

    Parameters are those of `isotonic_regression`. A row that cannot be fitted is one block.
    """
    rows = as_rows(y, weights, increasing, axis, offsets)
    values, weights_given = jax.lax.stop_gradient((rows.values, rows.weights))
    _, starts = _primitives.fit(values, weights_given, rows.cuts, increasing, rows.checked)
    return rows.bring_back(starts.astype(bool))
