"""exp and log of float64 arrays as the fixed sequences of operations that isofold.torch has, so that blocks
and values are the same but for what XLA contracts."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import bitcast_convert_type

from isofold._logarithm_constants import EXP_SERIES, LOG2_E, LOG2_HIGH, LOG2_LOW, LOG_SERIES, LOWEST


def exp_of_negative(x: Array) -> Array:
    """e^x for x <= 0; 0 below -708. NaN stays NaN."""
    inside = jnp.maximum(x, LOWEST)
    exponent = jnp.round(inside * LOG2_E)
    r = (inside - exponent * LOG2_HIGH) - exponent * LOG2_LOW
    series = jnp.full_like(r, EXP_SERIES[0])
    for coefficient in EXP_SERIES[1:]:
        series = series * r + coefficient
    bits = (jnp.nan_to_num(exponent).astype(jnp.int64) + 1023) << 52
    return jnp.where(x < LOWEST, 0.0, series * bitcast_convert_type(bits, jnp.float64))


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
    series = jnp.full_like(z, LOG_SERIES[0])
    for coefficient in LOG_SERIES[1:]:
        series = series * z + coefficient
    half_square = 0.5 * f * f
    found = k * LOG2_HIGH - ((half_square - (s * (half_square + z * series) + k * LOG2_LOW)) - f)
    return jnp.where(jnp.isnan(x), x, found)
