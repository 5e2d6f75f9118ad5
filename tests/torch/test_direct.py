"""The shortest way: what goes from a function straight to the native library, or by way of one small node,
has the bits of the operators and the derivatives of theirs."""

from __future__ import annotations

import functools
import math
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tensors import draw, leaves, positive, same
from torch import Tensor
from torch._dynamo import compiled_autograd
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

from isofold import _native
from isofold.torch import _operators, _solve, isotonic_regression, soft_rank, soft_sort, soft_topk

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "fit": isotonic_regression,
    "clipped fit": functools.partial(isotonic_regression, increasing=False, y_min=-0.3, y_max=0.4),
    "rank": functools.partial(soft_rank, regularization_strength=0.5),
    "rank, falling": functools.partial(soft_rank, direction="DESCENDING"),
    "sort": functools.partial(soft_sort, regularization_strength=0.7),
    "sort, falling": functools.partial(soft_sort, direction="DESCENDING"),
    "top k": functools.partial(soft_topk, k=3, regularization_strength=0.5),
    "bottom k": functools.partial(soft_topk, k=2, direction="ASCENDING"),
}
EVERY_FUNCTION = pytest.mark.parametrize("name", FUNCTIONS)


def found(function: Callable[..., Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """(result, gradient)"""
    (y,) = leaves(x)
    result = function(y)
    (gradient,) = torch.autograd.grad(result, y, draw(*result.shape, seed=5).to(result))
    return result.detach(), gradient


def by_operators(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Tensor], x: Tensor
) -> tuple[Tensor, Tensor]:
    with monkeypatch.context() as patch:
        patch.setattr(_operators, "_observed", lambda: True)
        return found(function, x)


def rows(dtype: torch.dtype) -> dict[str, Tensor]:
    ties = (3 * draw(6, 9)).round()
    ties[0, ::2] = -0.0
    bad = draw(5, 8)
    bad[1, 3], bad[3, 0] = math.nan, math.inf
    far = draw(3, 7) * 1e30
    return {
        name: tensor.to(dtype)
        for name, tensor in {
            "noise": draw(4, 3, 30),
            "one row": draw(50),
            "ties": ties,
            "bad rows": bad,
            "far": far,
            "one element": draw(1),
            "none": draw(0, 3),
            "no row": draw(3, 0),
        }.items()
    }


@EVERY_FUNCTION
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_operators_bits(monkeypatch: pytest.MonkeyPatch, name: str, dtype: torch.dtype) -> None:
    function = FUNCTIONS[name]
    for x in rows(dtype).values():
        if "k" in name.split() and x.shape[-1] < 3:
            continue
        expected = by_operators(monkeypatch, function, x)
        with monkeypatch.context() as patch:
            if dtype != torch.bfloat16 and x.numel():
                patch.setattr(_operators.Operator, "__call__", lambda *_: pytest.fail("not direct"))
            for one, other in zip(found(function, x), expected, strict=True):
                assert same(one, other)


@EVERY_FUNCTION
def test_any_layout(name: str) -> None:
    x = draw(5, 8, dtype=torch.float32)
    strided = torch.zeros(5, 16)[:, ::2].copy_(x)
    transposed = x.t().contiguous().t()
    negative = torch._neg_view(-x)
    for other in (strided, transposed, negative, torch.nn.Parameter(x)):
        assert torch.equal(FUNCTIONS[name](other), FUNCTIONS[name](x))
    (y,) = leaves(x)
    result = FUNCTIONS[name](y)
    # An expanded gradient, and one of a negative view.
    (expanded,) = torch.autograd.grad(result.sum(), y, retain_graph=True)
    (plain,) = torch.autograd.grad(result, y, torch.ones_like(x), retain_graph=True)
    (negated,) = torch.autograd.grad(result, y, torch._neg_view(-torch.ones_like(x)))
    assert torch.equal(expanded, plain)
    assert torch.equal(negated, plain)


@EVERY_FUNCTION
def test_without_the_table(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for x in rows(torch.float32).values():
        if "k" in name.split() and x.shape[-1] < 3:
            continue
        expected = found(FUNCTIONS[name], x)
        with monkeypatch.context() as patch:
            patch.setattr(_solve, "LIBRARY", None)
            for one, other in zip(found(FUNCTIONS[name], x), expected, strict=True):
                assert same(one, other)


@EVERY_FUNCTION
def test_derivatives(name: str) -> None:
    (x,) = leaves(draw(3, 6))
    assert gradcheck(FUNCTIONS[name], (x,))
    assert gradgradcheck(lambda v: FUNCTIONS[name](v) ** 2, (x,))
    # Forward mode over a graph that was made without it.
    g, tangent = draw(3, 6, seed=1), draw(3, 6, seed=2)
    result = FUNCTIONS[name](x)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(g, tangent)
        (gradient,) = torch.autograd.grad(result, x, dual, retain_graph=True)
        moved = torch.autograd.forward_ad.unpack_dual(gradient).tangent
    torch.testing.assert_close(moved, torch.autograd.grad(result, x, tangent)[0])


@EVERY_FUNCTION
def test_batches_of_gradients(name: str) -> None:
    (x,) = leaves(draw(3, 6))
    incoming = draw(4, 3, 6, seed=1)
    result = FUNCTIONS[name](x)
    (together,) = torch.autograd.grad(result, x, incoming, is_grads_batched=True, retain_graph=True)
    alone = [torch.autograd.grad(result, x, g, retain_graph=True)[0] for g in incoming]
    assert torch.equal(together, torch.stack(alone))


@EVERY_FUNCTION
def test_gradients_that_are_not_finite(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (x,) = leaves(draw(4, 9))
    incoming = draw(4, 9, seed=5)
    incoming[1, 2], incoming[2, 0] = math.nan, math.inf
    (direct,) = torch.autograd.grad(FUNCTIONS[name](x), x, incoming)
    monkeypatch.setattr(_operators, "_observed", lambda: True)
    (by_operator,) = torch.autograd.grad(FUNCTIONS[name](x), x, incoming)
    assert same(direct, by_operator)
    if name != "clipped fit":
        assert direct.isnan().any(1).tolist() == [False, True, True, False]


@EVERY_FUNCTION
def test_what_else_looks_at_a_graph(name: str) -> None:
    function = FUNCTIONS[name]
    (x,) = leaves(draw(3, 6))
    expected, gradient = found(function, x)
    with torch.inference_mode():
        assert torch.equal(function(x), expected)
        assert function(x).is_inference()
    with torch.no_grad():
        assert not function(x).requires_grad
    with torch.autograd.graph.save_on_cpu():
        assert torch.equal(found(function, x)[1], gradient)
    assert torch.equal(found(lambda y: checkpoint(function, y, use_reentrant=False), x)[1], gradient)
    torch.compiler.reset()
    compiler = torch.compile(backend="eager")
    with compiled_autograd._enable(compiler):
        assert torch.equal(found(function, x)[1], gradient)


def test_a_handlers_error_is_not_taken_for_the_librarys() -> None:
    def handle(*_: object) -> None:
        raise ValueError("of the handler")

    def call(x: Tensor) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        isotonic_regression(x)

    x = draw(1 << 23)
    before = signal.signal(signal.SIGALRM, handle)
    try:
        with pytest.raises(ValueError, match="of the handler"):
            call(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_weights() -> None:
    for dtype in (torch.float16, torch.float32, torch.float64):
        y, w = leaves(draw(3, 6), positive(3, 6).to(dtype))
        direct = torch.autograd.grad(isotonic_regression(y, w).square().sum(), (y, w))
        flat = isotonic_regression(y.view(-1), w.view(-1), offsets=torch.tensor([0, 6, 12, 18]))
        for one, other in zip(direct, torch.autograd.grad(flat.square().sum(), (y, w)), strict=True):
            assert same(one, other)
    y, w = leaves(draw(2, 5), positive(2, 5))
    assert gradcheck(isotonic_regression, (y, w))
    assert gradgradcheck(isotonic_regression, (y, w))
    bad = w.detach().clone()
    bad[1, 2] = -1
    assert isotonic_regression(y, bad).isnan().any(1).tolist() == [False, True]


def test_values_changed_after_the_call_are_noticed() -> None:
    for function in (isotonic_regression, soft_rank):
        (x,) = leaves(draw(5))
        y = x * 1
        result = function(y)
        (y if function is isotonic_regression else result).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


def test_dead_wrappers() -> None:
    """A tensor that outlived its transform."""
    kept: list[Tensor] = []

    def loss(x: Tensor) -> Tensor:
        kept.append(x)
        return x.sum()

    torch.func.grad(loss)(draw(4, 5))
    for function in FUNCTIONS.values():
        assert torch.equal(function(kept[0]), function(draw(4, 5)))


# ---- The native calls ----


def call(**changed: Any) -> bool:
    y = draw(2, 3)
    arguments: dict[str, Any] = {
        "values": y,
        "weights": None,
        "offsets": None,
        "row_length": 3,
        "increasing": True,
        "lower": -math.inf,
        "upper": math.inf,
        "fit": torch.empty_like(y),
        "block_starts": torch.empty_like(y, dtype=torch.uint8),
    }
    return _solve.LIBRARY.fit(**{**arguments, **changed})


def test_what_is_not_served_is_left_alone() -> None:
    assert _solve.LIBRARY is not None
    assert call()
    assert call(block_starts=None)
    assert call(weights=positive(2, 3).half())
    assert call(values=draw(6), row_length=None, offsets=torch.tensor([0, 2, 6]))
    for changed in (
        {"values": draw(2, 3).long()},
        {"values": draw(3, 2).t()},
        {"values": draw(2, 3).numpy()},
        {"values": torch.empty(2, 3, device="meta")},
        {"values": draw(2, 3).to_sparse()},
        {"values": draw(0, 3)},
        {"weights": positive(2, 2)},
        {"weights": positive(2, 1).expand(2, 3)},
        {"row_length": 4},
        {"row_length": 0},
        {"row_length": -3},
        {"offsets": torch.tensor([0, 7, 6])},
        {"offsets": torch.tensor([0, 2])},
        {"offsets": torch.tensor([0, 6], dtype=torch.int32)},
        {"fit": torch.empty(5, dtype=torch.float64)},
        {"fit": torch.empty(2, 3, dtype=torch.int64)},
        {"block_starts": torch.empty(2, 3)},
        {"values": torch.full((2, 3), math.nan)},
        {"weights": torch.zeros(2, 3)},
    ):
        assert not call(**changed)


def test_tables_that_are_none() -> None:
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        _native.TensorLibrary(3)
