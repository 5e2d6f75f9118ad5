"""float16 and bfloat16 by way of float64, as CUDA has them, on a CPU: against rational arithmetic and against
the library's own halves, which round the exact value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracle
import pytest
import torch
from tensors import draw, same
from torch import Tensor

from isofold.torch import _halves, _solve
from isofold.torch._rows import Call

HALVES = [torch.float16, torch.bfloat16]


def all_halves(dtype: torch.dtype) -> Tensor:
    values = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    return values[values.isfinite()].sort().values


@pytest.mark.parametrize("dtype", HALVES)
def test_rounding(dtype: torch.dtype) -> None:
    """To the nearest of all halves, the even one midway: torch's own conversion misses just above midways."""
    halves = all_halves(dtype).double().unique()
    middles = (halves[1:] + halves[:-1]) / 2
    even = halves[:-1].to(dtype).view(torch.int16) % 2 == 0
    expected = torch.where(even, halves[:-1], halves[1:])
    assert torch.equal(_halves.rounded(middles, dtype).double().abs(), expected.abs())
    for towards, neighbour in ((-torch.inf, halves[:-1]), (torch.inf, halves[1:])):
        beside = torch.nextafter(middles, torch.full_like(middles, towards))
        assert torch.equal(_halves.rounded(beside, dtype).double(), neighbour)
    if dtype == torch.float16:
        assert (
            torch.nextafter(middles, torch.full_like(middles, torch.inf)).to(dtype).double() != halves[1:]
        ).any()
    beyond = torch.tensor([1e300, -torch.inf, torch.nan], dtype=torch.float64)
    assert same(_halves.rounded(beyond, dtype), torch.tensor([torch.inf, -torch.inf, torch.nan]).to(dtype))


def weights_of(kind: str, n: int, dtype: torch.dtype) -> Tensor | None:
    if kind == "none":
        return None
    if kind == "counts":
        return (draw(n, seed=4).abs() * 3).ceil().float()
    return (draw(n, seed=4).abs() + 0.1).to(dtype if kind == "halves" else torch.float64)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("weights", ["none", "counts", "halves", "doubles"])
@pytest.mark.parametrize("bounds", [(-math.inf, math.inf), (-0.3, 0.4)])
def test_bits_are_those_of_the_library(dtype: torch.dtype, weights: str, bounds: tuple[float, float]) -> None:
    for seed, scale in itertools.product(range(6), (1.0, 1e-6, 2e3)):
        n = 5 + 17 * seed
        y, g = draw(n, seed=seed) * scale, draw(n, seed=seed + 50, dtype=dtype)
        y = (y.round() if seed % 2 else y).to(dtype)
        w = weights_of(weights, n, dtype)
        for offsets, length in ((None, n), (torch.tensor([0, 3, 3, n]), None)):
            call = Call(length, seed % 3 > 0, *bounds)
            fit, starts = _solve.fit(y, w, offsets, call)
            found, found_starts = _halves.fit(y, w, offsets, call)
            assert same(found, fit)
            assert torch.equal(found_starts, starts)
            expected = _solve.gradient(g, y, w, starts, offsets, call, True)
            gradients = _halves.gradient(g, y, w, starts, offsets, call, True)
            for mine, other in zip(gradients, expected, strict=True):
                assert mine is not None
                assert other is not None
                assert same(mine, other)


TINY = 2.0**-100
MIDWAY = 2 + 2**-7  # between the bfloat16s 2 and 2 + 2^-6
BESIDE_MIDWAY = [
    ([4 + 2**-5, 4, TINY, 0], None, 2 + 2**-6),
    ([4 + 2**-5, 4, 0, 0], None, 2.0),
    ([4 + 2**-5, 4, 0, -TINY], None, 2.0),
    ([1000, 2 + 2**-6, 2], [TINY, 1, 1], 2 + 2**-6),
    ([2 + 2**-6, 2, 0], [1, 1, TINY], 2.0),
]


@pytest.mark.parametrize(("values", "weights", "expected"), BESIDE_MIDWAY)
def test_a_distant_bit_decides_midway(
    values: list[float], weights: list[float] | None, expected: float
) -> None:
    y = torch.tensor(values, dtype=torch.bfloat16)
    w = None if weights is None else torch.tensor(weights)
    call = Call(len(y), True, -math.inf, math.inf)
    assert _solve.fit(y.double(), w, None, call)[0].tolist() == [MIDWAY] * len(y)
    found, starts = _halves.fit(y, w, None, call)
    assert found.tolist() == [expected] * len(y)
    # The same numbers as a gradient.
    gradient, _ = _halves.gradient(y, y, None, starts, None, call, False)
    assert same(gradient, _solve.gradient(y, y, None, starts, None, call, False)[0])


def test_float16_against_rational_arithmetic() -> None:
    for seed in range(5):
        y = draw(60, seed=seed, dtype=torch.float16)
        found, starts = _halves.fit(y, None, None, Call(60, True, -math.inf, math.inf))
        solution = oracle.solve(y.numpy())
        assert np.array_equal(found.numpy(), solution.fit("float16"))
        assert np.array_equal(starts.numpy(), solution.flags())
