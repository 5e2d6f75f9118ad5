"""Projections onto permutahedra as nodes for autograd: soft ranks, soft sorting, soft top-k.

The projection P(a, b) of a row a, in falling order, onto the permutahedron of b, also in falling order
(Blondel, Teboul, Berthet and Djolonga 2020, Propositions 2 and 3) is on every block of a non-increasing fit

    L2: (a_i - mean a) + mean b,            the fit of a - b;
    KL: (a_i - log sum e^a) + log sum e^b,  the fit in log space (`_log_pooling`).

Ranks have a = values / strength, b = (n, ..., 1), or its logarithm (the ranks are then e^P); the top k have
b = 1 for k places, then 0; sorting has a = (n, ..., 1) / strength, b = values. The forms above lose nothing
where a is large. All is float64 in a fixed sequence of operations, with exact means, and the result is
rounded once.

With M the mean over blocks and a factor f (1 for L2; for KL the ranks, or e^b / M e^b), the derivatives of
ranks and of f itself are the symmetric g -> f (g - M(f g) / M(f)), of sorting db -> M(f db) and back
g -> f M(g).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isofold.torch import _log_blocks, _solve
from isofold.torch._halves import rounded
from isofold.torch._log_blocks import firsts
from isofold.torch._logarithms import exp_of_negative, log
from isofold.torch._operators import Node, Operator, batched, batched_offsets, block_means, is_direct
from isofold.torch._rows import Call, is_solved

Means = Callable[[Tensor], Tensor]


class _FallingRows:
    """Where the elements of every row go when it is sorted, equal ones in their order: falling, or, for
    values whose sign will be turned, rising. Sorting what was given is cheaper than sorting float64."""

    def __init__(self, x: Tensor, offsets: Tensor | None, length: int | None, falling: bool) -> None:
        if offsets is None:
            self.batch = (-1, length or 1)
            indices = x.view(self.batch).sort(dim=1, descending=falling, stable=True).indices
            rows, n = indices.shape
            place = torch.arange(n, device=x.device)
            self.row = torch.arange(rows, device=x.device)[:, None].expand(rows, n)
            self.order = (indices + n * self.row).view(-1)
            self.places = place.expand(rows, n)
            self.ranks = (n - place).double().repeat(rows)
        else:
            self.batch = (1, -1)
            index = torch.arange(x.numel(), device=x.device)
            # Rows of a device's faulty offsets come out NaN; here they must only stay within the tensor.
            last = offsets.numel() - 1
            self.row = (torch.searchsorted(offsets, index, right=True) - 1).clamp(0, max(last - 1, 0))
            # By value, then, keeping that order, by row.
            by_value = x.sort(descending=falling, stable=True).indices
            self.order = by_value[self.row[by_value].sort(stable=True).indices]
            self.places = index - offsets[self.row]
            # n, n - 1, ..., 1 in every row.
            self.ranks = (offsets[(self.row + 1).clamp(max=last)] - index).double()


def unsorted(sorted_values: Tensor, order: Tensor) -> Tensor:
    return torch.zeros_like(sorted_values).scatter(0, order, sorted_values)


def _spread(g: Tensor, factor: Tensor | None, mean: Means) -> Tensor:
    """The derivative of ranks, and of the factor: symmetric."""
    rest = g - mean(g)
    # From the rest and not from g: exactly 0 in blocks of one.
    return rest if factor is None else factor * (rest - mean(factor * rest) / mean(factor))


def _times(factor: Tensor | None, g: Tensor) -> Tensor:
    return g if factor is None else factor * g


class _Soft:
    """(result, order of the sorted rows, block starts, factor) of flat rows; the factor is empty for L2.

    kind: rank, sort or topk. sign is 1 where the largest value of a row comes first.
    """

    @staticmethod
    def forward(
        values: Tensor,
        offsets: Tensor | None,
        length: int | None,
        kind: str,
        regularization: str,
        strength: float,
        sign: float,
        k: int,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if not values.is_cuda:
            _solve.check_offsets(offsets, values.numel())
        values = values.detach().contiguous()
        rows = _FallingRows(values, offsets, length, sign > 0)
        a, b = sign * values.take(rows.order).double(), rows.ranks
        if kind != "sort":
            a = a / strength
        if kind == "sort":
            a, b = b / strength, a
        elif kind == "topk":
            b = (rows.places < k).double().view(-1)
        solve = _l2 if regularization == "l2" else _kl_rank if kind == "rank" else _kl_sort
        found, starts, factor = solve(a, b, rows, offsets, length)
        if kind == "sort":
            result = sign * found
        else:
            result = unsorted(found.clamp(0, 1) if kind == "topk" else found, rows.order)
        # A zero is +0.0.
        return rounded(result + 0.0, values.dtype), rows.order, starts, factor

    @staticmethod
    def fake(values: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        kl = arguments[3] == "kl"
        return (
            values.new_empty(values.shape),
            values.new_empty(values.shape, dtype=torch.int64),
            values.new_empty(values.shape, dtype=torch.uint8),
            values.new_empty(values.shape if kl else (0,), dtype=torch.float64),
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, offsets, ctx.length, ctx.kind, ctx.regularization, strength, sign, _ = inputs
        ctx.scale = (sign, strength) if ctx.kind != "sort" else (sign, 1.0)
        result, order, starts, factor = output
        ctx.mark_non_differentiable(order, starts, *([factor] if ctx.regularization == "l2" else []))
        ctx.set_materialize_grads(False)
        saved = (result, order, starts, factor, offsets)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None, _: None, __: None, of_factor: Tensor | None
    ) -> tuple[Any, ...]:
        result, order, starts, factor, offsets = ctx.saved_tensors
        sign, strength = ctx.scale
        given = None if ctx.regularization == "l2" else factor
        found = None
        if grad is not None:
            found = _soft_gradient(
                grad, result, given, order, starts, offsets, ctx.length, ctx.kind, sign, strength
            )
        if of_factor is not None:
            through = _spread(of_factor, given, lambda x: block_means(x, starts, offsets, ctx.length))
            through = (unsorted(through, order) * sign / strength).to(result.dtype)
            found = through if found is None else found + through
        return found, *(None,) * 7

    @staticmethod
    def jvp(ctx: Any, values_dot: Tensor, *_: None) -> tuple[Any, ...]:
        result, order, starts, factor, offsets = ctx.saved_tensors
        sign, strength = ctx.scale
        given = None if ctx.regularization == "l2" else factor
        moved = (values_dot.double() * sign / strength)[order]

        def mean(x: Tensor) -> Tensor:
            return block_means(x, starts, offsets, ctx.length)

        factor_dot = None if given is None else _spread(moved, given, mean)
        if ctx.kind == "sort":
            tangent = sign * mean(_times(given, moved))
        else:
            tangent = unsorted(_spread(moved, given, mean), order)
        return tangent.to(result.dtype), None, None, factor_dot

    @staticmethod
    def vmap(info: Any, in_dims: Any, values: Tensor, offsets: Tensor | None, *call: Any) -> Any:
        size = info.batch_size
        flat = batched(size, values, in_dims[0])
        assert flat is not None
        total = flat.numel() // size
        cut = batched_offsets(size, offsets, in_dims[1], total)
        result, order, starts, factor = _soft(flat, cut, *call)
        order = order.view(size, total) - _shifts(size, total, order)
        found = (result.view(size, total), order, starts.view(size, total))
        if call[2] == "l2":
            return (*found, factor), (0, 0, 0, None)
        return (*found, factor.view(size, total)), (0, 0, 0, 0)


def _shifts(size: int, total: int, like: Tensor) -> Tensor:
    return total * torch.arange(size, device=like.device)[:, None]


_Solved = tuple[Tensor, Tensor, Tensor]


def _l2(a: Tensor, b: Tensor, rows: _FallingRows, offsets: Tensor | None, length: int | None) -> _Solved:
    fit, starts = _solve.fit(a - b, None, offsets, Call(length, False, -math.inf, math.inf))
    mean_a, mean_b = (_solve.block_means(x, starts, offsets, length) for x in (a, b))
    # A row that cannot be fitted is NaN, all of it.
    return torch.where(torch.isnan(fit), fit, (a - mean_a) + mean_b), starts, a.new_empty(0)


def _kl_blocks(
    a: Tensor,
    b: Tensor,
    scale: Tensor | None,
    rows: _FallingRows,
    offsets: Tensor | None,
    length: int | None,
) -> tuple[Tensor, Means, Tensor]:
    """(block starts, the mean over blocks, 0 or, in a row that cannot be fitted, NaN)"""
    in_rows = a.view(rows.batch), b.view(rows.batch), rows.row.reshape(rows.batch)
    starts = _log_blocks.block_starts(*in_rows, scale)
    row_starts = (rows.places == 0).to(torch.uint8).view(-1)
    # Rows that end in the middle of a block are of a device's faulty offsets.
    mark = _solve.block_means((a - a) + (b - b), row_starts, offsets, length)
    return starts, lambda x: _solve.block_means(x, starts, offsets, length), mark


def _kl_rank(a: Tensor, b: Tensor, rows: _FallingRows, offsets: Tensor | None, length: int | None) -> _Solved:
    starts, mean, mark = _kl_blocks(a, log(b), b, rows, offsets, length)
    relative = exp_of_negative(a - a.take(firsts(starts)))
    ranks = relative * (mean(b) / mean(relative)) + mark
    return ranks, starts, ranks


def _kl_sort(a: Tensor, b: Tensor, rows: _FallingRows, offsets: Tensor | None, length: int | None) -> _Solved:
    starts, mean, mark = _kl_blocks(a, b, None, rows, offsets, length)
    first = firsts(starts)
    from_first = a - a[first]
    relative = exp_of_negative(b - b[first])
    mean_relative = mean(relative)
    level = log(mean_relative) - log(mean(exp_of_negative(from_first)))
    return (b[first] + level) + from_first + mark, starts, relative / mean_relative + mark


class _SoftGradient:
    """The gradient in the values, from that in the result; differentiable in the former and in the factor."""

    @staticmethod
    def forward(
        grad: Tensor,
        result: Tensor,
        factor: Tensor | None,
        order: Tensor,
        starts: Tensor,
        offsets: Tensor | None,
        length: int | None,
        kind: str,
        sign: float,
        strength: float,
    ) -> Tensor:
        def mean(x: Tensor) -> Tensor:
            return _solve.block_means(x, starts, offsets, length)

        g = torch.where(torch.isnan(result), torch.nan, grad.double())
        found = _times(factor, mean(sign * g)) if kind == "sort" else _spread(g.take(order), factor, mean)
        return rounded(unsorted(found, order) * sign / strength + 0.0, result.dtype)

    @staticmethod
    def fake(grad: Tensor, result: Tensor, *_: Any) -> Tensor:
        return result.new_empty(result.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        grad, result, factor, order, starts, offsets, ctx.length, ctx.kind, *ctx.scale = inputs
        saved = (grad, result, factor, order, starts, offsets)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, u: Tensor) -> tuple[Tensor | None, ...]:
        grad, _, factor, order, starts, offsets = ctx.saved_tensors
        sign, strength = ctx.scale

        def mean(x: Tensor) -> Tensor:
            return block_means(x, starts, offsets, ctx.length)

        u_sorted = (u.double() * sign / strength)[order]
        for_factor = None
        if ctx.kind == "sort":
            for_grad = sign * mean(_times(factor, u_sorted))
            if factor is not None:
                for_factor = u_sorted * mean(sign * grad.double())
        else:
            g_sorted = grad.double()[order]
            for_grad = unsorted(_spread(u_sorted, factor, mean), order)
            if factor is not None:
                width = mean(factor)
                for_factor = (u_sorted - mean(factor * u_sorted) / width) * (
                    g_sorted - mean(factor * g_sorted) / width
                )
        return for_grad.to(grad.dtype), None, for_factor, *(None,) * 7

    @staticmethod
    def jvp(ctx: Any, grad_dot: Tensor | None, _: None, factor_dot: Tensor | None, *__: None) -> Tensor:
        grad, result, factor, order, starts, offsets = ctx.saved_tensors
        sign, strength = ctx.scale

        def mean(x: Tensor) -> Tensor:
            return block_means(x, starts, offsets, ctx.length)

        g, dg = (
            torch.zeros_like(grad).double() if t is None else sign * t.double() for t in (grad, grad_dot)
        )
        if ctx.kind == "sort":
            found = _times(factor, mean(dg))
            if factor_dot is not None:
                found = found + factor_dot * mean(g)
        else:
            g, dg = g[order], dg[order]
            found = _spread(dg, factor, mean)
            if factor is not None and factor_dot is not None:
                # d of f (g - m), m = M(f g) / M(f).
                m = mean(factor * g) / mean(factor)
                m_dot = mean(factor_dot * (g - m)) / mean(factor)
                found = found + factor_dot * (g - m) - factor * m_dot
        scale = strength if ctx.kind != "sort" else sign * strength
        return (unsorted(found, order) / scale).to(result.dtype)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        grad: Tensor,
        result: Tensor,
        factor: Tensor | None,
        order: Tensor,
        starts: Tensor,
        offsets: Tensor | None,
        *call: Any,
    ) -> Any:
        size = info.batch_size
        tensors = (grad, result, factor, order, starts)
        flat = [batched(size, t, d) for t, d in zip(tensors, in_dims[:5], strict=True)]
        assert flat[0] is not None
        assert flat[3] is not None
        total = flat[0].numel() // size
        flat[3] = (flat[3].view(size, total) + _shifts(size, total, flat[3])).view(-1)
        cut = batched_offsets(size, offsets, in_dims[5], total)
        return _soft_gradient(*flat, cut, *call).view(size, total), 0


_soft = Operator(
    _Soft,
    "soft(Tensor values, Tensor? offsets, SymInt? length, str kind, str regularization, float strength, "
    "float sign, SymInt k) -> (Tensor, Tensor, Tensor, Tensor)",
)
_soft_gradient = Operator(
    _SoftGradient,
    "soft_gradient(Tensor grad, Tensor result, Tensor? factor, Tensor order, Tensor starts, Tensor? offsets, "
    "SymInt? length, str kind, float sign, float strength) -> Tensor",
)


def projected(
    values: Tensor,
    offsets: Tensor | None,
    length: int | None,
    kind: str,
    regularization: str,
    strength: float,
    sign: float,
    k: int = 0,
) -> Tensor:
    """The result of `_Soft`, of the values' shape and dtype."""
    found: Tensor = _soft(values, offsets, length, kind, regularization, strength, sign, k)[0]
    return found


