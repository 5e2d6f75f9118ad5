"""Sums, dots and norms of segments of tensors: values, derivatives, compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tensors import DTYPES, draw, leaves, same
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

import isofold
from isofold.torch import segment_dot, segment_dots, segment_norm, segment_sum

OPS = torch.ops.isofold
OFFSETS = torch.tensor([0, 0, 5, 12])
ONE = {"sum": segment_sum, "norm": segment_norm}


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_those_of_numpy(dtype: torch.dtype) -> None:
    a, b = draw(12, dtype=dtype), draw(12, seed=1, dtype=dtype)
    x, y = a.double().numpy(), b.double().numpy()
    for offsets in (OFFSETS, None):
        cut = None if offsets is None else offsets.numpy()
        for found, exact in (
            (segment_sum(a, offsets), isofold.segment_sum(x, cut)),
            (segment_dot(a, b, offsets), isofold.segment_dot(x, y, cut)),
            (segment_norm(a, offsets), isofold.segment_norm(x, cut)),
        ):
            assert found.dtype == dtype
            assert found.shape == (() if offsets is None else (3,))
            # To the format's half an ulp; the types below float64 by torch's own rounding of exact values.
            wide = torch.as_tensor(np.asarray(exact))
            assert torch.allclose(found.double(), wide, rtol=torch.finfo(dtype).eps, atol=0)
    assert same(
        segment_sum(a, OFFSETS, dtype=torch.float64), torch.as_tensor(isofold.segment_sum(x, OFFSETS.numpy()))
    )


def test_shapes_and_dims() -> None:
    a, b = draw(3, 4, 5), draw(3, 4, 5, seed=1)
    for dim in (0, 1, 2, -1):
        found = segment_dot(a, b, dim=dim)
        assert same(found, torch.as_tensor(isofold.segment_dot(a.numpy(), b.numpy(), axis=dim)))
    assert segment_sum(torch.zeros(3, 0)).tolist() == [0, 0, 0]
    assert segment_sum(torch.zeros(0, 3)).shape == (0,)
    assert segment_sum(torch.zeros(0), torch.tensor([0])).shape == (0,)
    assert segment_sum(torch.tensor([1, 2])).dtype == torch.get_default_dtype()
    assert segment_dot(a.float(), b).dtype == torch.float64
    assert segment_norm(a.mT.contiguous().mT, dim=0).shape == (4, 5)


def test_special_values_stay_in_their_segment() -> None:
    a = torch.tensor([1.0, float("nan"), 2.0, float("inf"), float("-inf")])
    found = segment_sum(a, torch.tensor([0, 1, 2, 3, 5]))
    assert torch.equal(found.isnan(), torch.tensor([False, True, False, True]))
    assert found[[0, 2]].tolist() == [1, 2]


def test_several_dots_at_once() -> None:
    a, b = draw(12), draw(12, seed=1)
    found = segment_dots([(a, b), (a, a), (b.float(), a)], OFFSETS)
    for values, pair in zip(found, [(a, b), (a, a), (b.float(), a)], strict=True):
        assert same(values, segment_dot(*pair, OFFSETS))
    x, y = leaves(a, b)
    segment_dots([(x, y), (x, x)], OFFSETS)[0].sum().backward()
    assert same(x.grad, torch.cat([b]))
    assert segment_dots([]) == ()


@pytest.mark.parametrize("offsets", [OFFSETS, None])
def test_gradients(offsets: Tensor | None) -> None:
    a, b = leaves(draw(12), draw(12, seed=1))
    for call, inputs in (
        (lambda x: segment_sum(x, offsets), (a,)),
        (lambda x, y: segment_dot(x, y, offsets), (a, b)),
        (lambda x: segment_norm(x, offsets), (a,)),
    ):
        assert gradcheck(call, inputs, check_forward_ad=True)
        assert gradgradcheck(call, inputs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_a_dot_are_rounded_once(dtype: torch.dtype) -> None:
    a, b = leaves(draw(12, dtype=dtype), draw(12, seed=1, dtype=dtype))
    g = draw(3, seed=2, dtype=dtype)
    segment_dot(a, b, OFFSETS).backward(g)
    share = torch.cat([g[1].expand(5), g[2].expand(7)])
    assert same(
        a.grad, (share.double() * b.detach().double()).to(dtype) if dtype != torch.float64 else share * b
    )
    assert same(
        b.grad, (share.double() * a.detach().double()).to(dtype) if dtype != torch.float64 else share * a
    )


def test_a_norm_of_zeros_has_no_gradient() -> None:
    (a,) = leaves(torch.zeros(3))
    segment_norm(a).backward()
    assert a.grad.tolist() == [0, 0, 0]
    (tiny,) = leaves(torch.tensor([3e-40, 4e-40]))
    segment_norm(tiny).backward()
    assert torch.allclose(tiny.grad, torch.tensor([0.6, 0.8]), atol=1e-4)


@pytest.mark.parametrize(("offsets", "length"), [(OFFSETS, None), (None, 4)])
def test_opcheck(offsets: Tensor | None, length: int | None) -> None:
    a, b = leaves(draw(12), draw(12, seed=1))
    call = (offsets, length, torch.float64)
    opcheck(OPS.segment_sum.default, (a, *call))
    opcheck(OPS.segment_norm.default, (a, *call))
    opcheck(OPS.segment_dot.default, (a, b, *call))
    (values,) = leaves(draw(3))
    opcheck(OPS.segment_spread.default, (values, offsets, length, 12))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_is_eager(dynamic: bool) -> None:
    def loss(a: Tensor, b: Tensor) -> Tensor:
        both = segment_dot(a, b, OFFSETS) + segment_norm(a, OFFSETS) * segment_sum(b, OFFSETS)
        return both.square().sum()

    found = []
    for call in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=dynamic)):
        a, b = leaves(draw(12), draw(12, seed=1))
        value = call(a, b)
        value.backward()
        found.append((value.detach(), a.grad, b.grad))
    assert all(same(x, y) for x, y in zip(*found, strict=True))


def test_vmap() -> None:
    a, b = draw(4, 12), draw(4, 12, seed=1)
    assert same(
        torch.func.vmap(lambda x, y: segment_dot(x, y, OFFSETS))(a, b),
        torch.stack([segment_dot(x, y, OFFSETS) for x, y in zip(a, b, strict=True)]),
    )
    assert same(
        torch.func.vmap(torch.func.grad(lambda x: segment_norm(x).sum()))(a),
        torch.stack([torch.func.grad(lambda x: segment_norm(x).sum())(x) for x in a]),
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: segment_sum([1.0]), TypeError, "a must be a torch.Tensor, not list"),
        (
            lambda: segment_dot(torch.ones(2), torch.ones(3)),
            ValueError,
            "b has shape (3,), but a has shape (2,)",
        ),
        (lambda: segment_sum(torch.tensor(1.0)), ValueError, "a must have at least one dimension"),
        (
            lambda: segment_sum(torch.ones(2), dim=1),
            IndexError,
            "dim 1 is out of range for a of 1 dimensions",
        ),
        (
            lambda: segment_sum(torch.ones(2), torch.tensor([0, 1])),
            ValueError,
            "offsets must end at the number of elements, 2, but offsets[1] is 1",
        ),
        (
            lambda: segment_sum(torch.ones(2), torch.tensor([0.0, 2.0])),
            TypeError,
            "offsets must hold integers, not torch.float32",
        ),
        (
            lambda: segment_sum(torch.ones(2), dtype=torch.int32),
            TypeError,
            "dtype must be float16, bfloat16, float32 or float64, not torch.int32",
        ),
    ],
)
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
