"""Segment reductions of flat tensors: calls of the native library, and the rules by which torch
differentiates them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isofold import _native
from isofold.torch._operators import Operator, batched, batched_offsets
from isofold.torch._solve import check_offsets

_NAMES = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}

# (sum, dot or norm; a; b; the dtype of the values)
Reduction = tuple[str, Tensor, Tensor | None, torch.dtype]


def segments(total: int, offsets: Tensor | None, length: int | None) -> int:
    if offsets is not None:
        return int(offsets.shape[0]) - 1
    return total // length if length else 0


def reduce(reductions: list[Reduction], offsets: Tensor | None, length: int | None) -> list[Tensor]:
    """Of flat tensors of one size, cut by offsets or into segments of one length. Not known to autograd."""
    like = reductions[0][1]
    total = like.numel()
    rows = segments(total, offsets, length)
    found = [a.new_empty(rows, dtype=dtype) for _, a, _, dtype in reductions]
    if rows == 0:
        if not like.is_cuda:
            check_offsets(offsets, total)
        return found
    flat = [
        (name, a.detach().contiguous(), None if b is None else b.detach().contiguous(), dtype)
        for name, a, b, dtype in reductions
    ]
    if like.is_cuda:
        _on_device(flat, found, offsets, length)
        return found
    check_offsets(offsets, total)
    calls: list[Any] = [
        (name, _array(a), None if b is None else _array(b), _NAMES[dtype]) for name, a, b, dtype in flat
    ]
    cuts = None if offsets is None else offsets.contiguous().numpy()
    values = _native.segment_reductions(calls, cuts, length, total, 0)
    return [_tensor(value, dtype) for value, (*_, dtype) in zip(values, flat, strict=True)]


def _array(tensor: Tensor) -> Any:
    # NumPy has no bfloat16.
    return tensor if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _tensor(array: Any, dtype: torch.dtype) -> Tensor:
    found = torch.from_numpy(array)
    return found.view(torch.bfloat16) if dtype == torch.bfloat16 else found


def _on_device(
    reductions: list[Reduction], found: list[Tensor], offsets: Tensor | None, length: int | None
) -> None:
    fault = _native.cuda_fault()
    if fault:
        raise RuntimeError(fault)
    device = found[0].device
    total = reductions[0][1].numel()
    with torch.cuda.device(device):
        # The default stream is 0 in CUDA and 1 in DLPack, where 0 is refused.
        stream = int(torch.cuda.current_stream(device).cuda_stream) or 1
        kept = []  # until the work is enqueued
        calls = []
        for (name, a, b, _), out in zip(reductions, found, strict=True):
            # One type for both, which holds the elements of both.
            wide = a.dtype if b is None else torch.promote_types(a.dtype, b.dtype)
            x, y = a.to(wide), None if b is None else b.to(wide)
            kept.append((x, y))
            pair = None if y is None else y.__dlpack__(stream=stream)
            calls.append((name, x.__dlpack__(stream=stream), pair, out.__dlpack__(stream=stream)))
        needed = _native.segment_scratch_bytes(len(calls), total, found[0].numel(), offsets is not None)
        scratch = torch.empty(needed, dtype=torch.uint8, device=device)
        _native.segment_reductions_on_device(
            device.index if device.index is not None else torch.cuda.current_device(),
            calls,
            None if offsets is None else offsets.contiguous().__dlpack__(stream=stream),
            length,
            total,
            scratch.__dlpack__(stream=stream),
            stream,
        )


def _like(a: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype) -> Tensor:
    rows = offsets.shape[0] - 1 if offsets is not None else a.shape[0] // (length or 1)
    return a.new_empty(rows, dtype=dtype)


# ---- Each element its segment's value, and back ----


class _Spread:
    """Each element gets its segment's value; elements of no segment get any."""

    @staticmethod
    def forward(values: Tensor, offsets: Tensor | None, length: int | None, total: int) -> Tensor:
        values = values.detach()
        if offsets is None:
            return values[:, None].expand(-1, length or 0).reshape(-1)
        if not values.numel():
            return values.new_zeros(total)
        places = torch.arange(total, device=values.device)
        segment = torch.searchsorted(offsets[1:].contiguous(), places, right=True)
        return values[segment.clamp_(max=values.numel() - 1)]

    @staticmethod
    def fake(values: Tensor, offsets: Tensor | None, length: int | None, total: int) -> Tensor:
        return values.new_empty(total)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, offsets, ctx.length, ctx.total = inputs
        ctx.save_for_backward(offsets)
        ctx.save_for_forward(offsets)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (offsets,) = ctx.saved_tensors
        return segment_sum(grad, offsets, ctx.length, grad.dtype), None, None, None

    @staticmethod
    def jvp(ctx: Any, values_dot: Tensor, *_: None) -> Tensor:
        (offsets,) = ctx.saved_tensors
        return spread(values_dot, offsets, ctx.length, ctx.total)

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, values: Tensor, offsets: Tensor | None, length: int | None, total: int
    ) -> Any:
        size = info.batch_size
        flat = batched(size, values, in_dims[0])
        cut = batched_offsets(size, offsets, in_dims[1], total)
        return spread(flat, cut, length, size * total).view(size, total), 0