# ---- The shortest way: L2, rows along the last dimension, of plain tensors ----


class _Asked(NamedTuple):
    """What a projection is told beside its values."""

    kind: str
    sign: float
    strength: float


def _at_once(values: Tensor, asked: _Asked, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """(result, order of the sorted rows, each within its row, block starts), all of the values' shape"""
    given = _solve.in_order(values)
    if _solve.LIBRARY is not None:
        ordered, order = torch.sort(given, stable=True, dim=-1, descending=asked.sign > 0)
        result = torch.empty_like(given)
        starts = torch.empty_like(given, dtype=torch.uint8)
        if _solve.LIBRARY.project(ordered, order, *asked, k, result, starts):
            return result, order, starts
    n = given.shape[-1]
    kind, sign, strength = asked
    result, order, starts, _ = _Soft.forward(given.view(-1), None, n, kind, "l2", strength, sign, k)
    order = order.view(-1, n) - _row_begins(order, n)
    return result.view(given.shape), order.view(given.shape), starts.view(given.shape)


def _row_begins(order: Tensor, length: int) -> Tensor:
    return torch.arange(0, order.numel(), length, device=order.device)[:, None]


class _SoftNode(Node):
    """`_Soft` and `_SoftGradient`, as the first derivative alone needs them."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, asked: _Asked, k: int) -> Tensor:
        result, order, starts = _at_once(values, asked, k)
        ctx.asked = asked
        ctx.save_for_backward(result, order, starts)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        result, order, starts = ctx.saved_tensors
        asked = ctx.asked
        if _solve.LIBRARY is not None and is_direct(grad) and not torch.is_grad_enabled():
            found = torch.empty_like(result)
            given = _solve.in_order(grad)
            if _solve.LIBRARY.project_gradient(result, order, *asked, starts, given, found):
                return found, None, None
        n = order.shape[-1]
        flat_order = (order.view(-1, n) + _row_begins(order, n)).view(-1)
        flat = (grad.reshape(-1), result.detach().view(-1), None, flat_order, starts.view(-1), None)
        strength = 1.0 if asked.kind == "sort" else asked.strength
        return _soft_gradient(*flat, n, asked.kind, asked.sign, strength).view(result.shape), None, None


def is_short(values: Tensor, regularization: str, dim: int, offsets: Tensor | None) -> bool:
    """Whether `directly` serves a call."""
    return (
        is_direct(values)
        and dim == -1
        and offsets is None
        and regularization == "l2"
        and values.dtype in _DIRECT
        and is_solved(values)
        and values.numel() > 0
    )


_DIRECT = (torch.float32, torch.float64)


def directly(values: Tensor, kind: str, strength: float, sign: float, k: int = 0) -> Tensor:
    asked = _Asked(kind, sign, strength)
    if torch.is_grad_enabled() and values.requires_grad:
        return _SoftNode.apply(values, asked, k)
    return _at_once(values, asked, k)[0]
