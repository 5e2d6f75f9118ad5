"""Isotonic regression that torch can differentiate."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isofold.torch import _solve
from isofold.torch._operators import Node, Operator, batched, batched_offsets, block_means, is_direct
from isofold.torch._rows import Call, Rows, as_bounds, as_rows, is_solved

_CALL = "SymInt? length, bool increasing, float lower, float upper"


class _Blocks:
    """What second derivatives and forward mode are made of, in float64: not exact, but the same on every
    device. Every quotient of two sums over a block is that of its two means."""

    def __init__(
        self, values: Tensor, weights: Tensor | None, starts: Tensor, offsets: Tensor | None, call: Call
    ) -> None:
        self.mean: Callable[[Tensor], Tensor] = lambda x: block_means(x, starts, offsets, call.length)
        self.y = values.double()
        self.w = torch.ones_like(self.y) if weights is None else weights.double()
        self.width = self.mean(self.w)
        self.fit = self.mean(self.w * self.y) / self.width
        fit = self.fit.detach().to(values.dtype)
        # 1 where a fit, before it is clipped, lies between the bounds.
        self.inside = ((fit >= call.lower) & (fit <= call.upper)).to(torch.float64)


class _Fit:
    """(fit, block starts) of flat rows."""

    @staticmethod
    def forward(
        values: Tensor,
        weights: Tensor | None,
        offsets: Tensor | None,
        length: int | None,
        increasing: bool,
        lower: float,
        upper: float,
        validate: bool,
    ) -> tuple[Tensor, Tensor]:
        call = Call(length, increasing, lower, upper)
        if validate:
            _solve.validate(values, weights, offsets, call)
        return _solve.fit(values, weights, offsets, call)

    @staticmethod
    def fake(values: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        return values.new_empty(values.shape), values.new_empty(values.shape, dtype=torch.uint8)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        values, weights, offsets, *call, _ = inputs
        ctx.call = Call(*call)
        starts = output[1]
        ctx.mark_non_differentiable(starts)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, weights, offsets, starts)
        ctx.save_for_forward(values, weights, offsets, starts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 8
        values, weights, offsets, starts = ctx.saved_tensors
        want_weights = ctx.needs_input_grad[1]
        for_values, for_weights = _gradient(grad, values, weights, starts, offsets, *ctx.call, want_weights)
        return for_values, for_weights if want_weights else None, *(None,) * 6

    @staticmethod
    def jvp(ctx: Any, values_dot: Tensor | None, weights_dot: Tensor | None, *_: None) -> tuple[Tensor, None]:
        values, weights, offsets, starts = ctx.saved_tensors
        blocks = _Blocks(values, weights, starts, offsets, ctx.call)
        moment = torch.zeros_like(blocks.y)
        if values_dot is not None:
            moment = moment + blocks.w * values_dot.double()
        if weights_dot is not None:
            moment = moment + (blocks.y - blocks.fit) * weights_dot.double()
        tangent = blocks.inside * blocks.mean(moment) / blocks.width
        return tangent.to(values.dtype), None

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, values: Tensor, weights: Tensor | None, offsets: Tensor | None, *call: Any
    ) -> Any:
        size = info.batch_size
        flat = batched(size, values, in_dims[0])
        assert flat is not None
        total = flat.numel() // size
        cut = batched_offsets(size, offsets, in_dims[2], total)
        fit, starts = _fit(flat, batched(size, weights, in_dims[1]), cut, *call)
        return (fit.view(size, total), starts.view(size, total)), (0, 0)


class _Gradient:
    """dL/dy_i = w_i G / W and dL/dw_i = (y_i - m) G / W, where G, W, m are the block's; exact ones, which
    plain arithmetic differentiates further. The second is zero where it is not wanted."""

    @staticmethod
    def forward(
        grad: Tensor,
        values: Tensor,
        weights: Tensor | None,
        starts: Tensor,
        offsets: Tensor | None,
        length: int | None,
        increasing: bool,
        lower: float,
        upper: float,
        want_weights: bool,
    ) -> tuple[Tensor, Tensor]:
        call = Call(length, increasing, lower, upper)
        found, of_weights = _solve.gradient(grad, values, weights, starts, offsets, call, want_weights)
        return found, found.new_zeros(()) if of_weights is None else of_weights

    @staticmethod
    def fake(
        grad: Tensor,
        values: Tensor,
        weights: Tensor | None,
        starts: Tensor,
        offsets: Tensor | None,
        *call: Any,
    ) -> tuple[Tensor, Tensor]:
        *_, want_weights = call
        like = values if weights is None or not want_weights else weights
        return values.new_empty(values.shape), like.new_empty(values.shape if want_weights else ())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        grad, values, weights, starts, offsets, *call, ctx.want_weights = inputs
        ctx.call = Call(*call)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(grad, values, weights, starts, offsets)
        ctx.save_for_forward(grad, values, weights, starts, offsets)

    @staticmethod
    def jvp(
        ctx: Any, grad_dot: Tensor | None, values_dot: Tensor | None, weights_dot: Tensor | None, *_: None
    ) -> Any:
        grad, values, weights, starts, offsets = ctx.saved_tensors
        b = _Blocks(values, weights, starts, offsets, ctx.call)
        zero = torch.zeros_like(b.y)
        dg, dy, dw = (zero if t is None else t.double() for t in (grad_dot, values_dot, weights_dot))
        slope = b.inside * b.mean(grad.double()) / b.width
        slope_dot = b.inside * b.mean(dg) / b.width - slope * b.mean(dw) / b.width
        for_values = dw * slope + b.w * slope_dot
        if not ctx.want_weights:
            return for_values.to(values.dtype), values.new_zeros(())
        fit_dot = b.mean(b.w * dy + (b.y - b.fit) * dw) / b.width
        for_weights = (dy - fit_dot) * slope + (b.y - b.fit) * slope_dot
        return for_values.to(values.dtype), for_weights.to((values if weights is None else weights).dtype)

    @staticmethod
    def backward(ctx: Any, u: Tensor | None, v: Tensor | None) -> tuple[Tensor | None, ...]:
        grad, values, weights, starts, offsets = ctx.saved_tensors
        if not ctx.want_weights:
            v = None
        if u is None and v is None:
            return (None,) * 10
        b = _Blocks(values, weights, starts, offsets, ctx.call)
        slope = b.inside * b.mean(grad.double()) / b.width  # G / W
        # L = slope (sum of u w + sum of v y - m sum of v), over every block.
        reach = torch.zeros_like(b.y)
        spread = torch.zeros_like(b.y)
        if u is not None:
            reach = reach + b.mean(u.double() * b.w)
        if v is not None:
            spread = b.mean(v.double())
            reach = reach + b.mean(v.double() * b.y) - spread * b.fit
        for_grad = b.inside * reach / b.width
        for_values = None
        if v is not None:
            for_values = (slope * (v.double() - spread * b.w / b.width)).to(values.dtype)
        for_weights = None
        if weights is not None and ctx.needs_input_grad[2]:
            first = 0.0 if u is None else u.double()
            for_weights = slope * (first - reach / b.width - spread * (b.y - b.fit) / b.width)
            for_weights = for_weights.to(weights.dtype)
        return for_grad.to(grad.dtype), for_values, for_weights, *(None,) * 7

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        grad: Tensor,
        values: Tensor,
        weights: Tensor | None,
        starts: Tensor,
        offsets: Tensor | None,
        *call: Any,
    ) -> Any:
        size = info.batch_size
        flat = [
            batched(size, t, d) for t, d in zip((grad, values, weights, starts), in_dims[:4], strict=True)
        ]
        assert flat[1] is not None
        total = flat[1].numel() // size
        cut = batched_offsets(size, offsets, in_dims[4], total)
        found, of_weights = _gradient(*flat, cut, *call)
        if not call[-1]:
            return (found.view(size, total), of_weights), (0, None)
        return (found.view(size, total), of_weights.view(size, total)), (0, 0)


_fit = Operator(
    _Fit,
    f"fit(Tensor values, Tensor? weights, Tensor? offsets, {_CALL}, bool validate) -> (Tensor, Tensor)",
)
_gradient = Operator(
    _Gradient,
    "gradient(Tensor grad, Tensor values, Tensor? weights, Tensor starts, Tensor? offsets, "
    f"{_CALL}, bool want_weights) -> (Tensor, Tensor)",
)


def _solved(rows: Rows, validate: bool) -> tuple[Tensor, Tensor]:
    fit, starts = _fit(rows.values, rows.weights, rows.offsets, *rows.call, validate)
    return fit, starts


# ---- The shortest way: rows along the last dimension, of plain tensors ----


def _flat(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.reshape(-1)


class _FitNode(Node):
    """`_Fit` and `_Gradient`, as the first derivative alone needs them."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor | None, call: Call) -> Tensor:
        fit, starts = _solve.fit(values, weights, None, call)
        ctx.call = call
        ctx.save_for_backward(values, weights, starts)
        return fit

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        values, weights, starts = ctx.saved_tensors
        want_weights = ctx.needs_input_grad[1]
        if is_direct(grad) and not torch.is_grad_enabled():
            return *_solve.gradient(grad, values, weights, starts, None, ctx.call, want_weights), None
        flat = (_flat(grad), _flat(values), _flat(weights), _flat(starts))
        for_values, for_weights = _gradient(*flat, None, *ctx.call, want_weights)
        shape = values.shape
        return for_values.view(shape), for_weights.view(shape) if want_weights else None, None


