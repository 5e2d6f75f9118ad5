"""The operators behind isofold.torch: torch's own checks, compilation, and modes that must change nothing."""

from __future__ import annotations

import functools
import gc
import math
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tensors import DTYPES, draw, leaves, positive
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck

from isofold.torch import blocks, isotonic_regression, soft_rank, soft_sort, soft_topk

INF = math.inf
OPS = torch.ops.isofold
OFFSETS = torch.tensor([0, 0, 5, 12])
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "fit": isotonic_regression,
    "clipped fit": functools.partial(isotonic_regression, increasing=False, y_min=-0.3, y_max=0.4),
    "L2 rank": functools.partial(soft_rank, regularization_strength=0.5),
    "L2 sort": functools.partial(soft_sort, regularization_strength=0.5, direction="DESCENDING"),
    "top k": functools.partial(soft_topk, k=3, regularization_strength=0.5),
    "KL rank": functools.partial(soft_rank, regularization="kl", regularization_strength=0.5),
    "KL sort": functools.partial(soft_sort, regularization="kl", regularization_strength=0.5),
}


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


# ---- torch's own checks ----


@pytest.mark.parametrize(("offsets", "length"), [(None, 4), (OFFSETS, None)])
@pytest.mark.parametrize("weighted", [False, True])
def test_opcheck_of_fits(offsets: Tensor | None, length: int | None, weighted: bool) -> None:
    y, w, g = leaves(draw(12), positive(12), draw(12, seed=2))
    weights = w if weighted else None
    call = (length, True, -0.5, INF)
    opcheck(OPS.fit.default, (y, weights, offsets, *call, False))
    starts = OPS.fit(y, weights, offsets, *call, False)[1]
    opcheck(OPS.gradient.default, (g, y, weights, starts, offsets, *call, weighted))
    opcheck(OPS.block_means.default, (y, starts, offsets, length))


@pytest.mark.parametrize(("offsets", "length"), [(None, 4), (OFFSETS, None)])
@pytest.mark.parametrize("regularization", ["l2", "kl"])
@pytest.mark.parametrize("kind", ["rank", "sort"])
def test_opcheck_of_projections(
    offsets: Tensor | None, length: int | None, regularization: str, kind: str
) -> None:
    x, g = leaves(draw(12), draw(12, seed=2))
    opcheck(OPS.soft.default, (x, offsets, length, kind, regularization, 0.5, 1.0, 0))
    result, order, starts, factor = OPS.soft(x.detach(), offsets, length, kind, regularization, 0.5, 1.0, 0)
    given = None if regularization == "l2" else factor.requires_grad_()
    opcheck(OPS.soft_gradient.default, (g, result, given, order, starts, offsets, length, kind, 1.0, 0.5))


# ---- torch.compile ----