class _Sum:
    @staticmethod
    def forward(a: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype) -> Tensor:
        return reduce([("sum", a, None, dtype)], offsets, length)[0]

    fake = staticmethod(_like)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, offsets, ctx.length, ctx.dtype = inputs
        ctx.total, ctx.element = a.shape[0], a.dtype
        ctx.save_for_backward(offsets)
        ctx.save_for_forward(offsets)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (offsets,) = ctx.saved_tensors
        return spread(grad, offsets, ctx.length, ctx.total).to(ctx.element), None, None, None

    @staticmethod
    def jvp(ctx: Any, a_dot: Tensor, *_: None) -> Tensor:
        (offsets,) = ctx.saved_tensors
        return segment_sum(a_dot, offsets, ctx.length, ctx.dtype)

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, a: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype
    ) -> Any:
        size = info.batch_size
        flat = batched(size, a, in_dims[0])
        assert flat is not None
        cut = batched_offsets(size, offsets, in_dims[1], flat.numel() // size)
        return segment_sum(flat, cut, length, dtype).view(size, -1), 0


class _Dot:
    @staticmethod
    def forward(
        a: Tensor, b: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype
    ) -> Tensor:
        return reduce([("dot", a, b, dtype)], offsets, length)[0]

    @staticmethod
    def fake(a: Tensor, b: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype) -> Tensor:
        return _like(a, offsets, length, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, b, offsets, ctx.length, ctx.dtype = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b, offsets)
        ctx.save_for_forward(a, b, offsets)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 5
        a, b, offsets = ctx.saved_tensors
        share = spread(grad, offsets, ctx.length, a.shape[0])
        for_a = (share * b).to(a.dtype) if ctx.needs_input_grad[0] else None
        for_b = (share * a).to(b.dtype) if ctx.needs_input_grad[1] else None
        return for_a, for_b, None, None, None

    @staticmethod
    def jvp(ctx: Any, a_dot: Tensor | None, b_dot: Tensor | None, *_: None) -> Tensor:
        a, b, offsets = ctx.saved_tensors
        parts = [
            segment_dot(x, y, offsets, ctx.length, ctx.dtype)
            for x, y in ((a_dot, b), (a, b_dot))
            if x is not None and y is not None
        ]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Tensor, b: Tensor, offsets: Tensor | None, *call: Any) -> Any:
        size = info.batch_size
        x, y = batched(size, a, in_dims[0]), batched(size, b, in_dims[1])
        assert x is not None
        cut = batched_offsets(size, offsets, in_dims[2], x.numel() // size)
        return segment_dot(x, y, cut, *call).view(size, -1), 0


class _Norm:
    @staticmethod
    def forward(a: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype) -> Tensor:
        return reduce([("norm", a, None, dtype)], offsets, length)[0]

    fake = staticmethod(_like)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, offsets, ctx.length, ctx.dtype = inputs
        ctx.save_for_backward(a, offsets, output)
        ctx.save_for_forward(a, offsets, output)

    @staticmethod
    def _unit(ctx: Any) -> Tensor:
        """a / norm, and 0 where the norm is; of halves in float32."""
        a, offsets, norm = ctx.saved_tensors
        wide = torch.promote_types(torch.promote_types(a.dtype, norm.dtype), torch.float32)
        width = spread(norm.to(wide), offsets, ctx.length, a.shape[0])
        return torch.where(width != 0, a.to(wide) / torch.where(width != 0, width, 1), 0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        a, offsets, _ = ctx.saved_tensors
        share = spread(grad, offsets, ctx.length, a.shape[0])
        return (share * _Norm._unit(ctx)).to(a.dtype), None, None, None

    @staticmethod
    def jvp(ctx: Any, a_dot: Tensor, *_: None) -> Tensor:
        _, offsets, _ = ctx.saved_tensors
        return segment_dot(a_dot, _Norm._unit(ctx), offsets, ctx.length, ctx.dtype)

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, a: Tensor, offsets: Tensor | None, length: int | None, dtype: torch.dtype
    ) -> Any:
        size = info.batch_size
        flat = batched(size, a, in_dims[0])
        assert flat is not None
        cut = batched_offsets(size, offsets, in_dims[1], flat.numel() // size)
        return segment_norm(flat, cut, length, dtype).view(size, -1), 0


_CALL = "Tensor? offsets, SymInt? length, ScalarType dtype"
spread = Operator(
    _Spread, "segment_spread(Tensor values, Tensor? offsets, SymInt? length, SymInt total) -> Tensor"
)
segment_sum = Operator(_Sum, f"segment_sum(Tensor a, {_CALL}) -> Tensor")
segment_dot = Operator(_Dot, f"segment_dot(Tensor a, Tensor b, {_CALL}) -> Tensor")
segment_norm = Operator(_Norm, f"segment_norm(Tensor a, {_CALL}) -> Tensor")
