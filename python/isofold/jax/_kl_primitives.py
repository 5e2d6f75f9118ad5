"""Soft ranks and soft sorting in the Kullback-Leibler divergence (Blondel, Teboul, Berthet, Djolonga 2020).

With a and b both falling, on every block of the fit in log space P = (a - log sum e^a) + log sum e^b. Ranks
are e^P for a = values / strength and b = log(n, ..., 1); sorting has a = (n, ..., 1) / strength and b =
values. Formed in float64 relative to the first element of a block, with exact means, and rounded once.

With M the mean over blocks and the factor f, the ranks or e^b / M e^b, derivatives are g -> f (g - M(f g) /
M(f)) of ranks and of f itself, and g -> M(f g), back g -> f M(g), of sorting. They take f anew from the
values, in float64, whatever types there are outside. Blocks are found as in isofold.torch's `_log_blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.interpreters import ad

from isofold.jax import _log_pooling, _primitives
from isofold.jax._define import bind, is_zero, primitive, zero_like
from isofold.jax._logarithms import exp_of_negative, log
from isofold.jax._soft_primitives import (
    divided,
    falling,
    index_type,
    row_numbers,
    take,
    unsorted,
    weights,
)

# Of one factor of a value, whose reciprocal is the weight: both stay far from the ends of a float64.
_ROOM = 600.0

# ---- Blocks; arrays have shape (batch, elements) ----


def _firsts(starts: Array) -> Array:
    """For every element the position of the last start up to it."""
    index = jnp.broadcast_to(jnp.arange(starts.shape[-1]), starts.shape)
    return jax.lax.cummax(jnp.where(starts > 0, index, 0), axis=starts.ndim - 1)


def _parts(c: Array, row: Array | None) -> Array:
    """True where all before in the row exceed all from there on, and where a row starts."""
    if row is not None:
        # Ranks of all values, those of a later row below: what runs along the rows starts anew in each.
        rank = jnp.argsort(jnp.argsort(c, axis=1, stable=True), axis=1, stable=True)
        c = rank - row * c.shape[1]
    least, most = jax.lax.cummin(c, axis=1), jax.lax.cummax(c, axis=1, reverse=True)
    cut = least[:, :-1] > most[:, 1:]
    return jnp.concatenate([jnp.ones((c.shape[0], 1), bool), cut], axis=1)


def _cuts(part: Array) -> Array:
    """Offsets of the parts, followed by empty ones."""
    batch, total = part.shape
    index = jnp.sort(jnp.where(part, jnp.arange(total), total), axis=1)
    return jnp.concatenate([index, jnp.full((batch, 1), total, index.dtype)], axis=1)


def _in_parts_with(bad: Array, first: Array) -> Array:
    """True for all elements of parts with a `bad` one; `first`: where each one's part starts."""
    total = bad.shape[1]
    index = jnp.broadcast_to(jnp.arange(total), bad.shape)
    behind = jax.lax.cummax(jnp.where(bad, index, -1), axis=1)
    ahead = jax.lax.cummin(jnp.where(bad, index, total), axis=1, reverse=True)
    there = take(first, jnp.minimum(ahead, total - 1))
    return (behind >= first) | ((ahead < total) & (there == first))


def _block_starts(a: Array, b: Array, row: Array | None, scale: Array | None) -> Array:
    """uint8 flags. scale: e^b, if b is at least 0 and at most the logarithm of the row's length."""
    part = _parts(a - b, row)
    first = _firsts(part)
    from_first = a - take(a, first)
    lacking = None
    if scale is None:
        b_first = b - take(b, first)
        least = jnp.minimum(from_first, b_first)
        # A row that cannot be fitted has no room to look for.
        lacking = _in_parts_with((least < -_ROOM) & (least > -jnp.inf), first)
        from_first, b_first = (jnp.where(lacking, 0.0, x) for x in (from_first, b_first))
        scale = exp_of_negative(b_first)
    starts = _primitives.fit(exp_of_negative(from_first) / scale, scale, _cuts(part), False, True)[1]
    if lacking is None:
        return starts
    rows = jnp.zeros(a.shape, jnp.int64) if row is None else row

    def in_log_space() -> Array:
        pooled = _log_pooling.block_starts(a, b, rows) | part
        return jnp.where(lacking, pooled.astype(jnp.uint8), starts)

    return jax.lax.cond(lacking.any(), in_log_space, lambda: starts)


