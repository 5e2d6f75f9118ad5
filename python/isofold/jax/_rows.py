"""Arguments as users give them, as rows along the last axis, and back."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isofold._arrays import row_offsets
from isofold.jax import _calls


class Rows(NamedTuple):
    """A batch of rows."""

    values: Array  # rows run along the last axis
    weights: Array | None  # likewise
    cuts: Array | None  # offsets that part a 1-D array into rows
    checked: bool  # the offsets are known to be right
    axis: int  # where the last axis belongs

    def bring_back(self, found: Array) -> Array:
        """In the input's shape."""
        return jnp.moveaxis(found, -1, self.axis)


def as_float(array: Any, name: str) -> Array:
    """Integers and booleans become JAX's default floating type."""
    if not isinstance(array, (jax.Array, np.ndarray, np.generic)) or isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be an array of JAX or NumPy, not {type(array).__name__}")
    if isinstance(array, np.ndarray):
        array = np.asarray(array, array.dtype.newbyteorder("="))
    if jnp.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_:
        return jnp.asarray(array).astype(jax.dtypes.canonicalize_dtype(np.float64))
    if str(array.dtype) not in _calls.FLOATS:
        raise TypeError(f"{name} must be real, in float16, bfloat16, float32 or float64, not {array.dtype}")
    return jnp.asarray(array)


def _along(axis: int, ndim: int, name: str) -> int:
    """The axis counted from the front."""
    if ndim == 0:
        raise ValueError(f"{name} must have at least one dimension, but is a scalar")
    position = operator.index(axis)
    if not -ndim <= position < ndim:
        raise ValueError(f"axis {position} is out of range for {name} with {ndim} dimensions")
    return position % ndim


def _weights(weights: Any, shape: tuple[int, ...]) -> Array:
    if isinstance(weights, (int, float)) and not isinstance(weights, bool):
        weights = np.float64(weights)
    given = as_float(weights, "weights")
    try:
        return jnp.broadcast_to(given, shape)
    except ValueError:
        raise ValueError(f"weights has shape {given.shape}, which does not fit y's, {shape}") from None


def _is_on_host(array: Any) -> bool:
    """Whether its entries can be looked at without waiting for a device."""
    if not isinstance(array, jax.Array):
        return True
    if isinstance(array, jax.core.Tracer):
        return False
    return all(device.platform == "cpu" for device in array.devices())


def _cuts(offsets: Any, shape: tuple[int, ...], name: str) -> tuple[Array, bool]:
    if len(shape) != 1:
        raise ValueError(f"offsets cut 1-D {name} into rows, but it has {len(shape)} dimensions")
    if _is_on_host(offsets):
        offsets = row_offsets(np.asarray(offsets), shape[0])
        if shape[0] >= 2**31 and not jax.config.jax_enable_x64:
            raise ValueError("offsets beyond 2**31 take 64-bit integers: set jax_enable_x64")
        return jnp.asarray(offsets), True
    if not jnp.issubdtype(offsets.dtype, np.integer):
        raise TypeError(f"offsets must hold integers, not dtype {offsets.dtype}")
    if offsets.ndim != 1 or offsets.size == 0:
        raise ValueError(
            f"offsets must be 1-D with one entry more than there are rows, but has shape {offsets.shape}"
        )
    if offsets.size == 1 and shape[0] != 0:
        raise ValueError(f"offsets must end at the number of values, {shape[0]}, but has no row")
    return offsets, False


def as_rows(y: Any, weights: Any, increasing: Any, axis: int, offsets: Any, name: str = "y") -> Rows:
    """Checks the arguments of a fit and lays them out; differentiable."""
    values = as_float(y, name)
    along = _along(axis, values.ndim, name)
    if not isinstance(increasing, (bool, np.bool_)):
        raise TypeError(f"increasing must be True or False, not {increasing!r}")
    given = None if weights is None else jnp.moveaxis(_weights(weights, values.shape), along, -1)
    cuts, checked = (None, True) if offsets is None else _cuts(offsets, values.shape, name)
    return Rows(jnp.moveaxis(values, along, -1), given, cuts, checked, along)


def refuse_bad_rows(rows: Rows) -> None:
    """Raises where a row cannot be fitted. Waits for the device."""
    if any(isinstance(array, jax.core.Tracer) for array in rows[:3]):
        raise ValueError("validate=True looks at the entries of y, which jit, grad and vmap do not give")
    values = np.asarray(rows.values)
    weights = None if rows.weights is None else np.asarray(rows.weights)
    for name, array, good, what in (
        ("y", values, np.isfinite(values), "is not finite"),
        (
            "weights",
            weights,
            True if weights is None else np.isfinite(weights) & (weights > 0),
            "is not a positive number",
        ),
    ):
        if array is None or np.all(good):
            continue
        flat = int(np.flatnonzero(~np.asarray(good))[0])
        if rows.cuts is None:
            row, position = divmod(flat, array.shape[-1])
        else:
            offsets = np.asarray(rows.cuts)
            row = int(np.searchsorted(offsets, flat, side="right")) - 1
            position = flat - int(offsets[row])
        raise ValueError(f"{name} {what}: row {row}, position {position} is {array.reshape(-1)[flat]}")


def rounded_bound(bound: float, dtype: Any) -> Any:
    """A bound in the fit's type: the nearest, ties to even; never -0.0."""
    near = np.asarray(bound).astype(dtype)
    if not np.isfinite(near.astype(np.float64)):
        return near
    # float64 to bfloat16 goes by way of float32, and may be one place off.
    candidates = [near, np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))]
    finite = [c for c in candidates if np.isfinite(c.astype(np.float64))]
    return dtype.type(
        min(finite, key=lambda c: (abs(Fraction(float(c)) - Fraction(bound)), c.view(_bits(dtype)) & 1))
    ) + dtype.type(0)


def _bits(dtype: Any) -> Any:
    return np.dtype(f"int{8 * dtype.itemsize}")


def ordered_bits(x: Any) -> Any:
    """Integers in the order of the floats: comparing them is exact where XLA reads subnormals as zero."""
    bits = jax.lax.bitcast_convert_type(x, _bits(x.dtype))
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)
