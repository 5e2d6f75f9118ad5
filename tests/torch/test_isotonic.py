"""isofold.torch.isotonic_regression against the NumPy front, its derivatives against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from tensors import DTYPES, draw, leaves, positive
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import isofold
from isofold.torch import blocks, isotonic_regression


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_bits_are_those_of_the_numpy_front(dtype: torch.dtype, increasing: bool, dim: int) -> None:
    y, w = draw(5, 300, 3, dtype=dtype), positive(5, 300, 3)
    found = isotonic_regression(y, w, increasing=increasing, dim=dim)
    expected = isofold.isotonic_regression(y.numpy(), weights=w.numpy(), increasing=increasing, axis=dim)
    assert found.dtype == dtype
    assert np.array_equal(found.numpy(), expected.x)
    mask = blocks(y, w, increasing=increasing, dim=dim)
    assert np.array_equal(mask.numpy(), expected.block_mask)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_half_is_the_exact_mean_rounded_once(dtype: torch.dtype) -> None:
    y = draw(4_000, dtype=dtype)
    found = isotonic_regression(y)
    exact = isofold.isotonic_regression(y.double().numpy())
    for begin, end in itertools.pairwise(exact.blocks):
        values = [float(v) for v in y[begin:end]]
        mean = np.longdouble(0)
        for value in values:
            mean += np.longdouble(value)
        mean /= len(values)
        assert torch.equal(found[begin:end], torch.full((end - begin,), float(found[begin]), dtype=dtype))
        candidates = [found[begin], torch.nextafter(found[begin].float(), torch.tensor(9.0)).to(dtype)]
        assert abs(float(candidates[0]) - mean) <= abs(float(candidates[1]) - mean)


def test_ragged_rows() -> None:
    y, w = draw(1_000), positive(1_000)
    offsets = torch.tensor([0, 0, 10, 11, 400, 1_000])
    found = isotonic_regression(y, w, offsets=offsets)
    for begin, end in itertools.pairwise(offsets.tolist()):
        assert torch.equal(found[begin:end], isotonic_regression(y[begin:end], w[begin:end]))
    assert gradcheck(
        lambda y, w: isotonic_regression(y, w, offsets=torch.tensor([0, 4, 9])), leaves(y[:9], w[:9])
    )


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("bounds", [(None, None), (-0.4, 0.6)])
def test_derivatives(increasing: bool, bounds: tuple[float | None, float | None]) -> None:
    y, w = leaves(draw(3, 7), positive(3, 7))
    low, high = bounds

    def fit(y: Tensor, w: Tensor | None = None) -> Tensor:
        return isotonic_regression(y, w, increasing=increasing, y_min=low, y_max=high, dim=1)

    assert gradcheck(fit, (y,), check_forward_ad=True)
    assert gradcheck(fit, (y, w), check_forward_ad=True)
    assert gradgradcheck(lambda y, w: fit(y, w) ** 2, (y, w), check_fwd_over_rev=True)
    assert gradgradcheck(lambda y: fit(y) ** 2, (y,), check_fwd_over_rev=True)


def test_gradients_are_the_exact_ones() -> None:
    y, w, g = draw(50, 40), positive(50, 40), draw(50, 40, seed=2)
    (y_leaf, w_leaf) = leaves(y, w)
    isotonic_regression(y_leaf, w_leaf).backward(g)
    fit = isofold.isotonic_regression(y.numpy(), weights=w.numpy())
    for_y, for_w = isofold.isotonic_gradient(fit, g.numpy())
    assert np.array_equal(y_leaf.grad.numpy(), for_y)
    assert np.array_equal(w_leaf.grad.numpy(), for_w)


def test_transforms() -> None:
    y, w = draw(6, 9), positive(6, 9)
    assert torch.equal(torch.func.vmap(isotonic_regression)(y, w), isotonic_regression(y, w))
    assert torch.equal(
        torch.func.vmap(isotonic_regression, in_dims=(1, None))(y.T, w[0]), isotonic_regression(y, w[0])
    )

    def loss(y: Tensor, w: Tensor) -> Tensor:
        return (isotonic_regression(y, w) ** 3).sum()

    y_leaf, w_leaf = leaves(y, w)
    loss(y_leaf, w_leaf).backward()
    each = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)))(y, w)
    assert torch.equal(each[0], y_leaf.grad)
    assert torch.equal(each[1], w_leaf.grad)
    one = torch.func.hessian(loss, argnums=(0, 1))(y[0], w[0])
    other = torch.autograd.functional.hessian(loss, (y[0], w[0]))
    for i in range(2):
        for j in range(2):
            torch.testing.assert_close(one[i][j], other[i][j])


def test_rows_that_cannot_be_fitted_are_nan_alone() -> None:
    y, w = draw(6, 50), positive(6, 50)
    clean = isotonic_regression(y, w)
    bad_y, bad_w = y.clone(), w.clone()
    bad_y[1, 3], bad_y[2, 49], bad_w[4, 0], bad_w[5, 7] = torch.nan, torch.inf, 0, torch.nan
    (bad_y, bad_w) = leaves(bad_y, bad_w)
    found = isotonic_regression(bad_y, bad_w)
    good = [0, 3]
    assert torch.equal(found[good], clean[good])
    assert found[[1, 2, 4, 5]].isnan().all()
    found.sum().backward()
    assert not bad_y.grad[good].isnan().any()
    assert bad_y.grad[[1, 2, 4, 5]].isnan().all()
    assert blocks(bad_y, bad_w)[1].tolist() == [True] + [False] * 49
    with pytest.raises(ValueError, match="input is not finite: row 1, position 3 is nan"):
        isotonic_regression(bad_y, validate=True)
    with pytest.raises(ValueError, match="weights is not a positive number: row 4, position 0 is 0"):
        isotonic_regression(y, bad_w, validate=True)


def test_shapes_and_types() -> None:
    assert isotonic_regression(torch.tensor([3, 1, 2])).tolist() == [2, 2, 2]
    assert isotonic_regression(torch.tensor([3, 1])).dtype == torch.get_default_dtype()
    for shape in [(0,), (0, 5), (5, 0), (2, 0, 3)]:
        assert isotonic_regression(torch.zeros(shape)).shape == shape
        assert blocks(torch.zeros(shape)).shape == shape
    y = draw(8, 6)
    assert torch.equal(
        isotonic_regression(y.T[::2], dim=0), isotonic_regression(y.T[::2].contiguous(), dim=0)
    )
    assert torch.equal(isotonic_regression(y, 2.0), isotonic_regression(y))
    assert torch.equal(isotonic_regression(y, torch.ones(6)), isotonic_regression(y))
    before = y.clone()
    isotonic_regression(y)
    assert torch.equal(y, before)


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "input must be a torch.Tensor, not list", {"input": [1.0]}),
        (TypeError, "input must be real", {"input": torch.zeros(3, dtype=torch.complex64)}),
        (ValueError, "at least one dimension", {"input": torch.tensor(1.0)}),
        (IndexError, "dim 2 is out of range", {"dim": 2}),
        (TypeError, "increasing must be True or False", {"increasing": 1}),
        (ValueError, "y_min is 2.0, above y_max, 1.0", {"y_min": 2, "y_max": 1}),
        (ValueError, "y_min is NaN", {"y_min": float("nan")}),
        (ValueError, r"weights of shape \(2,\) do not fit", {"weights": torch.ones(2)}),
        (ValueError, "offsets cut 1-D input", {"offsets": torch.tensor([0, 3])}),
        (
            TypeError,
            "offsets must hold integers",
            {"input": torch.zeros(3), "offsets": torch.tensor([0.0, 3.0])},
        ),
        (
            ValueError,
            r"offsets must end at the number of elements, 3, but offsets\[1\] is 2",
            {"input": torch.zeros(3), "offsets": torch.tensor([0, 2])},
        ),
        (
            ValueError,
            r"offsets must not fall, but offsets\[2\] is 1 after 2",
            {"input": torch.zeros(3), "offsets": torch.tensor([0, 2, 1, 3])},
        ),
        (
            ValueError,
            r"offsets must rise from 0, but offsets\[0\] is 1",
            {"input": torch.zeros(3), "offsets": torch.tensor([1, 3])},
        ),
    ],
)
def test_errors(error: type[Exception], message: str, arguments: dict[str, object]) -> None:
    with pytest.raises(error, match=message):
        isotonic_regression(**({"input": torch.zeros(2, 3)} | arguments))
