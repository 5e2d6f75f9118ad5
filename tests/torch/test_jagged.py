"""Jagged nested tensors: every row as if it were alone."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from tensors import draw
from torch import Tensor

from isofold.torch import blocks, isotonic_regression, soft_rank, soft_sort, soft_topk

LENGTHS = [4, 0, 1, 7]
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "fit": isotonic_regression,
    "L2 rank": soft_rank,
    "L2 sort": soft_sort,
    "KL rank": functools.partial(soft_rank, regularization="kl"),
    "top k": functools.partial(soft_topk, k=2),
    "blocks": blocks,
}


def nested(*shape: int, seed: int = 0) -> Tensor:
    parts = [draw(n, *shape, seed=seed + n) for n in LENGTHS]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_are_as_alone(name: str) -> None:
    rows = nested()
    found = FUNCTIONS[name](rows)
    assert found.is_nested
    assert found.shape == rows.shape
    for row, alone in zip(found.unbind(), rows.unbind(), strict=True):
        k = {"k": min(2, len(alone))} if name == "top k" else {}
        torch.testing.assert_close(row, FUNCTIONS[name](alone, **k), rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("name", ["fit", "L2 rank", "L2 sort"])
@pytest.mark.parametrize("dim", [1, 2, -1])
def test_rows_of_vectors(name: str, dim: int) -> None:
    rows = nested(3)
    found = FUNCTIONS[name](rows, dim=dim)
    for row, alone in zip(found.unbind(), rows.unbind(), strict=True):
        assert torch.equal(row, FUNCTIONS[name](alone, dim=dim - 1 if dim > 0 else dim))


def test_gradients_and_weights() -> None:
    values, weights = draw(12).requires_grad_(), (draw(12, seed=1).abs() + 0.5).requires_grad_()
    offsets = torch.tensor([0, 4, 4, 5, 12])
    rows, given = (torch.nested.nested_tensor_from_jagged(t, offsets) for t in (values, weights))
    found = isotonic_regression(rows, given)
    (found.values() ** 2).sum().backward()
    other, other_weights = (t.detach().clone().requires_grad_() for t in (values, weights))
    (isotonic_regression(other, other_weights, offsets=offsets) ** 2).sum().backward()
    assert torch.equal(values.grad, other.grad)
    assert torch.equal(weights.grad, other_weights.grad)
    # One shape for torch: results combine with the input.
    assert (found + rows).shape == rows.shape
    assert torch.equal(isotonic_regression(rows, 2.0).values(), isotonic_regression(rows).values())


def test_compiled() -> None:
    rows = nested()
    found = torch.compile(lambda x: soft_rank(x, regularization_strength=0.5), fullgraph=True)(rows)
    assert torch.equal(found.values(), soft_rank(rows, regularization_strength=0.5).values())


def test_errors() -> None:
    rows = nested()
    with pytest.raises(ValueError, match=r"must have the layout torch\.jagged"):
        soft_rank(torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.strided))
    with pytest.raises(ValueError, match="dim 0 of a nested input counts its rows"):
        soft_rank(rows, dim=0)
    with pytest.raises(ValueError, match="offsets go with 1-D input"):
        isotonic_regression(rows, offsets=torch.tensor([0, 12]))
    with pytest.raises(ValueError, match="weights of a nested input must be nested as it is"):
        isotonic_regression(rows, torch.ones(12))
    with pytest.raises(ValueError, match="nested weights must have the offsets of the input"):
        isotonic_regression(rows, torch.nested.nested_tensor([torch.ones(12)], layout=torch.jagged))
    offsets, lengths = torch.tensor([0, 4, 9]), torch.tensor([2, 3])
    holes = torch.nested.nested_tensor_from_jagged(torch.zeros(9), offsets=offsets, lengths=lengths)
    with pytest.raises(ValueError, match="must have no holes between its rows"):
        soft_rank(holes)
