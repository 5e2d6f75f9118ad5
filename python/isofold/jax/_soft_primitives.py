"""Projections onto the permutahedron, L2, of rows as wholes: sorting, fit and rounding in one primitive.

The projection of a vector s in falling order onto the permutahedron of w, also in falling order, is s minus
the non-increasing fit of s - w (Blondel, Teboul, Berthet, Djolonga 2020, Proposition 3). On a block of that
fit it is (s_i - mean s) + mean w, which loses nothing where s is large. Ranks have w = (n, ..., 1), the top k
k ones and then zeros; sorting has the values for w. All is formed in float64, with exact blocks and means,
and rounded once.

Where order and blocks stay as they are, the operators are linear in the values, so their derivatives are
one more primitive, and second derivatives are zero. Another regularization is another primitive beside
these, with its own derivative: `falling`, `weights` and `unsorted` are what it shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.interpreters import ad

from isofold.jax import _primitives
from isofold.jax._define import bind, is_zero, primitive, zero_like

# ---- Rows in falling order ----


def _places(cuts: Array, length: int) -> tuple[Array, Array, Array]:
    """For every element of ragged rows: its row, its place in it, and the row's length."""
    index = jnp.arange(length, dtype=jnp.int64)
    row = jnp.searchsorted(cuts, index, side="right") - 1
    return row, index - cuts[row], cuts[row + 1] - cuts[row]


def _ragged(cuts: Array, length: int) -> tuple[Array, ...]:
    """`_places` of a batch; nonsense, but within bounds, where the cuts do not rise from 0 to the length."""
    flat = jnp.clip(cuts.astype(jnp.int64), 0, length).reshape(-1, cuts.shape[-1])
    found = jax.vmap(lambda row: _places(row, length))(flat)
    return tuple(array.reshape(*cuts.shape[:-1], length) for array in found)


def falling(s: Array, cuts: Array | None) -> Array:
    """The order that sorts every row of s, falling, stable: indices along the last axis."""
    if cuts is None:
        return jnp.argsort(-s, axis=-1, stable=True)
    row, _, _ = _ragged(cuts, s.shape[-1])
    index = jnp.broadcast_to(jnp.arange(s.shape[-1]), s.shape)
    return jax.lax.sort((row, -s, index), dimension=-1, is_stable=True, num_keys=2)[2]


def weights(s: Array, cuts: Array | None) -> Array:
    """n, n - 1, ..., 1 in every row."""
    if cuts is None:
        return jnp.broadcast_to(jnp.arange(s.shape[-1], 0, -1, dtype=s.dtype), s.shape)
    _, place, length = _ragged(cuts, s.shape[-1])
    return (length - place).astype(s.dtype)


def first(s: Array, cuts: Array | None, k: int) -> Array:
    """1 in the first k places of every row, then 0."""
    if cuts is None:
        place = jnp.broadcast_to(jnp.arange(s.shape[-1]), s.shape)
    else:
        _, place, _ = _ragged(cuts, s.shape[-1])
    return (place < k).astype(s.dtype)


def unsorted(sorted_values: Array, order: Array) -> Array:
    """What `falling` brought into order, back where it was."""
    length = order.shape[-1]
    flat = order.reshape(math.prod(order.shape[:-1]), length)
    found = jnp.zeros(flat.shape, sorted_values.dtype)
    batch = jnp.arange(flat.shape[0])[:, None]
    return (
        found.at[batch, flat].set(sorted_values.reshape(flat.shape), unique_indices=True).reshape(order.shape)
    )


def _take(x: Array, order: Array) -> Array:
    return jnp.take_along_axis(x, order, axis=-1)


def _index_type(length: int) -> Any:
    return np.int32 if length < 2**31 else np.int64


# ---- The operators ----


def _divided(x: Any, strength: float, rows: Any) -> Any:
    """x / strength. XLA would multiply by a constant's reciprocal, which rounds twice, so it must not see
    one: where rows hold a NaN the divisor is another, and the answer NaN all the same."""
    return x / jnp.where(jnp.isnan(rows), 1.0, strength)


