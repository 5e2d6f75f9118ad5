"""Isotonic regression that torch can differentiate."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isofold.torch import _solve
from isofold.torch._rows import Call, as_rows

# ---- Sums over blocks, for second derivatives and in forward mode: float64, not exact ----


def _block_ids(starts: Tensor) -> Tensor:
    return starts.long().cumsum(0) - 1


def _over_blocks(ids: Tensor, x: Tensor) -> Tensor:
    """For every element the sum of x over its block."""
    return torch.zeros_like(x).index_add(0, ids, x)[ids]


def _inside(fit: Tensor, call: Call) -> Tensor:
    """1 where a fit, before it is clipped, lies between the bounds."""
    return ((fit >= call.lower) & (fit <= call.upper)).to(torch.float64)


# ---- vmap: batches of flat rows are more flat rows ----


def _batched(size: int, tensor: Tensor | None, dim: int | None) -> Tensor | None:
    if tensor is None:
        return None
    moved = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return moved.reshape(-1)


def _batched_offsets(size: int, offsets: Tensor | None, total: int) -> Tensor | None:
    if offsets is None:
        return None
    shifted = offsets[1:] + total * torch.arange(size, device=offsets.device)[:, None]
    return torch.cat([offsets[:1], shifted.reshape(-1)])


class _Fit(torch.autograd.Function):
    """(fit, block starts) of flat rows."""

    @staticmethod
    def forward(
        values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
    ) -> tuple[Tensor, Tensor]:
        return _solve.fit(values, weights, offsets, call)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        values, weights, offsets, ctx.call = inputs
        starts = output[1]
        ctx.mark_non_differentiable(starts)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, weights, offsets, starts)
        ctx.save_for_forward(values, weights, starts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, Tensor | None, None, None]:
        if grad is None:
            return None, None, None, None
        values, weights, offsets, starts = ctx.saved_tensors
        want_weights = ctx.needs_input_grad[1]
        for_values, for_weights = _Gradient.apply(
            grad, values, weights, starts, offsets, ctx.call, want_weights
        )
        return for_values, for_weights if want_weights else None, None, None

    @staticmethod
    def jvp(ctx: Any, values_dot: Tensor | None, weights_dot: Tensor | None, *_: None) -> tuple[Tensor, None]:
        values, weights, starts = ctx.saved_tensors
        ids = _block_ids(starts)
        y = values.double()
        w = torch.ones_like(y) if weights is None else weights.double()
        width = _over_blocks(ids, w)
        mean = _over_blocks(ids, w * y) / width
        moment = torch.zeros_like(y)
        if values_dot is not None:
            moment = moment + w * values_dot.double()
        if weights_dot is not None:
            moment = moment + (y - mean) * weights_dot.double()
        tangent = _inside(mean.to(values.dtype), ctx.call) * _over_blocks(ids, moment) / width
        return tangent.to(values.dtype), None

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call
    ) -> Any:
        size = info.batch_size
        flat = _batched(size, values, in_dims[0])
        assert flat is not None
        total = flat.numel() // size
        cut = _batched_offsets(size, offsets, total)
        fit, starts = _Fit.apply(flat, _batched(size, weights, in_dims[1]), cut, call)
        return (fit.view(size, total), starts.view(size, total)), (0, 0)


class _Gradient(torch.autograd.Function):
    """dL/dy_i = w_i G / W and dL/dw_i = (y_i - m) G / W, where G, W, m are the block's; exact ones, which
    plain arithmetic differentiates further. The second is zero where it is not wanted."""

    @staticmethod
    def forward(
        grad: Tensor,
        values: Tensor,
        weights: Tensor | None,
        starts: Tensor,
        offsets: Tensor | None,
        call: Call,
        want_weights: bool,
    ) -> tuple[Tensor, Tensor]:
        found, of_weights = _solve.gradient(grad, values, weights, starts, offsets, call, want_weights)
        return found, found.new_zeros(()) if of_weights is None else of_weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        grad, values, weights, starts, offsets, ctx.call, ctx.want_weights = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(grad, values, weights, starts, offsets)
        ctx.save_for_forward(grad, values, weights, starts)

    @staticmethod
    def jvp(
        ctx: Any, grad_dot: Tensor | None, values_dot: Tensor | None, weights_dot: Tensor | None, *_: None
    ) -> Any:
        grad, values, weights, starts = ctx.saved_tensors
        ids = _block_ids(starts)
        y = values.double()
        w = torch.ones_like(y) if weights is None else weights.double()
        zero = torch.zeros_like(y)
        dg, dy, dw = (zero if t is None else t.double() for t in (grad_dot, values_dot, weights_dot))
        width = _over_blocks(ids, w)
        mean = _over_blocks(ids, w * y) / width
        inside = _inside(mean.to(values.dtype), ctx.call)
        slope = inside * _over_blocks(ids, grad.double()) / width
        slope_dot = inside * _over_blocks(ids, dg) / width - slope * _over_blocks(ids, dw) / width
        for_values = dw * slope + w * slope_dot
        if not ctx.want_weights:
            return for_values.to(values.dtype), values.new_zeros(())
        mean_dot = _over_blocks(ids, w * dy + (y - mean) * dw) / width
        for_weights = (dy - mean_dot) * slope + (y - mean) * slope_dot
        return for_values.to(values.dtype), for_weights.to((values if weights is None else weights).dtype)

    @staticmethod
    def backward(ctx: Any, u: Tensor | None, v: Tensor | None) -> tuple[Tensor | None, ...]:
        grad, values, weights, starts, _ = ctx.saved_tensors
        call: Call = ctx.call
        if not ctx.want_weights:
            v = None
        if u is None and v is None:
            return (None,) * 7
        ids = _block_ids(starts)
        y = values.double()
        w = torch.ones_like(y) if weights is None else weights.double()
        width = _over_blocks(ids, w)
        mean = _over_blocks(ids, w * y) / width
        inside = _inside(mean.to(values.dtype), call)
        slope = inside * _over_blocks(ids, grad.double()) / width  # G / W
        # L = slope (sum of u w + sum of v y - m sum of v), over every block.
        reach = torch.zeros_like(y)
        spread = torch.zeros_like(y)
        if u is not None:
            reach = reach + _over_blocks(ids, u.double() * w)
        if v is not None:
            spread = _over_blocks(ids, v.double())
            reach = reach + _over_blocks(ids, v.double() * y) - spread * mean
        for_grad = inside * reach / width
        for_values = None
        if v is not None:
            for_values = (slope * (v.double() - spread * w / width)).to(values.dtype)
        for_weights = None
        if weights is not None and ctx.needs_input_grad[2]:
            first = 0.0 if u is None else u.double()
            for_weights = slope * (first - reach / width - spread * (y - mean) / width)
            for_weights = for_weights.to(weights.dtype)
        return for_grad.to(grad.dtype), for_values, for_weights, None, None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        grad: Tensor,
        values: Tensor,
        weights: Any,
        starts: Tensor,
        offsets: Any,
        call: Call,
        want_weights: bool,
    ) -> Any:
        size = info.batch_size
        flat = [
            _batched(size, t, d) for t, d in zip((grad, values, weights, starts), in_dims[:4], strict=True)
        ]
        assert flat[1] is not None
        total = flat[1].numel() // size
        cut = _batched_offsets(size, offsets, total)
        found, of_weights = _Gradient.apply(*flat, cut, call, want_weights)
        if not want_weights:
            return (found.view(size, total), of_weights), (0, None)
        return (found.view(size, total), of_weights.view(size, total)), (0, 0)


def block_means(x: Tensor, z: Tensor, offsets: Tensor | None, length: int | None) -> Tensor:
    """The exact mean of x over every block of the non-increasing fit of z, rounded once; flat, float64."""
    call = Call(length, False, -math.inf, math.inf)
    z = z.detach()
    _, starts = _Fit.apply(z, None, offsets, call)
    means, _ = _Gradient.apply(x, z, None, starts, offsets, call, False)
    return means


# ---- Public ----


def _validate(rows: Any) -> None:
    bad = _solve.refused(
        rows.values.detach(), None if rows.weights is None else rows.weights.detach(), rows.offsets, rows.call
    )
    if bad is None:
        return
    finite = torch.isfinite(rows.values)
    name, culprit = ("input", ~finite) if not bool(finite.all()) else ("weights", None)
    if culprit is None:
        culprit = ~(torch.isfinite(rows.weights) & (rows.weights > 0))
    at = int(culprit.nonzero()[0])
    if rows.offsets is None:
        row, position = divmod(at, rows.call.length)
    else:
        row = int(torch.searchsorted(rows.offsets, at, right=True)) - 1
        position = at - int(rows.offsets[row])
    found = (rows.values if name == "input" else rows.weights)[at].item()
    what = "is not finite" if name == "input" else "is not a positive number"
    raise ValueError(f"{name} {what}: row {row}, position {position} is {found}")


def isotonic_regression(
    input: Tensor,
    weights: Tensor | float | None = None,
    *,
    increasing: bool = True,
    y_min: float | None = None,
    y_max: float | None = None,
    dim: int = -1,
    offsets: Tensor | None = None,
    validate: bool = False,
) -> Tensor:
    """The isotonic regression of every row of a tensor: the non-decreasing sequence closest to it.

    Parameters
    ----------
    input : Tensor
        Real, of at least one dimension. Integers become torch's default dtype.
    weights : Tensor or float, optional
        Positive, of input's shape or broadcast to it, of a dtype of their own.
    increasing : bool
        False: the non-increasing fit.
    y_min, y_max : float, optional
        The rounded fit is clipped to these. Where it lies strictly outside, no gradient passes.
    dim : int
        Along which rows run.
    offsets : int tensor of shape (rows + 1,), optional
        Cuts a 1-D input into ragged rows: row r holds ``input[offsets[r]:offsets[r + 1]]``.
    validate : bool
        Raise where a row cannot be fitted (on CUDA this waits for the device).

    Returns
    -------
    Tensor of input's shape and dtype
        Each value is the exact real one, rounded once. A row with a NaN, an infinity or a weight that is not
        positive is NaN; the others are untouched.

    Notes
    -----
    Gradients in input are exact too, rounded once; those in weights are (y_i - m) G / W in float64. Blocks
    come from the solver. Where blocks join or part the fit has no derivative: the one given is that of the
    blocks as they are. Second derivatives and forward mode are plain float64 arithmetic over the same blocks.
    Linear in the number of elements but for O(m log m) for m chunks of a row.
    """
    rows = as_rows(input, weights, increasing, y_min, y_max, dim, offsets)
    if validate:
        _validate(rows)
    fit, _ = _Fit.apply(rows.values, rows.weights, rows.offsets, rows.call)
    return rows.bring_back(fit)


def blocks(
    input: Tensor,
    weights: Tensor | float | None = None,
    *,
    increasing: bool = True,
    dim: int = -1,
    offsets: Tensor | None = None,
) -> Tensor:
    """A boolean mask of input's shape: True where a maximal block of equal exact mean starts.

    Parameters are those of `isotonic_regression`.
    """
    rows = as_rows(input, weights, increasing, None, None, dim, offsets)
    with torch.no_grad():
        _, starts = _Fit.apply(rows.values, rows.weights, rows.offsets, rows.call)
    return rows.bring_back(starts.bool())
