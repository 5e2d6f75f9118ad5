"""exp and log of float64 tensors as fixed sequences of additions, multiplications and divisions.

Each of those is rounded to nearest on every device, so these give the same bits on all of them, which the exp
and log of a device's own library do not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isofold._logarithm_constants import EXP_SERIES, LOG2_E, LOG2_HIGH, LOG2_LOW, LOG_SERIES, LOWEST


def exp_of_negative(x: Tensor) -> Tensor:
    """e^x for x <= 0, within 1.5 units in the last place; 0 below -708. NaN stays NaN."""
    inside = x.clamp(min=LOWEST)
    exponent = (inside * LOG2_E).round()
    r = (inside - exponent * LOG2_HIGH) - exponent * LOG2_LOW
    series = torch.full_like(r, EXP_SERIES[0])
    for coefficient in EXP_SERIES[1:]:
        series.mul_(r).add_(coefficient)
    power = ((exponent.nan_to_num(0.0).to(torch.int64) + 1023) << 52).view(torch.float64)
    return series.mul_(power).masked_fill_(x < LOWEST, 0.0)


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
    series = torch.full_like(z, LOG_SERIES[0])
    for coefficient in LOG_SERIES[1:]:
        series.mul_(z).add_(coefficient)
    half_square = 0.5 * f * f
    found = k * LOG2_HIGH - ((half_square - (s * (half_square + z * series) + k * LOG2_LOW)) - f)
    return torch.where(torch.isnan(x), x, found)
