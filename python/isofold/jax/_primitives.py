"""The fit of rows and its derivatives, as four primitives that are closed under differentiation.

With W the weights of a block, m its mean and sums over it:

fit       z = m
tangent   dz = sum (w dy + (y - m) dw) / W, linear in dy and dw
gradient  dL/dy = w G / W, dL/dw = (y - m) G / W with G the sum of g: exact, linear in g, the transpose of
tangent mean      of any x over the blocks: exact, linear, its own transpose

Without weights tangent and gradient both are the mean. Derivatives of these in y and w are those of the
formulas above, written with the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.interpreters import ad

from isofold.jax import _calls
from isofold.jax._define import bind, is_zero, primitive, zero_like

_calls.register()

# ---- The fit ----


def _parts(arrays: Sequence[Any], weighted: bool, cut: str) -> tuple[Any, Any, Any]:
    rest = list(arrays[1:])
    weights = rest.pop(0) if weighted else None
    return arrays[0], weights, rest.pop(0) if cut else None


def _fit(platform: str, *arrays: Any, weighted: bool, cut: str, increasing: bool) -> Any:
    values, weights, cuts = _parts(arrays, weighted, cut)
    if cut != "unchecked":
        return _calls.fit(platform, values, weights, cuts, increasing)
    rising = (cuts[..., 1:] >= cuts[..., :-1]).all(-1, keepdims=True)
    length = values.shape[-1]
    good = rising & (cuts[..., :1] == 0) & (cuts[..., -1:] == length)
    one_row = jnp.full_like(cuts, length).at[..., 0].set(0)
    found, starts = _calls.fit(platform, values, weights, jnp.where(good, cuts, one_row), increasing)
    return jnp.where(good, found, jnp.nan), starts


fit_p = primitive(
    "isofold_fit",
    lambda values, *_, **__: [values.dtype, np.uint8],
    _fit,
)


def fit(
    values: Array, weights: Array | None, cuts: Array | None, increasing: bool, checked: bool = False
) -> tuple[Array, Array]:
    """(the fit of every row of the last axis, uint8 flags: 1 where a block starts).

    Cuts part that axis into ragged rows. Unless they were checked, all is NaN where they do not rise from 0
    to the axis's length.
    """
    arrays = [a for a in (values, weights, cuts) if a is not None]
    cut = "" if cuts is None else "checked" if checked else "unchecked"
    found, starts = bind(fit_p, *arrays, weighted=weights is not None, cut=cut, increasing=bool(increasing))
    return found, starts


def _fit_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, weighted: bool, cut: str, increasing: bool
) -> Any:
    found, starts = bind(fit_p, *primals, weighted=weighted, cut=cut, increasing=increasing)
    values, weights, _ = _parts(primals, weighted, cut)
    values_dot, weights_dot, _ = _parts(tangents, weighted, cut)
    if weights is None:
        tangent = zero_like(found) if is_zero(values_dot) else mean(values_dot, found, starts)
    elif is_zero(values_dot) and is_zero(weights_dot):
        tangent = zero_like(found)
    else:
        if cut == "unchecked":  # what the cuts refused, the values shall show
            values = jnp.where(jnp.isnan(found), jnp.nan, values)
        tangent = _tangent(values_dot, weights_dot, values, weights, found, starts)
    return [found, starts], [tangent, zero_like(starts)]


ad.primitive_jvps[fit_p] = _fit_jvp

# ---- The mean over blocks ----

mean_p = primitive(
    "isofold_block_mean",
    lambda x, fit, starts: [x.dtype],
    lambda platform, x, fit, starts: _calls.gradient(platform, x, fit, None, starts, True, False),
)


def mean(x: Array, fit: Array, starts: Array) -> Array:
    """For every element the exact mean of x over its block, rounded once. NaN where the fit is."""
    return bind(mean_p, x, fit, starts)[0]


def _mean_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    found = mean(*primals)
    tangent = zero_like(found) if is_zero(tangents[0]) else mean(tangents[0], *primals[1:])
    return [found], [tangent]


def _mean_transpose(cotangents: Sequence[Any], x: Any, fit: Any, starts: Any) -> Any:
    return [None if is_zero(cotangents[0]) else mean(cotangents[0], fit, starts), None, None]


ad.primitive_jvps[mean_p] = _mean_jvp
ad.primitive_transposes[mean_p] = _mean_transpose

# ---- Tangent and gradient of a weighted fit ----


def _wide(*arrays: Any) -> list[Any]:
    """In float64 where 64-bit types are on, else in float32."""
    dtype = jax.dtypes.canonicalize_dtype(np.float64)
    return [array.astype(dtype) for array in arrays]


def _tangent_formula(
    values_dot: Any, weights_dot: Any, values: Any, weights: Any, fit: Any, starts: Any
) -> Any:
    y, w = _wide(values, weights)
    width = mean(w, fit, starts)
    moment = 0.0
    if values_dot is not None:
        moment = w * values_dot.astype(w.dtype)
    if weights_dot is not None:
        center = mean(w * y, fit, starts) / width
        moment = moment + (y - center) * weights_dot.astype(w.dtype)
    return (mean(moment, fit, starts) / width).astype(values.dtype)


def _gradient_formula(grad: Any, values: Any, weights: Any, fit: Any, starts: Any, wrt: Any) -> list[Any]:
    g, y, w = _wide(grad, values, weights)
    width = mean(w, fit, starts)
    slope = mean(g, fit, starts) / width
    found = []
    if "values" in wrt:
        found.append((w * slope).astype(values.dtype))
    if "weights" in wrt:
        center = mean(w * y, fit, starts) / width
        found.append(((y - center) * slope).astype(weights.dtype))
    return found


def _split(arrays: Sequence[Any], wrt: tuple[str, ...]) -> tuple[Any, ...]:
    """(tangent of the values or None, of the weights or None, values, weights, fit, starts)"""
    rest = list(arrays)
    return (*(rest.pop(0) if name in wrt else None for name in ("values", "weights")), *rest)


tangent_p = primitive(
    "isofold_tangent",
    lambda *arrays, wrt: [arrays[-2].dtype],
    lambda platform, *arrays, wrt: [_tangent_formula(*_split(arrays, wrt))],
)
gradient_p = primitive(
    "isofold_gradient",
    lambda grad, values, weights, fit, starts, *, wrt: [
        array.dtype for name, array in (("values", values), ("weights", weights)) if name in wrt
    ],
    lambda platform, grad, values, weights, fit, starts, *, wrt: _calls.gradient(
        platform, grad, values, weights, starts, "values" in wrt, "weights" in wrt
    ),
)


def _tangent(values_dot: Any, weights_dot: Any, *rest: Any) -> Any:
    """The tangent of a weighted fit; either of the given ones may be zero, not both."""
    given = {"values": values_dot, "weights": weights_dot}
    wrt = tuple(name for name, dot in given.items() if dot is not None and not is_zero(dot))
    return bind(tangent_p, *(given[name] for name in wrt), *rest, wrt=wrt)[0]


def _residual_jvp(formula: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any | None:
    """The derivative of formula(values, weights) along the tangents of these two."""
    if all(is_zero(dot) for dot in tangents):
        return None
    dots = tuple(
        jnp.zeros_like(array) if is_zero(dot) else dot for array, dot in zip(primals, tangents, strict=True)
    )
    return jax.jvp(formula, tuple(primals), dots)[1]


def _add(first: Any, second: Any) -> Any:
    if second is None:
        return first
    return second if is_zero(first) else first + second


def _tangent_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, wrt: tuple[str, ...]) -> Any:
    found = bind(tangent_p, *primals, wrt=wrt)
    dy, dw, values, weights, fit, starts = _split(primals, wrt)
    dy_dot, dw_dot, values_dot, weights_dot, *_ = _split(tangents, wrt)
    linear = zero_like(found[0])
    if any(dot is not None and not is_zero(dot) for dot in (dy_dot, dw_dot)):
        linear = _tangent(dy_dot, dw_dot, values, weights, fit, starts)
    rest = _residual_jvp(
        lambda y, w: _tangent_formula(dy, dw, y, w, fit, starts), (values, weights), (values_dot, weights_dot)
    )
    return found, [_add(linear, rest)]


def _tangent_transpose(cotangents: Sequence[Any], *arrays: Any, wrt: tuple[str, ...]) -> Any:
    rest = arrays[len(wrt) :]
    found = [None] * len(wrt) if is_zero(cotangents[0]) else bind(gradient_p, cotangents[0], *rest, wrt=wrt)
    return [*found, None, None, None, None]


def _gradient_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, wrt: tuple[str, ...]) -> Any:
    found = bind(gradient_p, *primals, wrt=wrt)
    grad, values, weights, fit, starts = primals
    grad_dot, values_dot, weights_dot, *_ = tangents
    linear = [zero_like(array) for array in found]
    if not is_zero(grad_dot):
        linear = bind(gradient_p, grad_dot, *primals[1:], wrt=wrt)
    rest = _residual_jvp(
        lambda y, w: _gradient_formula(grad, y, w, fit, starts, wrt),
        (values, weights),
        (values_dot, weights_dot),
    )
    if rest is None:
        rest = [None] * len(found)
    return found, [_add(first, second) for first, second in zip(linear, rest, strict=True)]


def _gradient_transpose(cotangents: Sequence[Any], grad: Any, *rest: Any, wrt: tuple[str, ...]) -> list[Any]:
    given = dict(zip(wrt, cotangents, strict=True))
    found = None
    if not all(is_zero(cotangent) for cotangent in cotangents):
        found = _tangent(given.get("values"), given.get("weights"), *rest)
    return [found, None, None, None, None]


ad.primitive_jvps[tangent_p] = _tangent_jvp
ad.primitive_transposes[tangent_p] = _tangent_transpose
ad.primitive_jvps[gradient_p] = _gradient_jvp
ad.primitive_transposes[gradient_p] = _gradient_transpose
