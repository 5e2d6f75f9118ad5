"""Soft ranks and soft sorting: known values, the definition as a projection, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from isofold.torch import soft_rank, soft_sort

VALUES = torch.tensor([1, -2, 2, 3, 0.5, -1])


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_known_ranks() -> None:
    assert soft_rank(VALUES).tolist() == [3.875, 1, 4.875, 5.875, 3.375, 2]
    assert soft_rank(VALUES, direction="DESCENDING").tolist() == [3.125, 6, 2.125, 1.125, 3.625, 5]


def test_hard_ranks_and_order_in_the_limit() -> None:
    values = torch.linspace(0, 4e-4, 2_000, dtype=torch.float64)[
        torch.randperm(2_000, generator=torch.Generator().manual_seed(1))
    ]
    hard = values.argsort().argsort().double() + 1
    torch.testing.assert_close(soft_rank(values, regularization_strength=1e-7), hard, rtol=0, atol=1e-8)
    torch.testing.assert_close(soft_sort(draw(50), regularization_strength=1e-9), draw(50).sort().values)
    torch.testing.assert_close(
        soft_sort(draw(50), regularization_strength=1e-9, direction="DESCENDING"),
        draw(50).sort(descending=True).values,
    )


def test_strong_regularization_gives_the_mean_rank() -> None:
    torch.testing.assert_close(
        soft_rank(draw(9), regularization_strength=1e6),
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


@pytest.mark.parametrize("soft", [soft_rank, soft_sort])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_derivatives_and_rows(soft: object, direction: str) -> None:
    values = draw(3, 6).requires_grad_()

    def call(values: Tensor, **options: object) -> Tensor:
        return soft(values, "l2", 0.3, direction, **options)  # type: ignore[operator]

    assert gradcheck(call, (values,), check_forward_ad=True)
    assert gradgradcheck(lambda v: call(v) ** 2, (values,))
    flat = values.detach().reshape(-1)
    ragged = call(flat, offsets=torch.tensor([0, 0, 6, 7, 18]))
    assert torch.equal(ragged[:6], call(flat[:6]))
    assert torch.equal(ragged[6:7], call(flat[6:7]))
    assert torch.equal(ragged[7:], call(flat[7:]))
    assert torch.equal(call(values.T, dim=0), call(values).T)
    assert torch.equal(torch.func.vmap(call)(values), call(values))


def test_hessian() -> None:
    hessian = torch.autograd.functional.hessian(
        lambda x: soft_rank(x)[0] ** 2 / 2, torch.tensor([0, 0.1], dtype=torch.float64)
    )
    assert hessian.tolist() == [[0.25, -0.25], [-0.25, 0.25]]


def test_rounded_once_from_float64() -> None:
    values = draw(4, 300).float()
    assert torch.equal(soft_rank(values), soft_rank(values.double()).float())
    assert soft_rank(values.bfloat16()).dtype == torch.bfloat16
    assert soft_rank(torch.tensor([3, 1, 2])).tolist() == [3, 1, 2]


def test_ties_share_their_rank() -> None:
    assert soft_rank(torch.tensor([2.0, 2.0, 2.0])).tolist() == [2, 2, 2]


@pytest.mark.parametrize("strength", [0, -1, float("nan"), float("inf")])
def test_strength_is_positive(strength: float) -> None:
    with pytest.raises(ValueError, match="regularization_strength must be positive and finite"):
        soft_rank(VALUES, regularization_strength=strength)


def test_other_errors() -> None:
    with pytest.raises(ValueError, match="regularization must be 'l2', not 'kl'"):
        soft_rank(VALUES, "kl")
    with pytest.raises(ValueError, match="direction must be"):
        soft_sort(VALUES, direction="UP")
