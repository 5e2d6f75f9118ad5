"""exp and log of float64 arrays as the fixed sequences of operations that isofold.torch has, so that blocks
and values are the same but for what XLA contracts."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array
from jax.lax import bitcast_convert_type

# log 2 in two parts: the first has 21 trailing zeros, so that products with exponents are exact.
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
# Below, the exponential is taken for zero: it would be subnormal.
_LOWEST = -708.0

# (log(1 + s) - log(1 - s)) / s - 2 as a polynomial in s^2 on [0, 0.1716] (the constants of fdlibm).
_LOG_SERIES = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def exp_of_negative(x: Array) -> Array:
    """e^x for x <= 0; 0 below -708. NaN stays NaN."""
    inside = jnp.maximum(x, _LOWEST)
    exponent = jnp.round(inside * _LOG2_E)
    r = (inside - exponent * _LOG2_HIGH) - exponent * _LOG2_LOW
    series = jnp.full_like(r, 1.0 / math.factorial(13))
    for i in range(12, -1, -1):
        series = series * r + 1.0 / math.factorial(i)
    bits = (jnp.nan_to_num(exponent).astype(jnp.int64) + 1023) << 52
    return jnp.where(x < _LOWEST, 0.0, series * bitcast_convert_type(bits, jnp.float64))


def log(x: Array) -> Array:
    """log x for normal positive x. NaN stays NaN."""
    # x = 2^exponent (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
    bits = bitcast_convert_type(x, jnp.int64)
    exponent = (bits >> 52) - 1023
    fraction = bitcast_convert_type((bits & ((1 << 52) - 1)) | (1023 << 52), jnp.float64)
    large = fraction > 1.4142135623730951
    f = jnp.where(large, fraction * 0.5, fraction) - 1.0
    k = jnp.where(large, exponent + 1, exponent).astype(jnp.float64)
    s = f / (2.0 + f)
    z = s * s
    series = jnp.full_like(z, _LOG_SERIES[6])
    for coefficient in reversed(_LOG_SERIES[:6]):
        series = series * z + coefficient
    half_square = 0.5 * f * f
    found = k * _LOG2_HIGH - ((half_square - (s * (half_square + z * series) + k * _LOG2_LOW)) - f)
    return jnp.where(jnp.isnan(x), x, found)