def _soft(
    platform: str, values: Any, *cuts: Any, kind: str, sign: float, strength: float, k: int, checked: bool
) -> Any:
    given = cuts[0] if cuts else None
    x = values.astype(jnp.float64)
    s = -sign * x if kind == "sort" else _divided(sign * x, strength, x)
    order = falling(s, given)
    s = _take(s, order)
    w = first(s, given, k) if kind == "topk" else weights(s, given)
    if kind == "sort":
        s, w = _divided(w, strength, s), s
    fit, starts = _primitives.fit(s - w, None, given, False, checked)
    found = (s - _primitives.mean(s, fit, starts)) + _primitives.mean(w, fit, starts)
    if kind == "topk":
        # A NaN stays one, and a zero is +0.0.
        found = jnp.where(found <= 0, 0.0, jnp.minimum(found, 1.0))
    found = -sign * found if kind == "sort" else unsorted(found, order)
    return found.astype(values.dtype), order.astype(_index_type(values.shape[-1])), starts


soft_p = primitive(
    "isofold_soft",
    lambda values, *_, **__: [values.dtype, _index_type(values.shape[-1]), np.uint8],
    _soft,
)


def _linear(
    platform: str, x: Any, order: Any, starts: Any, refused: Any, *, kind: str, sign: float, strength: float
) -> Any:
    # Rounded to the caller's dtype, a result that is no NaN may be infinite.
    guard = jnp.where(jnp.isnan(refused), jnp.nan, 0.0)

    def mean(v: Array) -> Array:
        return _primitives.mean(v, guard, starts)

    wide = x.astype(jnp.float64)
    if kind == "rank":
        s = _take(_divided(sign * wide, strength, wide), order)
        found = unsorted(s - mean(s), order)
    elif kind == "sort":
        found = mean(_take(wide, order))
    else:
        found = unsorted(mean(wide), order)
    return [found.astype(x.dtype)]


# The derivative of `soft_p`: P' (I - M) P / strength of ranks and of the top k, M P of sorting and its
# transpose P' M, where P sorts and M takes means over blocks.
linear_p = primitive("isofold_soft_linear", lambda x, *_, **__: [x.dtype], _linear)
_TRANSPOSED = {"rank": "rank", "sort": "sort_transposed", "sort_transposed": "sort"}


def soft(
    values: Array, cuts: Array | None, kind: str, sign: float, strength: float, checked: bool, k: int = 0
) -> Array:
    """Soft ranks ("rank"), softly sorted rows ("sort") or masks of the first k of an order ("topk"), along
    the last axis."""
    arrays = [values] if cuts is None else [values, cuts]
    return bind(soft_p, *arrays, kind=kind, sign=sign, strength=strength, k=k, checked=checked)[0]


def _soft_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, checked: bool, k: int, **parameters: Any
) -> Any:
    found = bind(soft_p, *primals, checked=checked, k=k, **parameters)
    value, order, starts = found
    tangent = zero_like(value)
    if not is_zero(tangents[0]):
        if parameters["kind"] == "topk":
            parameters["kind"] = "rank"
        # A refused row is NaN as a whole, so its value tells which.
        tangent = bind(linear_p, tangents[0], order, starts, value, **parameters)[0]
    return found, [tangent, zero_like(order), zero_like(starts)]


def _linear_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    found = bind(linear_p, *primals, **parameters)
    if is_zero(tangents[0]):
        return found, [zero_like(found[0])]
    return found, bind(linear_p, tangents[0], *primals[1:], **parameters)


def _linear_transpose(cotangents: Sequence[Any], x: Any, *rest: Any, kind: str, **parameters: Any) -> Any:
    found = None
    if not is_zero(cotangents[0]):
        found = bind(linear_p, cotangents[0], *rest, kind=_TRANSPOSED[kind], **parameters)[0]
    return [found, None, None, None]


ad.primitive_jvps[soft_p] = _soft_jvp
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose
