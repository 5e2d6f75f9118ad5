"""exp and log in fixed sequences of operations: their bounds, against mpmath; KL blocks by the definition."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from tensors import draw
from torch import Tensor

from isofold.torch import _log_blocks
from isofold.torch._log_pooling import block_starts
from isofold.torch._logarithms import exp_of_negative, log


def worst_error(found: Tensor, exact: list[mpmath.mpf]) -> float:
    """In units in the last place."""
    return max(
        abs(mpmath.mpf(f) - e) / math.ulp(float(e)) for f, e in zip(found.tolist(), exact, strict=True)
    )


def test_exponential() -> None:
    x = -torch.cat(
        [draw(4_000).abs(), 700 * draw(4_000, seed=1).abs().clamp(max=1), torch.tensor([0.0, 1e-300, 708])]
    )
    with mpmath.workdps(40):
        assert worst_error(exp_of_negative(x), [mpmath.exp(v) for v in x.tolist()]) < 1.5
    assert exp_of_negative(torch.tensor([-708.1, -1e300, -math.inf], dtype=torch.float64)).tolist() == [
        0,
        0,
        0,
    ]
    assert exp_of_negative(torch.tensor([math.nan], dtype=torch.float64)).isnan().all()


def test_logarithm() -> None:
    x = torch.cat(
        [
            1 + draw(4_000).abs() * 1e-3,
            torch.exp(170 * draw(4_000, seed=1).clamp(-4, 4)),
            torch.arange(1, 5_000).double(),
        ]
    )
    x = torch.cat([x, 1 / x, torch.tensor([2.3e-308, 1.7e308], dtype=torch.float64)])
    with mpmath.workdps(40):
        exact = [mpmath.log(v) for v in x.tolist()]
        assert worst_error(log(x), exact) < 1.0
    assert log(torch.tensor([1.0, math.nan], dtype=torch.float64)).nan_to_num(7).tolist() == [0, 7]


def by_definition(a: Tensor, b: Tensor) -> list[int]:
    """Starts of the blocks of v_i = max over l >= i, min over j <= i of log sum e^a - log sum e^b over
    j..l."""
    with mpmath.workdps(60):
        e_a, e_b = ([mpmath.exp(mpmath.mpf(v)) for v in x.tolist()] for x in (a, b))
        n = len(e_a)
        ratio = {
            (j, end): mpmath.fsum(e_a[j : end + 1]) / mpmath.fsum(e_b[j : end + 1])
            for j in range(n)
            for end in range(j, n)
        }
        v = [max(min(ratio[j, end] for j in range(i + 1)) for end in range(i, n)) for i in range(n)]
        return [1] + [int(v[i] != v[i - 1]) for i in range(1, n)]


@pytest.mark.parametrize("scale_a", [0.3, 3.0, 300.0, 3e5])
@pytest.mark.parametrize("scale_b", [0.3, 3.0, 300.0, 3e5])
def test_blocks_in_log_space(scale_a: float, scale_b: float) -> None:
    for n in (1, 2, 3, 5, 8, 13):
        rows = [
            tuple((draw(n, seed=seed + shift) * scale).sort(descending=True).values for shift, scale in both)
            for seed in range(4)
            for both in [((0, scale_a), (100, scale_b))]
        ]
        expected = np.concatenate([by_definition(a, b) for a, b in rows])
        a, b = (torch.stack(x) for x in zip(*rows, strict=True))
        row = torch.arange(4)[:, None].expand(4, n)
        assert np.array_equal(block_starts(a, b, row).view(-1), expected)
        # The same rows one after another.
        flat = tuple(x.reshape(1, -1) for x in (a, b, row))
        assert np.array_equal(block_starts(*flat).view(-1), expected)
        # By the exact solver where there is room.
        for batch in ((a, b, row), flat):
            assert np.array_equal(_log_blocks.block_starts(*batch, None), expected)


def by_pooling(a: Tensor, b: Tensor) -> list[int]:
    """Pools neighbours while they rise, sums with 60 digits."""
    with mpmath.workdps(60):
        blocks: list[tuple[int, mpmath.mpf, mpmath.mpf]] = []
        for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            block = (i, mpmath.exp(mpmath.mpf(x)), mpmath.exp(mpmath.mpf(y)))
            while blocks and blocks[-1][1] * block[2] <= block[1] * blocks[-1][2]:
                start, sum_a, sum_b = blocks.pop()
                block = (start, sum_a + block[1], sum_b + block[2])
            blocks.append(block)
    starts = {start for start, _, _ in blocks}
    return [int(i in starts) for i in range(len(a))]


@pytest.mark.parametrize("n", [100, 1_000, 4_097])
@pytest.mark.parametrize(("scale_a", "scale_b"), [(3.0, 1.0), (1.0, 1.3), (100.0, 100.0), (1e4, 3e4)])
def test_blocks_of_long_rows(n: int, scale_a: float, scale_b: float) -> None:
    a = (draw(n) * scale_a).sort(descending=True).values
    b = (draw(n, seed=1) * scale_b).sort(descending=True).values
    expected = by_pooling(a, b)
    batch = (a[None], b[None], torch.zeros(1, n, dtype=torch.int64))
    assert np.array_equal(block_starts(*batch)[0], expected)
    assert np.array_equal(_log_blocks.block_starts(*batch, None), expected)
    # Cut into two rows.
    parts = [by_pooling(x, y) for x, y in zip(a.split(n // 3), b.split(n // 3), strict=True)]
    row = torch.arange(n)[None] // (n // 3)
    assert np.array_equal(block_starts(a[None], b[None], row)[0], np.concatenate(parts))


@pytest.mark.parametrize("scale", [0.3, 3.0, 300.0, 3e5])
def test_blocks_of_ranks_always_have_room(scale: float) -> None:
    for n in (1, 2, 5, 13):
        a = torch.stack([(draw(n, seed=seed) * scale).sort(descending=True).values for seed in range(4)])
        ranks = torch.arange(n, 0, -1).double().expand(4, n)
        b = log(ranks)
        row = torch.arange(4)[:, None].expand(4, n)
        found = _log_blocks.block_starts(a, b, row, ranks.reshape(-1))
        expected = np.concatenate([by_definition(x, y) for x, y in zip(a, b, strict=True)])
        assert np.array_equal(found, expected)
        assert torch.equal(block_starts(a, b, row).view(-1), found)


def test_a_part_of_ranks_spans_little() -> None:
    """2 log n, for any values."""
    n = 4_096
    ranks = torch.arange(n, 0, -1).double()
    rows = [steepness * log(ranks) for steepness in (0.2, 0.9, 1.0, 1.1, 50.0)]
    rows += [
        (draw(n, seed=seed) * scale).sort(descending=True).values for seed, scale in enumerate((1, 30, 1e3))
    ]
    for a in rows:
        part = _log_blocks.parts((a - log(ranks))[None], torch.zeros(1, n, dtype=torch.int64)).view(-1)
        assert float((a.take(_log_blocks.firsts(part)) - a).max()) <= 2 * math.log(n)


def test_a_row_without_room_leaves_the_others_to_the_exact_solver() -> None:
    """The same blocks in any batch: whether exponentials have room is asked part by part."""
    n = 40
    calm = [((draw(n, seed=seed) * 2).round().sort(descending=True).values) for seed in range(6)]
    wild = [(draw(n, seed=seed) * 1e5).sort(descending=True).values for seed in (7, 8)]
    a, b = torch.stack([*calm[:3], wild[0]]), torch.stack([*calm[3:], wild[1]])
    row = torch.arange(4)[:, None].expand(4, n)
    together = _log_blocks.block_starts(a, b, row, None).view(4, n)
    for i in range(4):
        alone = _log_blocks.block_starts(a[i : i + 1], b[i : i + 1], row[:1], None)
        assert torch.equal(together[i], alone)
    assert np.array_equal(together[3], by_pooling(a[3], b[3]))
