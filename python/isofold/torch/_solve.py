"""Fits, gradients and block means by the native library. Nothing here is known to autograd.

Tensors are flat, or of any shape with rows along the last dimension. Those that the native library can read
as they are go to it at once; others are brought to a form that it can.

A row that cannot be fitted (a NaN, an infinity, a weight that is not positive) comes out NaN, as one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isofold import _native
from isofold.torch._rows import Call


def _tensor(array: Any, dtype: torch.dtype) -> Tensor:
    found = torch.from_numpy(array)
    return found.view(torch.bfloat16) if dtype == torch.bfloat16 else found


def _array(tensor: Tensor) -> Any:
    """For the native library: NumPy's arrays are handed over faster, but it has no bfloat16."""
    return tensor if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _flat(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1).resolve_neg().contiguous()


def _plain(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else _flat(tensor)


def _library() -> Any:
    """By torch's table of C functions; None where it has none that is known."""
    try:
        return _native.TensorLibrary(Tensor.__dlpack_c_exchange_api__)
    except (AttributeError, ValueError):
        return None


LIBRARY = _library()


def in_order(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_contiguous() and not tensor.is_neg() else tensor.resolve_neg().contiguous()


def _as_given(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else in_order(tensor)


# ---- Rows that cannot be fitted ----


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
    rows = offsets.numel() - 1
    row = torch.repeat_interleave(torch.arange(rows, device=offsets.device), offsets.diff())
    counts = torch.zeros(rows, dtype=torch.int64, device=offsets.device).index_add(0, row, bad.long())
    return counts[row] > 0


def check_offsets(offsets: Tensor | None, total: int) -> None:
    """Raises where ragged rows do not cut the elements; reads the offsets, so it is for those in host
    memory."""
    if offsets is None:
        return
    if int(offsets[0]) != 0:
        raise ValueError(f"offsets must rise from 0, but offsets[0] is {int(offsets[0])}")
    falls = offsets.diff() < 0
    if bool(falls.any()):
        at = int(falls.nonzero()[0]) + 1
        raise ValueError(
            f"offsets must not fall, but offsets[{at}] is {int(offsets[at])} after {int(offsets[at - 1])}"
        )
    if int(offsets[-1]) != total:
        raise ValueError(
            f"offsets must end at the number of elements, {total}, but offsets[{offsets.numel() - 1}] is "
            f"{int(offsets[-1])}"
        )


def validate(values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call) -> None:
    """Raises where a row cannot be fitted, naming it; waits for the device."""
    check_offsets(offsets, values.numel())
    good, name, what = torch.isfinite(values), "input", "is not finite"
    if weights is not None and bool(good.all()):
        good, name, what = torch.isfinite(weights) & (weights > 0), "weights", "is not a positive number"
    if bool(good.all()):
        return
    at = int((~good).nonzero()[0])
    if offsets is None:
        row, position = divmod(at, call.length or 1)
    else:
        row = int(torch.searchsorted(offsets, at, right=True)) - 1
        position = at - int(offsets[row])
    found = values if name == "input" or weights is None else weights
    raise ValueError(f"{name} {what}: row {row}, position {position} is {found[at].item()}")


# ---- Calls ----


def _on_host(
    values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
) -> tuple[Any, Any, Any, int | None, bool, float, float]:
    """What the native calls begin with."""
    cuts = None if offsets is None else offsets.numpy()
    length = call.length if values.numel() or call.length is None else 0
    given = None if weights is None else _array(weights)
    return _array(values), given, cuts, length, call.increasing, call.lower, call.upper


_Solver = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]


def _where_possible(
    solve: _Solver, values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """(the two results, the elements of refused rows): the native library refuses a batch with such a row,
    for which they are then made harmless. Looking for them first would cost every call."""
    check_offsets(offsets, values.numel())
    try:
        return *solve(values, weights), None
    except ValueError:
        bad = refused(values, weights, offsets, call)
        if bad is None:
            raise
    values = values.masked_fill(bad, 0)
    return *solve(values, None if weights is None else weights.masked_fill(bad, 1)), bad


def _refuse(found: Tensor, bad: Tensor | None) -> Tensor:
    return found if bad is None else found.masked_fill(bad, torch.nan)


def fit(
    values: Tensor,
    weights: Tensor | None,
    offsets: Tensor | None,
    call: Call,
    want_starts: bool = True,
) -> tuple[Tensor, Tensor]:
    """(the fit, of the values' dtype; uint8 flags, 1 where a block starts), both of the values' shape. What
    the flags are where they are not wanted is undefined."""
    if LIBRARY is not None:
        given = in_order(values)
        found = torch.empty_like(given)
        starts = torch.empty_like(given, dtype=torch.uint8) if want_starts else None
        if LIBRARY.fit(given, _as_given(weights), offsets, *call, found, starts):
            return found, found if starts is None else starts
    found, starts = _flat_fit(_flat(values), _plain(weights), offsets, call)
    return found.view(values.shape), starts.view(values.shape)


def _flat_fit(
    values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
) -> tuple[Tensor, Tensor]:
    if values.is_cuda:
        from isofold.torch import _cuda, _halves

        solver = _halves if values.dtype in _halves.HALVES else _cuda
        return solver.fit(values, weights, offsets, call)

    def solve(values: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        found, starts = _native.fit(*_on_host(values, weights, offsets, call), None, None, 0)
        return _tensor(found, values.dtype), torch.from_numpy(starts)

    found, starts, bad = _where_possible(solve, values, weights, offsets, call)
    assert starts is not None
    return _refuse(found, bad), starts


def gradient(
    incoming: Tensor,
    values: Tensor,
    weights: Tensor | None,
    starts: Tensor,
    offsets: Tensor | None,
    call: Call,
    want_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """(gradient in the values, in the weights or None), of the values' shape and the values' and the weights'
    dtypes."""
    if LIBRARY is not None:
        given, of = in_order(values), _as_given(weights)
        found = torch.empty_like(given)
        of_weights = torch.empty_like(given if of is None else of) if want_weights else None
        flags, coming = in_order(starts), in_order(incoming)
        if LIBRARY.gradient(given, of, offsets, *call, flags, coming, found, of_weights):
            return found, of_weights
    found, of_weights = _flat_gradient(
        _flat(incoming), _flat(values), _plain(weights), _flat(starts), offsets, call, want_weights
    )
    return found.view(values.shape), None if of_weights is None else of_weights.view(values.shape)


def _flat_gradient(
    incoming: Tensor,
    values: Tensor,
    weights: Tensor | None,
    starts: Tensor,
    offsets: Tensor | None,
    call: Call,
    want_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    if values.is_cuda:
        from isofold.torch import _cuda, _halves

        solver = _halves if values.dtype in _halves.HALVES else _cuda
        return solver.gradient(incoming, values, weights, starts, offsets, call, want_weights)
    dtype = values.dtype if weights is None else weights.dtype

    def solve(values: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor | None]:
        rows = _on_host(values, weights, offsets, call)
        found, of_weights = _native.gradient(*rows, starts.numpy(), _array(incoming), want_weights, None, 0)
        return _tensor(found, values.dtype), None if of_weights is None else _tensor(of_weights, dtype)

    found, of_weights, bad = _where_possible(solve, values, weights, offsets, call)
    return _refuse(found, bad), None if of_weights is None else _refuse(of_weights, bad)


def block_means(x: Tensor, starts: Tensor, offsets: Tensor | None, length: int | None) -> Tensor:
    """The exact mean of the float64 x over each block, rounded once; NaN where x is not finite."""
    # It is the gradient of an unweighted fit, whose values play no part, but on a CPU must be finite.
    call = Call(length, False, -math.inf, math.inf)
    if LIBRARY is not None:
        given = in_order(x)
        found = torch.empty_like(given)
        if LIBRARY.gradient(given, None, offsets, *call, in_order(starts), given, found, None):
            return found
    return gradient(x, torch.zeros_like(x), None, starts, offsets, call, False)[0]