def check_compiled(function: Callable[..., Tensor], *tensors: Tensor, **options: Any) -> None:
    """The same bits, forward and backward, from one graph."""
    compiled = torch.compile(function, fullgraph=True, **options)
    found = []
    for call in (function, compiled):
        inputs = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
        result = call(*inputs)
        result.backward(draw(*result.shape, seed=5, dtype=result.dtype))
        found.append([result, *(t.grad for t in inputs if t.requires_grad)])
    for eager, other in zip(*found, strict=True):
        assert torch.equal(eager, other)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_eager(name: str) -> None:
    function = FUNCTIONS[name]
    check_compiled(function, draw(5, 9))
    check_compiled(functools.partial(function, dim=0), draw(7, 5, dtype=torch.float32))
    check_compiled(lambda y, cuts: function(y, offsets=cuts), draw(12), OFFSETS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_is_eager_in_every_dtype(dtype: torch.dtype) -> None:
    check_compiled(lambda y, w: isotonic_regression(y, w, dim=0), draw(9, 4, dtype=dtype), positive(9, 4))
    check_compiled(lambda y: soft_rank(3 * y), draw(9, 4, dtype=dtype))


def test_compiled_for_any_shape() -> None:
    compiled = torch.compile(lambda y: soft_rank(y) + isotonic_regression(y), fullgraph=True, dynamic=True)
    for shape in [(3, 5), (4, 9), (6, 2)]:
        y = draw(*shape)
        assert torch.equal(compiled(y), soft_rank(y) + isotonic_regression(y))


def test_compiled_transforms_and_masks() -> None:
    y = draw(5, 9)
    for function in (FUNCTIONS["top k"], FUNCTIONS["KL sort"], isotonic_regression):
        compiled = torch.compile(torch.func.vmap(function), fullgraph=True)
        assert torch.equal(compiled(y), function(y))
        torch.compiler.reset()
    assert torch.equal(torch.compile(blocks, fullgraph=True)(y), blocks(y))


def test_compiled_calls_raise_what_eager_ones_do() -> None:
    compiled = torch.compile(isotonic_regression, fullgraph=True)
    with pytest.raises(ValueError, match=r"offsets must not fall, but offsets\[2\] is 1 after 2"):
        compiled(torch.zeros(3), offsets=torch.tensor([0, 2, 1, 3]))
    with pytest.raises(ValueError, match="row 1, position 0 is nan"):
        compiled(torch.tensor([[1.0, 2], [torch.nan, 1]]), validate=True)


def test_exported() -> None:
    class Ranks(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return soft_rank(x, "kl")

    x = draw(4, 6)
    assert torch.equal(torch.export.export(Ranks(), (x,)).module()(x), soft_rank(x, "kl"))


NESTED: dict[str, Callable[..., Any]] = {
    "reverse over reverse": lambda f: torch.func.jacrev(torch.func.jacrev(f)),
    "forward over reverse": torch.func.hessian,
    "reverse over forward": lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
    "forward over forward": lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("order", NESTED)
def test_nested_transforms(name: str, order: str) -> None:
    def loss(x: Tensor) -> Tensor:
        return (FUNCTIONS[name](x) ** 3).sum()

    x = draw(7)
    expected = torch.autograd.functional.hessian(loss, x)
    torch.testing.assert_close(NESTED[order](loss)(x), expected)


@pytest.mark.parametrize("name", ["fit", "L2 rank", "KL rank", "KL sort"])
def test_compiled_derivatives(name: str) -> None:
    """What torch registers for an operator refuses the first and gives zeros for the second."""
    function = FUNCTIONS[name]
    grad = torch.func.grad(lambda x: (function(x) ** 3).sum())

    def tangent(x: Tensor) -> Tensor:
        found: Tensor = torch.func.jvp(function, (x,), (x.cos(),))[1]
        return found

    for call in (
        grad,
        torch.func.vmap(grad),
        tangent,
        torch.func.hessian(lambda x: (function(x) ** 3).sum()),
    ):
        torch.compiler.reset()
        x = draw(3, 5)
        torch.testing.assert_close(torch.compile(call, fullgraph=True)(x), call(x))


def test_second_derivatives_in_weights() -> None:
    y, w = draw(7), positive(7)

    def loss(w: Tensor) -> Tensor:
        return (isotonic_regression(y, w) ** 3).sum()

    expected = torch.autograd.functional.hessian(loss, w)
    for nested in NESTED.values():
        torch.testing.assert_close(nested(loss)(w), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tensors_without_data(name: str) -> None:
    """As tracers have them, inside their mode and outside."""
    with FakeTensorMode() as mode:
        inside = FUNCTIONS[name](torch.empty(4, 9))
    outside = FUNCTIONS[name](mode.from_tensor(draw(4, 9)))
    assert inside.shape == outside.shape == (4, 9)
    graph = make_fx(lambda y: FUNCTIONS[name](y))(draw(4, 9))
    y = draw(4, 9, seed=1)
    assert torch.equal(graph(y), FUNCTIONS[name](y))
    assert FUNCTIONS[name](torch.nn.Parameter(y)).requires_grad


# ---- Modes ----


@pytest.mark.parametrize("name", FUNCTIONS)
def test_autocast_leaves_the_dtype_alone(name: str) -> None:
    for dtype in DTYPES:
        y, other = leaves(draw(4, 9, dtype=dtype), draw(4, 9, dtype=dtype))
        found = FUNCTIONS[name](y)
        found.sum().backward()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = FUNCTIONS[name](other)
            cast.sum().backward()
        assert cast.dtype == dtype
        assert torch.equal(cast, found)
        assert torch.equal(other.grad, y.grad)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_deterministic_algorithms(name: str) -> None:
    y, other = leaves(draw(4, 9), draw(4, 9))
    results = []
    for x, mode in ((y, False), (other, True)):
        torch.use_deterministic_algorithms(mode)
        try:
            found = FUNCTIONS[name](x)
            (first,) = torch.autograd.grad((found**3).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad((first**2).sum(), x)
        finally:
            torch.use_deterministic_algorithms(False)
        results.append((found, first, second))
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inference_and_no_grad(name: str) -> None:
    (y,) = leaves(draw(4, 9))
    expected = FUNCTIONS[name](y).detach()
    with torch.no_grad():
        assert not FUNCTIONS[name](y).requires_grad
    with torch.inference_mode():
        assert torch.equal(FUNCTIONS[name](y), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_by_dual_numbers(name: str) -> None:
    y, v, g = draw(3, 8), draw(3, 8, seed=1), draw(3, 8, seed=2)
    with torch.autograd.forward_ad.dual_level():
        dual = FUNCTIONS[name](torch.autograd.forward_ad.make_dual(y, v))
        tangent = torch.autograd.forward_ad.unpack_dual(dual).tangent
    (x,) = leaves(y)
    (gradient,) = torch.autograd.grad(FUNCTIONS[name](x), x, g)
    torch.testing.assert_close((tangent * g).sum(), (gradient * v).sum())
    assert torch.equal(torch.func.jvp(FUNCTIONS[name], (y,), (v,))[1], tangent)


def test_offsets_are_the_same_for_a_whole_batch() -> None:
    with pytest.raises(ValueError, match="offsets must be the same for the whole batch of a vmap"):
        torch.func.vmap(lambda y, cuts: isotonic_regression(y, offsets=cuts))(
            draw(2, 12), OFFSETS.expand(2, 4)
        )
    y = draw(3, 12)
    batch = torch.func.vmap(lambda y: isotonic_regression(y, offsets=OFFSETS))(y)
    assert torch.equal(batch, torch.stack([isotonic_regression(row, offsets=OFFSETS) for row in y]))


def _resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_does_not_grow(name: str) -> None:
    """TS 20, 29: neither that of Python's objects nor, in all, the process's."""
    values = draw(4, 250)

    def step() -> None:
        (y,) = leaves(values)
        FUNCTIONS[name](y).sum().backward()

    def after(steps: int) -> int:
        for _ in range(steps):
            step()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before, resident = after(100), _resident()
    after_many = after(1_000)
    tracemalloc.stop()
    assert after_many - before < 20_000
    # One float64 tensor a step would be 8 MB.
    assert _resident() - resident < 6_000_000
