"""Segment reductions on a GPU: the CPU's bits, on the caller's stream, waiting for nothing, in graphs."""

from __future__ import annotations

import device_libraries
import pytest
import torch
from tensors import DTYPES, draw, leaves, same
from torch import Tensor
from torch.autograd import gradcheck

from isofold.torch import segment_dot, segment_dots, segment_norm, segment_sum

device_libraries.skip_without_gpu()

LENGTHS = [0, 1, 5, 0, 31, 33, 300, 4096, 5000, 3, 20000]
OFFSETS = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0).tolist()])
TOTAL = sum(LENGTHS)


def values(a: Tensor, b: Tensor, offsets: Tensor) -> list[Tensor]:
    return [
        segment_sum(a, offsets),
        segment_dot(a, b, offsets),
        segment_norm(a, offsets),
        *segment_dots([(a, a), (a, b)], offsets),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_bits_of_the_cpu(dtype: torch.dtype, start: int) -> None:
    a, b = (draw(TOTAL + start, seed=seed, dtype=dtype)[start:] for seed in (0, 1))
    a[7000:9000] = -a[5000:7000]
    b[7000:9000] = b[5000:7000]
    # Views that begin anywhere.
    x, y = (torch.cat([t.new_zeros(start), t]).cuda()[start:] for t in (a, b))
    offsets = OFFSETS.cuda()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = values(x, y, offsets)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for on_gpu, on_cpu in zip(found, values(a, b, OFFSETS), strict=True):
        assert same(on_gpu.cpu(), on_cpu)


@pytest.mark.parametrize("count", [70_000_000, 150_000_000])
def test_long_arrays_whose_warps_take_more(count: int) -> None:
    """4,096 and 8,192 elements each instead of 2,048 (cuda/dot_plan.cuh)."""
    a, b = draw(count, dtype=torch.float32), draw(count, seed=1, dtype=torch.float32)
    a[count // 2 :] *= 1e20
    b[count // 2 :] = 0
    cuts = torch.randint(0, count // 8192, (40,), generator=torch.Generator().manual_seed(3)) * 8192
    cuts = torch.cat([cuts, cuts + 2048, cuts // 3, torch.tensor([0, count])]).sort().values
    for offsets in (torch.tensor([0, count]), cuts, torch.arange(0, count + 1, 1000)):
        found = values(a.cuda(), b.cuda(), offsets.cuda())
        for on_gpu, on_cpu in zip(found, values(a, b, offsets), strict=True):
            assert same(on_gpu.cpu(), on_cpu)


def test_rectangles_and_mixed_types() -> None:
    a, b = draw(300, 50, dtype=torch.float32), draw(300, 50, seed=1)
    for dim in (0, 1):
        assert same(segment_dot(a.cuda(), b.cuda(), dim=dim).cpu(), segment_dot(a, b, dim=dim))
        assert same(segment_norm(a.cuda(), dim=dim).cpu(), segment_norm(a, dim=dim))


def test_gradients() -> None:
    offsets = torch.tensor([0, 0, 5, 12]).cuda()
    a, b = leaves(draw(12).cuda(), draw(12, seed=1).cuda())
    assert gradcheck(lambda x, y: segment_dot(x, y, offsets), (a, b), check_forward_ad=True)
    assert gradcheck(lambda x: segment_norm(x, offsets), (a,), check_forward_ad=True)


def test_bad_offsets_are_nan() -> None:
    a = torch.ones(10, device="cuda")
    for offsets in ([0, 5, 3, 10], [0, 5], [1, 10], [0, 10**12, 10]):
        assert segment_sum(a, torch.tensor(offsets).cuda()).isnan().all()


def test_captured_in_a_graph() -> None:
    a, b = draw(TOTAL, dtype=torch.float32).cuda(), draw(TOTAL, seed=1, dtype=torch.float32).cuda()
    offsets = OFFSETS.cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        values(a, b, offsets)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = values(a, b, offsets)
    for seed in (5, 6):
        a.copy_(draw(TOTAL, seed=seed, dtype=torch.float32))
        graph.replay()
        for on_gpu, on_cpu in zip(found, values(a.cpu(), b.cpu(), OFFSETS), strict=True):
            assert same(on_gpu.cpu(), on_cpu)
