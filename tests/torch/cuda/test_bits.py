"""On a GPU: the CPU's bits, on the caller's stream and device, waiting for nothing."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import device_libraries
import pytest
import torch
from tensors import DTYPES, draw, leaves, positive, same
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from isofold.torch import blocks, isotonic_regression, soft_rank, soft_sort, soft_topk

device_libraries.skip_without_gpu()

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "fit": isotonic_regression,
    "clipped fit": functools.partial(isotonic_regression, increasing=False, y_min=-0.3, y_max=0.4),
    "L2 rank": functools.partial(soft_rank, regularization_strength=0.5),
    "L2 sort": functools.partial(soft_sort, regularization_strength=0.5),
    "top k": functools.partial(soft_topk, k=3, regularization_strength=0.5),
    "KL rank": functools.partial(soft_rank, regularization="kl", regularization_strength=0.5),
    "KL sort": functools.partial(soft_sort, regularization="kl", regularization_strength=0.5),
}


@contextmanager
def _no_waiting() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def both(call: Callable[..., Tensor], *tensors: Tensor) -> list[list[Tensor]]:
    """(result, gradients) on the CPU and on CUDA."""
    found = []
    for device in ("cpu", "cuda"):
        inputs = [t.detach().to(device).requires_grad_(t.is_floating_point()) for t in tensors]
        result = call(*inputs)
        result.backward(draw(*result.shape, seed=5, dtype=result.dtype).to(device))
        found.append([t.cpu() for t in (result.detach(), *(t.grad for t in inputs if t.requires_grad))])
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 33), (1, 5_000), (300, 4), (2, 70_000)])
def test_the_cpus_bits(name: str, dtype: torch.dtype, shape: tuple[int, int]) -> None:
    for values in (draw(*shape, dtype=dtype), (3 * draw(*shape)).round().to(dtype)):
        for cpu, cuda in zip(*both(FUNCTIONS[name], values), strict=True):
            assert same(cpu, cuda)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weight_dtype", DTYPES)
def test_the_cpus_bits_weighted(dtype: torch.dtype, weight_dtype: torch.dtype) -> None:
    y, w = draw(9, 500, dtype=dtype), positive(9, 500).to(weight_dtype)
    for call in (
        isotonic_regression,
        lambda y, w: isotonic_regression(y.view(-1), w.view(-1), offsets=torch.tensor([0, 0, 7, 900, 4_500])),
    ):
        for cpu, cuda in zip(*both(call, y, w), strict=True):
            assert same(cpu, cuda)
    assert torch.equal(blocks(y.cuda(), w.cuda()).cpu(), blocks(y, w))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ragged_and_jagged_rows(name: str) -> None:
    offsets = torch.tensor([0, 3, 3, 10, 400])
    flat = draw(400)
    for cpu, cuda in zip(*both(lambda y: FUNCTIONS[name](y, offsets=offsets), flat), strict=True):
        assert same(cpu, cuda)
    nested = torch.nested.nested_tensor_from_jagged(flat.cuda(), offsets.cuda())
    assert torch.equal(FUNCTIONS[name](nested).values().cpu(), FUNCTIONS[name](flat, offsets=offsets))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_transforms(name: str) -> None:
    (y,) = leaves(draw(3, 6).cuda())
    assert gradcheck(FUNCTIONS[name], (y,), check_forward_ad=True)
    assert gradgradcheck(lambda v: FUNCTIONS[name](v) ** 2, (y,), check_fwd_over_rev=True)
    assert torch.equal(torch.func.vmap(FUNCTIONS[name])(y), FUNCTIONS[name](y))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_eager(name: str) -> None:
    torch.compiler.reset()
    y, other = leaves(draw(5, 9).cuda(), draw(5, 9).cuda())
    eager, compiled = FUNCTIONS[name](y), torch.compile(FUNCTIONS[name], fullgraph=True)(other)
    assert torch.equal(eager, compiled)
    (eager**2).sum().backward()
    (compiled**2).sum().backward()
    assert torch.equal(y.grad, other.grad)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_waits_and_graphs_capture(name: str) -> None:
    (y,) = leaves(draw(20, 300).cuda())
    g = torch.ones_like(y)

    def step() -> tuple[Tensor, Tensor]:
        found = FUNCTIONS[name](y)
        return found.detach(), torch.autograd.grad(found, y, g)[0]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = step()
        with _no_waiting():
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    fresh = draw(20, 300, seed=9).cuda()
    with torch.no_grad():
        y.copy_(fresh)
    graph.replay()
    for one, two in zip(captured, step(), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(captured[0], expected[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_second_device(name: str) -> None:
    """TS 48."""
    if torch.cuda.device_count() < 2:
        pytest.skip("needs a GPU: a second one")
    y = draw(4, 50)
    assert torch.equal(FUNCTIONS[name](y.to("cuda:1")).cpu(), FUNCTIONS[name](y))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_deterministic_algorithms(name: str) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        (y,) = leaves(draw(4, 50).cuda())
        (first,) = torch.autograd.grad((FUNCTIONS[name](y) ** 3).sum(), y, create_graph=True)
        first.sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_that_cannot_be_fitted_are_nan_alone(name: str) -> None:
    spoilt = draw(4, 20)
    spoilt[1, 3], spoilt[2, 19] = torch.nan, -torch.inf
    for cpu, cuda in zip(*both(FUNCTIONS[name], spoilt), strict=True):
        assert same(cpu, cuda)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("offsets", [[0, 5, 3, 12], [0, 20], [-4, 12], [3, 12], [0, 11]])
def test_faulty_offsets_are_nan(name: str, offsets: list[int]) -> None:
    (y,) = leaves(draw(12).cuda())
    found = FUNCTIONS[name](y, offsets=torch.tensor(offsets))
    found.sum().backward()
    torch.cuda.synchronize()
    assert found.isnan().all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_autocast_leaves_the_dtype_alone(name: str) -> None:
    y: Any = draw(4, 50, dtype=torch.float32).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        assert torch.equal(FUNCTIONS[name](y), FUNCTIONS[name](y.clone()))
        assert FUNCTIONS[name](y).dtype == torch.float32


@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_does_not_grow(name: str) -> None:
    (y,) = leaves(draw(4, 50).cuda())

    def memory_after(steps: int) -> int:
        for _ in range(steps):
            torch.autograd.grad(FUNCTIONS[name](y).sum(), y)
        torch.cuda.synchronize()
        # The engine's thread lets go of the last step's tensors after it has handed over its gradients.
        time.sleep(0.5)
        return torch.cuda.memory_allocated()

    assert memory_after(1_000) == memory_after(10)
