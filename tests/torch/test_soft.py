"""Soft ranks, soft sorting and soft top-k: the definition in exact arithmetic, limits, derivatives,
arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import exact_projection
import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from tensors import DTYPES, draw, leaves, same
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from isofold.torch import soft_rank, soft_sort, soft_topk

VALUES = torch.tensor([1, -2, 2, 3, 0.5, -1])
SOFT: dict[str, Callable[..., Tensor]] = {
    "rank": soft_rank,
    "sort": soft_sort,
    "topk": functools.partial(soft_topk, k=3),
}
CASES = [("rank", "l2"), ("sort", "l2"), ("topk", "l2"), ("rank", "kl"), ("sort", "kl")]


def sign_of(kind: str, direction: str) -> float:
    falls = direction == "DESCENDING"
    return (1.0 if falls else -1.0) if kind != "rank" else (-1.0 if falls else 1.0)


def rows() -> list[Tensor]:
    """Rows of noise at several scales, and ties; no steps of a strength, where KL has ties that only reals
    know."""
    found = [draw(n, seed=n) * scale for n in (1, 2, 3, 7, 40) for scale in (0.01, 1, 30)]
    found += [(3 * draw(30, seed=s)).round() * 0.7 for s in range(3)]
    return [*found, 0.7 * torch.arange(6, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)]


@pytest.mark.parametrize("kind", ["rank", "sort", "topk"])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("strength", [0.1, 1.0, 7.5])
def test_l2_is_the_definition_to_the_bit(kind: str, direction: str, strength: float) -> None:
    for row in rows():
        k = min(3, len(row))
        options = {"k": k} if kind == "topk" else {}
        (x,), g = leaves(row), draw(len(row), seed=9)
        found = SOFT[kind](x, regularization_strength=strength, direction=direction, **options)
        found.backward(g)
        sign = sign_of(kind, direction)
        expected, gradient = exact_projection.l2(row.tolist(), kind, strength, sign, g.tolist(), k)
        assert found.tolist() == expected
        assert x.grad.tolist() == gradient


@pytest.mark.parametrize("kind", ["rank", "sort"])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("strength", [0.1, 1.0, 7.5])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_kl_is_the_definition(kind: str, direction: str, strength: float, scale: float) -> None:
    for row in rows():
        (x,), g = leaves(row * scale), draw(len(row), seed=9)
        found = SOFT[kind](x, "kl", strength, direction)
        found.backward(g)
        sign = sign_of(kind, direction)
        expected, gradient = exact_projection.kl(x.tolist(), kind, strength, sign, g.tolist())
        # An error of a float64 in the exponent is its size relative to the exponential.
        wide = max(1.0, float(x.detach().abs().max()))
        np.testing.assert_allclose(
            found.detach(), expected, rtol=1e-15 * (wide if kind == "rank" else 4), atol=4e-15
        )
        np.testing.assert_allclose(x.grad, gradient, rtol=1e-14 * wide, atol=1e-14 * wide)


def test_hard_ranks_and_order_in_the_limit() -> None:
    torch.testing.assert_close(soft_sort(draw(50), regularization_strength=1e-9), draw(50).sort().values)
    torch.testing.assert_close(
        soft_sort(draw(50), regularization_strength=1e-9, direction="DESCENDING"),
        draw(50).sort(descending=True).values,
    )
    hard = torch.zeros(50, dtype=torch.float64).index_fill(0, draw(50).topk(7).indices, 1)
    assert torch.equal(soft_topk(draw(50), 7, regularization_strength=1e-9), hard)
    assert torch.equal(soft_topk(-draw(50), 7, regularization_strength=1e-9, direction="ASCENDING"), hard)
    torch.testing.assert_close(
        soft_rank(draw(50), "kl", regularization_strength=1e-9), draw(50).argsort().argsort().double() + 1
    )


def test_strong_regularization_gives_the_mean_rank() -> None:
    for regularization in ("l2", "kl"):
        torch.testing.assert_close(
            soft_rank(draw(9), regularization, 1e6),
            torch.full((9,), 5.0, dtype=torch.float64),
            rtol=0,
            atol=1e-5,
        )


def test_is_the_projection() -> None:
    """Against a general solver on the permutahedron of (3, 2, 1), as the hull of its six vertices."""
    vertices = np.array([[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]], dtype=float)
    for seed in range(5):
        values = draw(3, seed=seed)
        target = values.numpy() / 0.5

        def distance(mixture: np.ndarray, target: np.ndarray = target) -> float:
            return float(np.square(mixture @ vertices - target).sum())

        best = minimize(
            distance,
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda mixture: mixture.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(
            soft_rank(values, regularization_strength=0.5), best.x @ vertices, atol=1e-5
        )


def test_top_k_is_a_sparse_mask() -> None:
    mask = soft_topk(draw(20, 300), 10, regularization_strength=0.3)
    torch.testing.assert_close(mask.sum(1), torch.full((20,), 10.0, dtype=torch.float64))
    assert ((mask >= 0) & (mask <= 1)).all()
    assert ((mask == 0) | (mask == 1)).double().mean() > 0.9
    assert torch.equal(soft_topk(VALUES, 0), torch.zeros(6))
    assert torch.equal(soft_topk(VALUES, 6), torch.ones(6))
    assert soft_topk(VALUES, 2, offsets=torch.tensor([0, 1, 6])).tolist()[0] == 1


@pytest.mark.parametrize(("kind", "regularization"), CASES)
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_derivatives(kind: str, regularization: str, direction: str) -> None:
    def call(values: Tensor) -> Tensor:
        return SOFT[kind](
            values, regularization=regularization, regularization_strength=0.3, direction=direction
        )

    (values,) = leaves(draw(3, 6))
    assert gradcheck(call, (values,), check_forward_ad=True)
    assert gradgradcheck(lambda v: call(v) ** 2, (values,), check_fwd_over_rev=True, check_rev_over_rev=True)

    def first(v: Tensor) -> Tensor:
        (found,) = torch.autograd.grad((call(v) ** 3).sum(), v, create_graph=True)
        return found

    assert gradgradcheck(first, leaves(draw(5, seed=2)))


@pytest.mark.parametrize(("kind", "regularization"), CASES)
def test_rows_and_dims(kind: str, regularization: str) -> None:
    call = functools.partial(SOFT[kind], regularization=regularization, regularization_strength=0.3)
    values = draw(3, 6)
    flat = values.reshape(-1)
    ragged = call(flat, offsets=torch.tensor([0, 0, 6, 10, 18]))
    for begin, end in ((0, 6), (6, 10), (10, 18)):
        torch.testing.assert_close(ragged[begin:end], call(flat[begin:end]), rtol=1e-15, atol=1e-15)
    if regularization == "l2":
        assert torch.equal(ragged[6:10], call(flat[6:10]))
    assert torch.equal(call(values.T, dim=0), call(values).T)
    assert torch.equal(torch.func.vmap(call)(values), call(values))
    assert torch.equal(torch.func.vmap(call, in_dims=1)(values.T), call(values))
    for shape in [(0,), (0, 5), (5, 4), (2, 0, 3)]:
        assert call(torch.zeros(shape), **({"k": 0} if kind == "topk" else {})).shape == shape
    (each,) = leaves(values)
    (call(each) ** 3).sum().backward()
    by_row = torch.func.vmap(torch.func.grad(lambda v: (call(v) ** 3).sum()))(values)
    assert torch.equal(by_row, each.grad)


@pytest.mark.parametrize(("kind", "regularization"), CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounded_once_from_float64(kind: str, regularization: str, dtype: torch.dtype) -> None:
    values = draw(4, 300, dtype=dtype)
    (given, wide) = leaves(values, values.double())
    found = SOFT[kind](given, regularization=regularization)
    exact = SOFT[kind](wide, regularization=regularization)
    assert found.dtype == dtype
    if dtype != torch.bfloat16:
        assert np.array_equal(
            found.detach().numpy(), exact.detach().numpy().astype(found.detach().numpy().dtype)
        )
    else:
        distance = (found.double() - exact).abs()
        for other in (-torch.inf, torch.inf):
            bits = torch.nextafter(found.detach(), torch.full_like(found, other))
            assert (distance <= (bits.double() - exact).abs()).all()
    g = draw(4, 300, seed=3, dtype=dtype)
    found.backward(g)
    exact.backward(g.double())
    assert given.grad.dtype == dtype
    torch.testing.assert_close(given.grad.double(), wide.grad, rtol=2 * torch.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize(("kind", "regularization"), CASES)
def test_rows_that_cannot_be_projected_are_nan_alone(kind: str, regularization: str) -> None:
    values = draw(4, 20)
    clean = SOFT[kind](values, regularization=regularization)
    spoilt = values.clone()
    spoilt[1, 3], spoilt[2, 19] = torch.nan, -torch.inf
    (x,) = leaves(spoilt)
    found = SOFT[kind](x, regularization=regularization)
    assert torch.equal(found[[0, 3]], clean[[0, 3]])
    assert found[[1, 2]].isnan().all()
    found.sum().backward()
    assert not x.grad[[0, 3]].isnan().any()
    assert x.grad[[1, 2]].isnan().all()
    flat = SOFT[kind](spoilt.view(-1), regularization=regularization, offsets=torch.arange(0, 81, 20))
    assert same(flat.view(4, 20).isnan(), found.isnan())


@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_rows_beyond_float64_are_nan_alone(regularization: str) -> None:
    rows = torch.tensor([[1e300, 0, 1], [1, 2, 3]], dtype=torch.float64)
    found = soft_rank(rows, regularization, 1e-10)
    assert found[0].isnan().all()
    assert found[1].tolist() == [1, 2, 3]


def test_integers_and_ties() -> None:
    assert soft_rank(torch.tensor([3, 1, 2])).tolist() == [3, 1, 2]
    assert soft_rank(torch.tensor([2.0, 2.0, 2.0])).tolist() == [2, 2, 2]
    assert soft_rank(torch.tensor([2.0, 2.0, 2.0]), "kl").tolist() == [2, 2, 2]
    assert soft_topk(torch.tensor([5.0, 1.0, 1.0]), 2).tolist() == [1, 0.5, 0.5]


@pytest.mark.parametrize("soft", SOFT.values())
@pytest.mark.parametrize("strength", [0, -1, float("nan"), float("inf")])
def test_strength_is_positive(soft: Callable[..., Any], strength: float) -> None:
    with pytest.raises(ValueError, match="regularization_strength must be positive and finite"):
        soft(VALUES, regularization_strength=strength)


ERRORS: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "regularization must be 'l2' or 'kl', not 'l1'", lambda: soft_rank(VALUES, "l1")),
    (ValueError, "direction must be 'ASCENDING' or", lambda: soft_sort(VALUES, direction="UP")),
    (ValueError, "regularization of soft_topk must be 'l2', not", lambda: soft_topk(VALUES, 2, "kl")),
    (ValueError, "k must be from 0 to the length of the rows, 6, but is 7", lambda: soft_topk(VALUES, 7)),
    (ValueError, "k must be at least 0, but is -1", lambda: soft_topk(VALUES, -1)),
    (TypeError, "k must be an integer, not 2.5", lambda: soft_topk(VALUES, 2.5)),  # type: ignore[arg-type]
    (TypeError, "values must be a torch.Tensor, not", lambda: soft_rank([1.0])),  # type: ignore[arg-type]
    (ValueError, "values must have at least one dimension", lambda: soft_sort(torch.tensor(1.0))),
    (IndexError, "dim 1 is out of range for values of 1 dim", lambda: soft_rank(VALUES, dim=1)),
    (ValueError, r"offsets\[1\] is 5", lambda: soft_rank(VALUES, offsets=torch.tensor([0, 5]))),
    (ValueError, "offsets cut 1-D values", lambda: soft_rank(VALUES[None], offsets=torch.tensor([0, 6]))),
]


@pytest.mark.parametrize(("error", "message", "call"), ERRORS)
def test_errors(error: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error, match=message):
        call()
