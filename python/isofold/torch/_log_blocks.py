"""Blocks of the fit in the Kullback-Leibler divergence by the exact solver, where exponentials have room.

With y_i = e^(a_i - b_i) and weights e^(b_i) the fit of `_log_pooling` is an ordinary weighted one. What its
range has no room for is cut first: where all c = a - b on the left exceed all on the right, a block ends for
certain. Within a part, neighbours are bridged by pairs i < j with c_i < c_j, that is a_i - a_j < b_i - b_j,
and some of those cover it, no point more than twice. For ranks, where b is log n at most and not below 0, a
thus spans no more than 2 log n in a part: the exponentials always have room. For sorting they mostly have.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isofold.torch import _log_pooling, _solve
from isofold.torch._logarithms import exp_of_negative
from isofold.torch._rows import Call

# Of one factor of a value, whose reciprocal is the weight: both stay far from the ends of a float64.
_ROOM = 600.0


def firsts(starts: Tensor) -> Tensor:
    """For every element the position of the last start up to it."""
    index = torch.arange(starts.numel(), device=starts.device)
    return torch.where(starts > 0, index, 0).cummax(0).values


def parts(c: Tensor, row: Tensor) -> Tensor:
    """True where all before in the row exceed all from there on, and where a row starts.

    Shape (batch, elements): rows of a batch are apart already, and `row` numbers those within.
    """
    if c.shape[0] == 1:
        # Ranks of all values, those of a later row below: what runs along the rows starts anew in each.
        rank = torch.empty_like(row).scatter_(
            1, c.argsort(dim=1, stable=True), torch.arange(c.shape[1], device=c.device)[None]
        )
        c = rank - row * c.shape[1]
    least, most = c.cummin(1).values, c.flip(1).cummax(1).values.flip(1)
    found = torch.ones_like(c, dtype=torch.bool)
    found[:, 1:] = least[:, :-1] > most[:, 1:]
    return found


def _offsets(starts: Tensor) -> Tensor:
    """Of the parts; on a device, where their number is not known here, followed by empty ones."""
    total = starts.numel()
    if not starts.is_cuda:
        return torch.cat([starts.nonzero().view(-1), torch.tensor([total])])
    index = torch.arange(total, device=starts.device)
    found = torch.full((total + 1,), total, device=starts.device)
    return found.scatter_(
        0, torch.where(starts, starts.cumsum(0) - 1, total), torch.where(starts, index, total)
    )


def _in_parts_with(bad: Tensor, first: Tensor) -> Tensor:
    """True for all elements of parts with a `bad` one; `first`: where each one's part starts."""
    total = bad.numel()
    index = torch.arange(total, device=bad.device)
    behind = torch.where(bad, index, -1).cummax(0).values
    ahead = torch.where(bad, index, total).flip(0).cummin(0).values.flip(0)
    same_part = (ahead < total) & (first.take(ahead.clamp(max=max(total - 1, 0))) == first)
    return (behind >= first) | same_part


def block_starts(a: Tensor, b: Tensor, row: Tensor, scale: Tensor | None) -> Tensor:
    """uint8 flags, flat, 1 where a block starts, of rows as for `_log_pooling`. scale: e^b, if b is at least
    0 and at most the logarithm of the row's length. Otherwise parts for which exponentials have no room are
    left to `_log_pooling`: always on a device, whose values are not looked at here."""
    in_rows = a, b, row
    part = parts(a - b, row).view(-1)
    first = firsts(part)
    a, b = a.reshape(-1), b.reshape(-1)
    a = a - a.take(first)
    lacking = None
    if scale is None:
        b = b - b.take(first)
        least = torch.minimum(a, b)
        # A row that cannot be fitted has no room to look for.
        lacking = _in_parts_with((least < -_ROOM) & (least > -torch.inf), first)
        a, b = (x.masked_fill(lacking, 0.0) for x in (a, b))
        scale = exp_of_negative(b)
    call = Call(None, False, -math.inf, math.inf)
    starts = _solve.fit(exp_of_negative(a) / scale, scale, _offsets(part), call)[1]
    if lacking is None or not (starts.is_cuda or bool(lacking.any())):
        return starts
    pooled = _log_pooling.block_starts(*in_rows).view(-1)
    return torch.where(lacking, pooled | part.to(torch.uint8), starts)
