"""exp and log of float64 tensors as fixed sequences of additions, multiplications and divisions.

Each of those is rounded to nearest on every device, so these give the same bits on all of them, which the exp
and log of a device's own library do not.
"""

from __future__ import annotations

import torch
from torch import Tensor

# log 2 in two parts: the first has 21 trailing zeros, so that products with exponents are exact.
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
# Below, the exponential is taken for zero: it would be subnormal.
_LOWEST = -708.0

# Of the Taylor series: on [-log(2)/2, log(2)/2] what is left out is below 2^-57.
_FACTORIALS = [1.0]
for _i in range(1, 14):
    _FACTORIALS.append(_FACTORIALS[-1] * _i)

# (log(1 + s) - log(1 - s)) / s - 2 as a polynomial in s^2 on [0, 0.1716], within 2^-58.45 (the constants of
# fdlibm).
_LOG_SERIES = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def exp_of_negative(x: Tensor) -> Tensor:
    """e^x for x <= 0, within 1.5 units in the last place; 0 below -708. NaN stays NaN."""
    inside = x.clamp(min=_LOWEST)
    exponent = (inside * _LOG2_E).round()
    r = (inside - exponent * _LOG2_HIGH) - exponent * _LOG2_LOW
    series = torch.full_like(r, 1.0 / _FACTORIALS[13])
    for factorial in reversed(_FACTORIALS[:13]):
        series.mul_(r).add_(1.0 / factorial)
    power = ((exponent.nan_to_num(0.0).to(torch.int64) + 1023) << 52).view(torch.float64)
    return series.mul_(power).masked_fill_(x < _LOWEST, 0.0)


def log(x: Tensor) -> Tensor:
    """log x for normal positive x, within one unit in the last place. NaN stays NaN."""
    # x = 2^exponent (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
    bits = x.contiguous().view(torch.int64)
    exponent = (bits >> 52) - 1023
    fraction = ((bits & ((1 << 52) - 1)) | (1023 << 52)).view(torch.float64)
    large = fraction > 1.4142135623730951
    f = torch.where(large, fraction * 0.5, fraction) - 1.0
    k = torch.where(large, exponent + 1, exponent).to(torch.float64)
    s = f / (2.0 + f)
    z = s * s
    series = torch.full_like(z, _LOG_SERIES[6])
    for coefficient in reversed(_LOG_SERIES[:6]):
        series.mul_(z).add_(coefficient)
    half_square = 0.5 * f * f
    found = k * _LOG2_HIGH - ((half_square - (s * (half_square + z * series) + k * _LOG2_LOW)) - f)
    return torch.where(torch.isnan(x), x, found)
