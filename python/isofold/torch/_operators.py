"""Functions of flat tensors as single nodes for autograd, for torch.func and for torch.compile.

A node's rules are a class of static methods as `torch.autograd.Function` has them (forward, setup_context,
backward, jvp, vmap) and, for tracing, `fake`. They serve two routes: plain tensors go straight to them; what
a compiler or torch.func traces goes through an operator of torch's library, which costs a few microseconds,
but stays one opaque node. What torch registers for the derivative of such an operator knows neither forward
mode nor torch.func, so that the operators bring their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction
from torch.utils._pytree import tree_map_only

_LIBRARY = torch.library.Library("isofold", "DEF")
_PLAIN = (Tensor, torch.nn.Parameter)


def _observed() -> bool:
    """Whether a compiler, a mode or torch.func looks on."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._are_functorch_transforms_active()
    )


def is_direct(tensor: Any) -> bool:
    """Whether a call, or the backward pass of one, concerns nothing but the values of plain tensors and
    autograd's first derivative, so that the shortest way will do: one native call, in a `Node` where a
    gradient is wanted."""
    return not _observed() and forward_ad._current_level < 0 and _is_plain(tensor)


def _is_plain(tensor: Any) -> bool:
    # autograd.grad's is_grads_batched has a vmap of its own, which only its tensors tell of.
    return type(tensor) in _PLAIN and not torch._C._functorch.is_legacy_batchedtensor(tensor)


class Node(torch.autograd.Function):
    """An autograd.Function whose `apply` does not look at torch.func in every call. For `is_direct` ones."""

    apply = torch._C._FunctionBase.__dict__["apply"]


def _at_once(rules: Any) -> Any:
    """For plain tensors: an autograd.Function of the rules with setup_context inside of forward, which spares
    torch an inspection of the signature, some ten microseconds a call."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        found = rules.forward(*arguments)
        rules.setup_context(ctx, arguments, found)
        return found

    return _function(torch.autograd.Function, rules, "AtOnce", forward=forward)


def _at_a_level(rules: Any, operator: Callable[..., Any]) -> Callable[..., Any]:
    """What autograd does with the operator: one level of it, of the nested ones that torch.func may have.
    Others are below, so that what is turned off for a Function's own methods must be on for them."""

    def forward(*arguments: Any) -> Any:
        with torch.enable_grad(), _forward_mode(), torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        with _forward_mode():
            found = rules.jvp(ctx, *tangents)
            # The saved tensors have tangents of this level too.
            return tree_map_only(Tensor, lambda t: forward_ad.unpack_dual(t, level=0).primal, found)

    methods = {"forward": forward, "setup_context": rules.setup_context, "jvp": jvp}
    function = _function(_SingleLevelFunction, rules, "AtALevel", **methods)

    def call(*arguments: Any) -> Any:
        with enable_single_level_autograd_function():
            return function.apply(*arguments)

    return call


def _forward_mode() -> Any:
    return forward_ad._set_fwd_grad_enabled(True)


def _function(base: Any, rules: Any, name: str, **methods: Any) -> Any:
    found = {"backward": rules.backward, "jvp": rules.jvp, **methods}
    return type(
        f"{rules.__name__}{name}", (base,), {key: staticmethod(method) for key, method in found.items()}
    )


class Operator:
    """Calls its rules by the cheapest route that serves the caller."""

    def __init__(self, rules: Any, schema: str) -> None:
        short = schema[: schema.index("(")]
        name = f"{_LIBRARY.ns}::{short}"
        _LIBRARY.define(schema, tags=torch.Tag.pt2_compliant_tag)
        self.traced = getattr(getattr(torch.ops, _LIBRARY.ns), short).default
        _LIBRARY.impl(short, rules.forward, "CompositeExplicitAutograd")
        _LIBRARY.impl(short, _at_a_level(rules, self.traced), "Autograd")
        torch.library.register_fake(name, rules.fake, lib=_LIBRARY)
        torch.library.register_vmap(name, rules.vmap, lib=_LIBRARY)
        self.forward = rules.forward
        self.eager = _at_once(rules)

    def plain(self, *arguments: Any) -> bool:
        """Whether nothing watches: no tracing, no derivative."""
        tensors = self._untraced(arguments)
        return tensors is not None and not _differentiated(tensors)

    def _untraced(self, arguments: tuple[Any, ...]) -> list[Tensor] | None:
        """The tensors; None where a compiler or torch.func must see them."""
        if _observed():
            return None
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        return tensors if all(map(_is_plain, tensors)) else None

    def __call__(self, *arguments: Any) -> Any:
        tensors = self._untraced(arguments)
        if tensors is None:
            return self.traced(*arguments)
        if _differentiated(tensors):
            return self.eager.apply(*arguments)
        return self.forward(*arguments)


def _differentiated(tensors: list[Tensor]) -> bool:
    return forward_ad._current_level >= 0 or (
        torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    )


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


class _BlockMeans:
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
