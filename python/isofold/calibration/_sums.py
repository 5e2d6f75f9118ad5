"""Sums whose value does not depend on the order of the rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from isofold.calibration._inputs import Float64Array

# A Python float takes four times the room of an array's.
_TERMS_AT_ONCE = 65_536


def exact_sum(*terms: Float64Array) -> float:
    """The exact sum of all terms, rounded once (Shewchuk 1997, as in math.fsum). O(n), in constant memory."""
    pieces = (
        part[start : start + _TERMS_AT_ONCE].tolist()
        for part in terms
        for start in range(0, len(part), _TERMS_AT_ONCE)
    )
    return math.fsum(itertools.chain.from_iterable(pieces))


def weighted_values(weights: Float64Array, values: Float64Array) -> Float64Array:
    """Their products, zero only where a factor is: what underflows becomes the least number above zero."""
    products = weights * values
    lost = (products == 0) & (weights != 0) & (values != 0)
    products[lost] = np.copysign(np.nextafter(0.0, 1.0), values[lost])
    return products


def scaled_weights(weights: Float64Array) -> tuple[Float64Array, int]:
    """Weights times 2^-exponent, the largest then in [0.5, 1): a mean is the same, and no sum overflows.

    Weights more than 2^1000 times smaller than the largest may lose bits, and matter less than rounding does.
    """
    exponent = int(np.frexp(weights.max())[1])
    return np.ldexp(weights, -exponent), exponent


def weight_totals(weights: Float64Array, offsets: NDArray[np.int64]) -> Float64Array:
    """The exact total of each slice offsets[g] .. offsets[g + 1] - 1, rounded once; inf beyond the range."""
    scaled, exponent = scaled_weights(weights)
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    totals = np.array([exact_sum(scaled[start:end]) for start, end in bounds])
    with np.errstate(over="ignore"):
        in_full: Float64Array = np.ldexp(totals, exponent)
    return in_full


def weighted_mean(terms: Float64Array, weights: Float64Array | None) -> float:
    """sum w t / sum w: each product rounded, both sums exact and rounded once. |t| at most 1e300."""
    if weights is None:
        return exact_sum(terms) / len(terms)
    scaled, _ = scaled_weights(weights)
    return exact_sum(scaled * terms) / exact_sum(scaled)
