"""Reports of users of other packages, with the right values. TS: an issue of teddykoker/torchsort."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracle
import pytest
import torch
from tensors import DTYPES, draw, leaves

from isofold.torch import isotonic_regression, soft_rank, soft_sort

VALUES = [1, -2, 2, 3, 0.5, -1]
RANKS = [3.875, 1, 4.875, 5.875, 3.375, 2]


def test_1_rows_longer_than_float32_counts() -> None:
    """torchsort keeps indices in the data's dtype, and hangs."""
    n = 2**24 + 50
    rising = torch.arange(n, dtype=torch.float64).sub(2**23).float()
    expected = torch.arange(1, n + 1, dtype=torch.float64).float()
    # Steps of 2 over a strength of 1/2 are apart: ranks are the hard ones.
    assert torch.equal(soft_rank(rising, regularization_strength=0.5), expected)
    step = torch.zeros(n)
    step[: 2**24 + 1] = 1
    mean = oracle.round_fraction(Fraction(2**24 + 1, n), "float32")
    (y,) = leaves(step)
    fit = isotonic_regression(y)
    assert (fit == mean).all()
    fit[-1].backward()
    assert (y.grad == oracle.round_fraction(Fraction(1, n), "float32")).all()


def test_1_rows_longer_than_float16_counts() -> None:
    n = 5_000
    y = torch.zeros(n, dtype=torch.float16)
    y[: n - 3] = 1
    assert (isotonic_regression(y) == oracle.round_fraction(Fraction(n - 3, n), "float16")).all()
    hard = torch.arange(1, n + 1, dtype=torch.float64)
    permutation = torch.randperm(n, generator=torch.Generator().manual_seed(1))
    ranks = soft_rank(hard[permutation].half(), regularization_strength=1e-3)
    assert torch.equal(
        ranks, soft_rank(hard[permutation].half().double(), regularization_strength=1e-3).half()
    )


def test_2_a_constant_row_stays_as_it_is() -> None:
    y = torch.full((10_000_000,), 0.1, dtype=torch.float32)
    assert torch.equal(isotonic_regression(y), y)
    assert isotonic_regression(torch.tensor([0.1] * 3, dtype=torch.float64)).tolist() == [0.1] * 3


def test_3_blocks_do_not_come_from_a_tolerance() -> None:
    (y,) = leaves(torch.tensor([3e-10, 2e-10, 1e-10]))
    isotonic_regression(y, increasing=False).backward(torch.tensor([1.0, 2.0, 3.0]))
    assert y.grad.tolist() == [1, 2, 3]


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e30])
def test_4_kl_at_wide_ranges(scale: float) -> None:
    """TS 63. Of s = [100, 0] the dual solution is in blocks of one: the ranks are hard and do not move, and
    soft sorting gives s back, with the gradient [1, 1]."""
    for strength in (1e-3, 1.0):
        (s,) = leaves(torch.tensor([scale, 0.0], dtype=torch.float64))
        ranks = soft_rank(s, "kl", strength)
        ranks.sum().backward()
        assert ranks.tolist() == [2, 1]
        assert s.grad.tolist() == [0, 0]
    # Here the gap of ranks / strength is the larger one.
    (s,) = leaves(torch.tensor([scale, 0.0], dtype=torch.float64))
    found = soft_sort(s, "kl", 0.5 / scale, direction="DESCENDING")
    found.sum().backward()
    assert found.tolist() == [scale, 0]
    assert s.grad.tolist() == [1, 1]
    # And here one block: log sum e^s = scale, so that its gradient goes to the larger value.
    (s,) = leaves(torch.tensor([scale, 0.0], dtype=torch.float64))
    soft_sort(s, "kl", 1.0, direction="DESCENDING").sum().backward()
    assert s.grad.isfinite().all()
    assert s.grad[0] == 2


# 5, the second device, streams and graphs, is in cuda/test_bits.py; an empty batch here.


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (2, 0, 3)])
@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_5_an_empty_batch(shape: tuple[int, ...], regularization: str) -> None:
    (x,) = leaves(torch.zeros(shape))
    for found in (isotonic_regression(x), soft_rank(x, regularization), soft_sort(x, regularization)):
        assert found.shape == shape
        found.sum().backward()
        assert x.grad.shape == shape


