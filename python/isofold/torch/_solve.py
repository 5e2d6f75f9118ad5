"""Fits and gradients of flat tensors by the native library. Nothing here is known to autograd.

A row that cannot be fitted (a NaN, an infinity, a weight that is not positive) comes out NaN, as one block.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isofold import _native
from isofold.torch._rows import Call


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _tensor(array: Any, dtype: torch.dtype) -> Tensor:
    found = torch.from_numpy(array)
    return found.view(torch.bfloat16) if dtype == torch.bfloat16 else found


def refused(values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call) -> Tensor | None:
    """True for the elements of rows that cannot be fitted; None: there are none."""
    bad = ~torch.isfinite(values)
    if weights is not None:
        bad |= ~(torch.isfinite(weights) & (weights > 0))
    if not bool(bad.any()):
        return None
    if offsets is None:
        rows = bad.view(-1, call.length or 1)
        return rows.any(1, keepdim=True).expand_as(rows).reshape(-1)
    row = torch.repeat_interleave(torch.arange(offsets.numel() - 1), offsets.diff())
    counts = torch.zeros(offsets.numel() - 1, dtype=torch.int64).index_add(0, row, bad.long())
    return counts[row] > 0


def _on_host(
    values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
) -> tuple[tuple[Any, Any, Any, int | None, bool, float, float], Tensor | None]:
    """What the native calls begin with, refused rows made harmless, and the elements of those."""
    bad = refused(values, weights, offsets, call)
    if bad is not None:
        values = values.masked_fill(bad, 0)
        weights = None if weights is None else weights.masked_fill(bad, 1)
    cuts = None if offsets is None else offsets.numpy()
    length = call.length if values.numel() or call.length is None else 0
    return (values, weights, cuts, length, call.increasing, call.lower, call.upper), bad


def _refuse(found: Tensor, bad: Tensor | None) -> Tensor:
    return found if bad is None else found.masked_fill(bad, torch.nan)


def fit(values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call) -> tuple[Tensor, Tensor]:
    """(the fit, of the values' dtype; uint8 flags, 1 where a block starts)"""
    values = values.detach().contiguous()
    weights = None if weights is None else weights.detach().contiguous()
    if values.is_cuda:
        from isofold.torch import _cuda

        return _cuda.fit(values, weights, offsets, call)
    rows, bad = _on_host(values, weights, offsets, call)
    found, starts = _native.fit(*rows, None, None, 0)
    return _refuse(_tensor(found, values.dtype), bad), torch.from_numpy(starts)


def gradient(
    incoming: Tensor,
    values: Tensor,
    weights: Tensor | None,
    starts: Tensor,
    offsets: Tensor | None,
    call: Call,
    want_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """(gradient in the values, in the weights or None), of the values' and the weights' dtypes."""
    incoming = incoming.detach().contiguous()
    values = values.detach().contiguous()
    weights = None if weights is None else weights.detach().contiguous()
    if values.is_cuda:
        from isofold.torch import _cuda

        return _cuda.gradient(incoming, values, weights, starts, offsets, call, want_weights)
    rows, bad = _on_host(values, weights, offsets, call)
    found, of_weights = _native.gradient(*rows, starts.numpy(), incoming, want_weights, None, 0)
    dtype = values.dtype if weights is None else weights.dtype
    return (
        _refuse(_tensor(found, values.dtype), bad),
        None if of_weights is None else _refuse(_tensor(of_weights, dtype), bad),
    )