def _is_beside(weights: Any, values: Any) -> bool:
    return is_solved(weights) and weights.shape == values.shape and weights.device == values.device


def _is_short(values: Any, weights: Any, dim: int, offsets: Any) -> bool:
    return (
        is_direct(values)
        and dim == -1
        and offsets is None
        and is_solved(values)
        and (weights is None or (is_direct(weights) and _is_beside(weights, values)))
    )


@functools.lru_cache(64)
def _unbounded(length: int, increasing: bool) -> Call:
    return Call(length, increasing, -math.inf, math.inf)


def _directly(
    values: Tensor, weights: Tensor | None, increasing: bool, y_min: float | None, y_max: float | None
) -> Tensor:
    length = values.shape[-1]
    if y_min is None and y_max is None:
        call = _unbounded(length, increasing)
    else:
        call = Call(length, increasing, *as_bounds(y_min, y_max))
    if torch.is_grad_enabled() and (values.requires_grad or (weights is not None and weights.requires_grad)):
        return _FitNode.apply(values, weights, call)
    return _solve.fit(values, weights, None, call, want_starts=False)[0]


# ---- Public ----


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
        Real, of at least one dimension; jagged nested tensors too. Integers become torch's default dtype.
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

    Raises
    ------
    TypeError
        An argument is not a tensor, is complex, or offsets are not integers.
    ValueError
        Shapes or bounds do not fit; offsets do not rise from 0 to the number of elements (on CUDA such rows
        are NaN instead); with validate, a row that cannot be fitted.
    IndexError
        dim is out of range.

    Notes
    -----
    Gradients in input are exact too, rounded once; those in weights are (y_i - m) G / W in float64. Blocks
    come from the solver. Where blocks join or part the fit has no derivative: the one given is that of the
    blocks as they are. Second derivatives and forward mode are plain float64 arithmetic over the same blocks.
    Linear in the number of elements but for O(m log m) for m chunks of a row.
    """
    if (
        _is_short(input, weights, dim, offsets)
        and not validate
        and (increasing is True or increasing is False)
    ):
        return _directly(input, weights, increasing, y_min, y_max)
    rows = as_rows(input, weights, increasing, y_min, y_max, dim, offsets)
    return rows.bring_back(_solved(rows, validate)[0])


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
    return rows.bring_back(_solved(rows, False)[1].bool())
