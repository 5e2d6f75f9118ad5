"""Functions of flat tensors as single nodes for autograd, for torch.func and for torch.compile.

A node's rules are a `torch.autograd.Function` with `setup_context`, `jvp`, `vmap` and, for tracing, `fake`.
They serve two routes: plain tensors go straight to them; what a compiler traces goes through an operator of
torch's library, which carries no forward mode and costs a few microseconds, but stays one opaque node of the
graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_LIBRARY = "isofold"
_PLAIN = (Tensor, torch.nn.Parameter)


def _without_functorch(rules: Any) -> Any:
    """The rules with setup_context inside of forward: torch then leaves out its inspection of the signature,
    some ten microseconds, at the price of torch.func."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        found = rules.forward(*arguments)
        rules.setup_context(ctx, arguments, found)
        return found

    methods = {"forward": forward, "backward": rules.backward, "jvp": rules.jvp}
    return type(
        f"{rules.__name__}Eager",
        (torch.autograd.Function,),
        {name: staticmethod(method) for name, method in methods.items()},
    )


class Operator:
    """Calls its rules by the cheapest route that serves the caller."""

    def __init__(self, rules: Any, schema: str) -> None:
        name = f"{_LIBRARY}::{schema[: schema.index('(')]}"
        torch.library.define(name, schema[schema.index("(") :], tags=torch.Tag.pt2_compliant_tag)
        torch.library.impl(name, "default")(rules.forward)
        torch.library.register_fake(name)(rules.fake)
        torch.library.register_autograd(name, rules.backward, setup_context=rules.setup_context)
        torch.library.register_vmap(name)(rules.vmap)
        self.traced = getattr(torch.ops.isofold, schema[: schema.index("(")]).default
        self.rules = rules
        self.eager = _without_functorch(rules)

    def __call__(self, *arguments: Any) -> Any:
        if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
            return self.traced(*arguments)
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        if not all(type(tensor) in _PLAIN for tensor in tensors):
            return self.traced(*arguments)
        if torch._C._are_functorch_transforms_active():
            return self.rules.apply(*arguments)
        if torch.autograd.forward_ad._current_level >= 0 or (
            torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        ):
            return self.eager.apply(*arguments)
        return self.rules.forward(*arguments)


# ---- vmap: batches of flat rows are more flat rows ----


def batched(size: int, tensor: Tensor | None, dim: int | None) -> Tensor | None:
    """The flat tensors of a batch as one."""
    if tensor is None:
        return None
    moved = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return moved.reshape(-1)


def batched_offsets(size: int, offsets: Tensor | None, dim: int | None, total: int) -> Tensor | None:
    if offsets is None:
        return None
    if dim is not None:
        raise ValueError("offsets must be the same for the whole batch of a vmap, but they are batched")
    shifted = offsets[1:] + total * torch.arange(size, device=offsets.device)[:, None]
    return torch.cat([offsets[:1], shifted.reshape(-1)])


# ---- Means over blocks, which every derivative is made of ----


class _BlockMeans(torch.autograd.Function):
    """The mean of x over each block, the exact one rounded once to float64. Linear and symmetric: its
    derivative, of any order and in either mode, is itself."""

    @staticmethod
    def forward(x: Tensor, starts: Tensor, offsets: Tensor | None, length: int | None) -> Tensor:
        from isofold.torch import _solve

        return _solve.block_means(x, starts, offsets, length)

    @staticmethod
    def fake(x: Tensor, starts: Tensor, offsets: Tensor | None, length: int | None) -> Tensor:
        return x.new_empty(x.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, starts, offsets, ctx.length = inputs
        ctx.save_for_backward(starts, offsets)
        ctx.save_for_forward(starts, offsets)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return block_means(grad, *ctx.saved_tensors, ctx.length), None, None, None

    @staticmethod
    def jvp(ctx: Any, x_dot: Tensor, *_: None) -> Tensor:
        return block_means(x_dot, *ctx.saved_tensors, ctx.length)

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, x: Tensor, starts: Tensor, offsets: Tensor | None, length: int | None
    ) -> Any:
        size = info.batch_size
        flat = batched(size, x, in_dims[0])
        assert flat is not None
        cut = batched_offsets(size, offsets, in_dims[2], flat.numel() // size)
        means = block_means(flat, batched(size, starts, in_dims[1]), cut, length)
        return means.view(size, -1), 0


block_means = Operator(
    _BlockMeans, "block_means(Tensor x, Tensor starts, Tensor? offsets, SymInt? length) -> Tensor"
)