def test_6_nan_is_of_its_row_alone() -> None:
    y = torch.tensor([[3.0, 1, 2], [1, torch.nan, 2], [torch.inf, 1, 2]])
    found = isotonic_regression(y)
    assert found[0].tolist() == [2, 2, 2]
    assert found[1:].isnan().all()
    assert soft_rank(y)[0].tolist() == [3, 1, 2]
    assert soft_rank(y)[1:].isnan().all()
    with pytest.raises(ValueError, match="input is not finite: row 1, position 1 is nan"):
        isotonic_regression(y, validate=True)


def test_7_double_backward() -> None:
    hessian = torch.autograd.functional.hessian(
        lambda x: soft_rank(x)[0] ** 2 / 2, torch.tensor([0, 0.1], dtype=torch.float64)
    )
    assert hessian.tolist() == [[0.25, -0.25], [-0.25, 0.25]]


def test_8_one_dimension_and_any_axis() -> None:
    """TS 64."""
    values = torch.tensor(VALUES)
    assert soft_rank(values).tolist() == RANKS
    assert soft_rank(values[:, None], dim=0).tolist() == [[rank] for rank in RANKS]
    assert torch.equal(
        soft_sort(draw(3, 4, 5), dim=1), soft_sort(draw(3, 4, 5).movedim(1, -1)).movedim(-1, 1)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_8_half_precision(dtype: torch.dtype) -> None:
    """TS 30, 57."""
    (values,) = leaves(torch.tensor(VALUES, dtype=dtype))
    ranks = soft_rank(values)
    assert ranks.dtype == dtype
    assert ranks.tolist() == RANKS
    ranks[0].backward()
    assert values.grad.dtype == dtype
    assert values.grad.tolist() == [0.75, 0, -0.25, -0.25, -0.25, 0]


# 8, memory over 1,000 calls (TS 20, 29), is in test_operators.py.


def test_9_known_ranks() -> None:
    """TS 60."""
    assert soft_rank(torch.tensor(VALUES)).tolist() == RANKS
    assert soft_rank(torch.tensor(VALUES), direction="DESCENDING").tolist() == [
        3.125,
        6,
        2.125,
        1.125,
        3.625,
        5,
    ]


def test_10_hard_ranks_at_a_small_strength() -> None:
    """TS 74."""
    values = torch.linspace(0, 4e-4, 2_000, dtype=torch.float64)[
        torch.randperm(2_000, generator=torch.Generator().manual_seed(1))
    ]
    hard = values.argsort().argsort().double() + 1
    torch.testing.assert_close(soft_rank(values, regularization_strength=1e-7), hard, rtol=0, atol=1e-8)
    single = values.float()
    assert torch.equal(
        soft_rank(single, regularization_strength=1e-7), single.argsort().argsort().float() + 1
    )


def test_11_gradient_of_a_pooled_pair() -> None:
    """TensorFlow 127234."""
    (y,) = leaves(torch.tensor([4, 0.7, 2]))
    isotonic_regression(y, increasing=False)[1].backward()
    assert y.grad.tolist() == [0, 0.5, 0.5]


def test_sums_that_overflow_midway() -> None:
    y = torch.tensor([1e308, 1e308, -1e308, -1e308], dtype=torch.float64)
    assert isotonic_regression(y).tolist() == [0, 0, 0, 0]


def test_lanes_that_fall_by_turns() -> None:
    """Super-linear traps of pooling."""
    n = 20_000
    trap = torch.cat([torch.arange(0, n), torch.arange(-(n - 1), n), torch.arange(-(n - 1), 1)]).double()
    assert (isotonic_regression(trap) == 0).all()
    sawtooth = torch.arange(n, 0, -1).double()
    sawtooth[1::2] -= 1.5
    expected = oracle.solve(sawtooth.numpy()).fit("float64")
    assert np.array_equal(isotonic_regression(sawtooth).numpy(), expected)
