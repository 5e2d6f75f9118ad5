"""float16 and bfloat16 by way of float64: where only float32 and float64 are solved, on CUDA.

The exact mean m of a block comes rounded to float64. Rounding that once more is rounding m, unless it lies
midway between two halves while m does not. Which side m is on is the sign of sum w_i (y_i - midway), and that
sum is exact: its terms are split into floats without error, and exact block means add those up.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isofold.torch import _solve
from isofold.torch._rows import Call

HALVES = (torch.float16, torch.bfloat16)

_PRECISION = {torch.float16: 11, torch.bfloat16: 8}
# The exponent of the smallest subnormal and of the largest power of two.
_RANGE = {torch.float16: (-24, 15), torch.bfloat16: (-133, 127)}


def _power(exponent: Tensor) -> Tensor:
    return ((exponent + 1023) << 52).view(torch.float64)


def _neighbours(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(x rounded to the dtype's grid, half of a step of that grid); both float64."""
    lowest, highest = _RANGE[dtype]
    exponent = ((x.view(torch.int64) >> 52) & 2047) - 1023
    step = exponent.clamp(max=highest).sub(_PRECISION[dtype] - 1).clamp(min=lowest)
    # Adding a number whose own last bit is the step rounds to that.
    large = 1.5 * _power(step + 52)
    return (x + large) - large, _power(step - 1)


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to the dtype, rounded once: torch goes by way of float32."""
    return (_neighbours(x.contiguous(), dtype)[0] if dtype in HALVES else x).to(dtype)


def _two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _split(a: Tensor) -> tuple[Tensor, Tensor]:
    large = 134217729.0 * a
    high = large - (large - a)
    return high, a - high


def _two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _excess(
    x: Tensor,
    weights: Tensor | None,
    mean: Tensor,
    starts: Tensor,
    offsets: Tensor | None,
    length: int | None,
) -> Tensor:
    """A number of the sign of sum w_i (x_i - mean) over the block. Exact if weights are no float64s outside
    of 2^-400 to 2^400."""
    terms: tuple[Tensor, ...] = _two_sum(x, -mean)
    if weights is not None:
        terms = tuple(part for term in terms for part in _two_product(weights.double(), term))
    count = len(terms)
    # Rows of the terms, side by side; a block's start is that of its first term.
    spread = torch.zeros(len(x), count, dtype=torch.uint8, device=x.device)
    spread[:, 0] = starts
    sums = _solve.block_means(
        torch.stack(terms, 1).view(-1),
        spread.view(-1),
        None if offsets is None else offsets * count,
        None if length is None else length * count,
    )
    return sums.view(-1, count)[:, 0]


def _decided(found: Tensor, excess: Tensor, dtype: torch.dtype) -> Tensor:
    """A real number, rounded to the dtype, of which float64 knows the nearest and excess the side it is
    on."""
    near, half = _neighbours(found, dtype)
    midway = (found - near).abs() == half
    moved = torch.where(midway & (excess != 0), found + excess.sign() * half, near)
    return torch.where(torch.isnan(found) | torch.isnan(excess), near, moved).to(dtype)


def _shares(
    g: Tensor, weights: Tensor, found: Tensor, starts: Tensor, offsets: Tensor | None, length: int | None
) -> Tensor:
    """A number of the sign of w_i G / W - found_i, or 0 where that is below 2^-98 of found_i: both means to
    106 bits, under the limits of `_excess`."""

    def mean(x: Tensor) -> tuple[Tensor, Tensor]:
        high = _solve.block_means(x, starts, offsets, length)
        return high, 2 * _excess(x, None, high, starts, offsets, length)

    (g_high, g_low), (w_high, w_low) = mean(g), mean(weights)
    (share, share_rest), (product, product_rest) = _two_product(weights, g_high), _two_product(found, w_high)
    excess = (share - product) + ((share_rest - product_rest) + (weights * g_low - found * w_low))
    return torch.where(excess.abs() <= 2.0**-98 * product.abs(), 0.0, excess)


def widened(weights: Tensor | None) -> Tensor | None:
    """Halves as float64, which holds their gradients before they are rounded once."""
    return weights.double() if weights is not None and weights.dtype in HALVES else weights


def _unclipped(
    values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
) -> tuple[Tensor, Tensor]:
    wide = values.double()
    free = call._replace(lower=-math.inf, upper=math.inf)
    mean, starts = _solve.fit(wide, widened(weights), offsets, free)
    excess = _excess(wide, weights, mean, starts, offsets, call.length)
    return _decided(mean, excess, values.dtype), starts


def _bounds(call: Call, dtype: torch.dtype) -> list[float]:
    both = torch.tensor([call.lower, call.upper], dtype=torch.float64)
    return rounded(both, dtype).double().tolist()


def fit(values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call) -> tuple[Tensor, Tensor]:
    """As `_solve.fit`, of halves."""
    found, starts = _unclipped(values, weights, offsets, call)
    lower, upper = _bounds(call, values.dtype)
    return found.clamp(lower, upper) if lower > -math.inf or upper < math.inf else found, starts


def gradient(
    incoming: Tensor,
    values: Tensor,
    weights: Tensor | None,
    starts: Tensor,
    offsets: Tensor | None,
    call: Call,
    want_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """As `_solve.gradient`, of halves."""
    wide, g, w = values.double(), incoming.double(), widened(weights)
    free = call._replace(lower=-math.inf, upper=math.inf)
    found, of_weights = _solve.gradient(g, wide, w, starts, offsets, free, want_weights)
    if w is None:
        excess = _excess(g, None, found, starts, offsets, call.length)
    else:
        excess = _shares(g, w.double(), found, starts, offsets, call.length)
    found = _decided(found, excess, values.dtype)
    if of_weights is not None:
        of_weights = rounded(of_weights, (values if weights is None else weights).dtype)
    lower, upper = _bounds(call, values.dtype)
    if lower > -math.inf or upper < math.inf:
        fit, _ = _unclipped(values, weights, offsets, call)
        outside = (fit < lower) | (fit > upper)
        found = found.masked_fill(outside, 0)
        of_weights = None if of_weights is None else of_weights.masked_fill(outside, 0)
    return found, of_weights