# ---- The operators ----


def _vectors(
    values: Array, order: Array | None, cuts: Array | None, kind: str, sign: float, strength: float
) -> tuple[Array, Array, Array]:
    """(a and, for ranks, e^b or, for sorting, b; in falling order: the order)"""
    x = values.astype(jnp.float64)
    s = -sign * x if kind == "sort" else divided(sign * x, strength, x)
    if order is None:
        order = falling(s, cuts)
    s, w = take(s, order), weights(s, cuts)
    return (s, w, order) if kind == "rank" else (divided(w, strength, s), s, order)


def _ranks(a: Array, b: Array, starts: Array, guard: Array) -> Array:
    relative = exp_of_negative(a - take(a, _firsts(starts)))
    return relative * (_primitives.mean(b, guard, starts) / _primitives.mean(relative, guard, starts))


def _kl(
    platform: str, values: Any, *cuts: Any, kind: str, sign: float, strength: float, checked: bool
) -> Any:
    given = cuts[0] if cuts else None
    types = values.dtype, index_type(values.shape[-1]), np.uint8
    if values.size == 0:
        return [jnp.zeros(values.shape, dtype) for dtype in types]
    a, b, order = _vectors(values, None, given, kind, sign, strength)
    # 0, or NaN in what cannot be fitted.
    guard = _primitives.fit((a - a) + (b - b), None, given, False, checked)[0]
    flat = (-1, values.shape[-1])
    row = None if given is None else row_numbers(given, values.shape[-1]).reshape(flat)
    log_b, scale = (log(b).reshape(flat), b.reshape(flat)) if kind == "rank" else (b.reshape(flat), None)
    starts = _block_starts(a.reshape(flat), log_b, row, scale).reshape(values.shape)
    if kind == "rank":
        found = unsorted(_ranks(a, b, starts, guard) + guard, order)
    else:
        first = _firsts(starts)
        from_first = a - take(a, first)
        relative = exp_of_negative(b - take(b, first))
        level = log(_primitives.mean(relative, guard, starts)) - log(
            _primitives.mean(exp_of_negative(from_first), guard, starts)
        )
        found = -sign * ((take(b, first) + level) + from_first + guard)
    # A zero is +0.0.
    return [(found + 0.0).astype(values.dtype), order.astype(types[1]), starts]


kl_p = primitive(
    "isofold_soft_kl",
    lambda values, *_, **__: [values.dtype, index_type(values.shape[-1]), np.uint8],
    _kl,
)


def _exact_factor(values: Any, order: Any, starts: Any, refused: Any, cuts: Any, **how: Any) -> Any:
    guard = _guard(jnp.float64, refused)
    a, b, _ = _vectors(values, order, cuts, **how)
    if how["kind"] == "rank":
        return _ranks(a, b, starts, guard)
    relative = exp_of_negative(b - take(b, _firsts(starts)))
    return relative / _primitives.mean(relative, guard, starts)


def _guard(dtype: Any, refused: Any) -> Any:
    # Rounded to the caller's dtype, a result that is no NaN may be infinite.
    return jnp.where(jnp.isnan(refused), jnp.nan, 0.0).astype(dtype)


# f in falling order, in the widest type that there is outside: for second derivatives.
factor_p = primitive(
    "isofold_soft_kl_factor",
    lambda values, *_, dtype, **__: [np.dtype(dtype)],
    lambda platform, values, order, starts, refused, *cuts, dtype, **how: [
        _exact_factor(values, order, starts, refused, cuts[0] if cuts else None, **how).astype(dtype)
    ],
)


def _spread(g: Any, factor: Any, guard: Any, starts: Any) -> Any:
    def mean(x: Any) -> Any:
        return _primitives.mean(x, guard, starts)

    rest = g - mean(g)
    # From the rest and not from g: exactly 0 in blocks of one.
    return factor * (rest - mean(factor * rest) / mean(factor))


def _formula(x: Any, factor: Any, order: Any, starts: Any, refused: Any, transposed: bool, **how: Any) -> Any:
    """The derivative, of the factor's type."""
    guard = _guard(factor.dtype, refused)
    wide = x.astype(factor.dtype)
    if how["kind"] == "rank":
        scaled = divided(how["sign"] * wide, how["strength"], wide)
        return unsorted(_spread(take(scaled, order), factor, guard, starts), order)
    if transposed:
        return unsorted(factor * _primitives.mean(wide, guard, starts), order)
    return _primitives.mean(factor * take(wide, order), guard, starts)


def _linear(
    platform: str,
    x: Any,
    values: Any,
    order: Any,
    starts: Any,
    refused: Any,
    *cuts: Any,
    transposed: bool,
    **how: Any,
) -> Any:
    factor = _exact_factor(values, order, starts, refused, cuts[0] if cuts else None, **how)
    return [(_formula(x, factor, order, starts, refused, transposed, **how) + 0.0).astype(x.dtype)]


# The derivative of `kl_p`, linear in x; that of ranks is symmetric.
linear_p = primitive("isofold_soft_kl_linear", lambda x, *_, **__: [x.dtype], _linear)


def soft_kl(
    values: Array, cuts: Array | None, kind: str, sign: float, strength: float, checked: bool
) -> Array:
    """Soft ranks ("rank") or softly sorted rows ("sort"), along the last axis."""
    arrays = [values] if cuts is None else [values, cuts]
    return bind(kl_p, *arrays, kind=kind, sign=sign, strength=strength, checked=checked)[0]


def _kl_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, checked: bool, **how: Any) -> Any:
    found = bind(kl_p, *primals, checked=checked, **how)
    value, order, starts = found
    tangent = zero_like(value)
    if not is_zero(tangents[0]):
        values, *cuts = primals
        arrays = (tangents[0], values, order, starts, value, *cuts)
        tangent = bind(linear_p, *arrays, transposed=False, **how)[0]
    return found, [tangent, zero_like(order), zero_like(starts)]


def _factor_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dtype: str, **how: Any) -> Any:
    factor = bind(factor_p, *primals, dtype=dtype, **how)[0]
    if is_zero(tangents[0]):
        return [factor], [zero_like(factor)]
    _, order, starts, refused, *_ = primals
    scale = how["sign"] / how["strength"] if how["kind"] == "rank" else -how["sign"]
    moved = take(scale * tangents[0].astype(dtype), order)
    return [factor], [_spread(moved, factor, _guard(factor.dtype, refused), starts)]


def _linear_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, transposed: bool, **how: Any) -> Any:
    found = bind(linear_p, *primals, transposed=transposed, **how)[0]
    x, values, order, starts, refused, *cuts = primals
    tangent = zero_like(found)
    if not is_zero(tangents[0]):
        tangent = bind(linear_p, tangents[0], *primals[1:], transposed=transposed, **how)[0]
    if not is_zero(tangents[1]):
        dtype = str(jax.dtypes.canonicalize_dtype(np.float64))

        def formula(v: Any) -> Any:
            factor = bind(factor_p, v, order, starts, refused, *cuts, dtype=dtype, **how)[0]
            return _formula(x, factor, order, starts, refused, transposed, **how).astype(x.dtype)

        moved = jax.jvp(formula, (values,), (tangents[1],))[1]
        tangent = moved if is_zero(tangent) else tangent + moved
    return [found], [tangent]


def _linear_transpose(
    cotangents: Sequence[Any], x: Any, *rest: Any, transposed: bool, kind: str, **how: Any
) -> Any:
    found = None
    if not is_zero(cotangents[0]):
        back = transposed if kind == "rank" else not transposed
        found = bind(linear_p, cotangents[0], *rest, transposed=back, kind=kind, **how)[0]
    return [found, *(None,) * len(rest)]


ad.primitive_jvps[kl_p] = _kl_jvp
ad.primitive_jvps[factor_p] = _factor_jvp
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose
