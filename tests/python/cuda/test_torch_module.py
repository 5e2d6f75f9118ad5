"""isofold.torch on CUDA tensors: the host's bits, on the default stream and another, and from a graph."""

from __future__ import annotations

import importlib
from typing import Any

import device_libraries
import pytest

device_libraries.skip_without_gpu()
torch: Any = pytest.importorskip("torch")
isotonic_regression: Any = importlib.import_module("isofold.torch").isotonic_regression


def _rows(dtype: Any, *shape: int) -> tuple[Any, Any]:
    draw = torch.Generator().manual_seed(5)
    y = torch.randn(*shape, generator=draw, dtype=torch.float64) + torch.linspace(0, 1, shape[-1])
    return y.to(dtype), (torch.rand(*shape, generator=draw, dtype=torch.float64) + 0.5).to(dtype)


def _with_gradients(y: Any, w: Any, **options: Any) -> tuple[Any, Any, Any]:
    y, w = y.detach().requires_grad_(), w.detach().requires_grad_()
    fit = isotonic_regression(y, w, **options)
    incoming = (torch.arange(fit.numel(), device=fit.device) % 7 - 3).to(fit.dtype).view_as(fit)
    return (fit.detach(), *torch.autograd.grad(fit, [y, w], incoming))


@pytest.mark.parametrize("stream", ["default", "another"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bits_of_fit_and_gradients(dtype: Any, stream: str) -> None:
    y, w = _rows(dtype, 3, 20_001)
    expected = _with_gradients(y, w)
    used = torch.cuda.Stream() if stream == "another" else torch.cuda.default_stream()
    on_device = y.cuda(), w.cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(used):
        found = _with_gradients(*on_device)
    used.synchronize()
    for mine, right in zip(found, expected, strict=True):
        assert torch.equal(mine.cpu(), right)


def test_ragged_rows() -> None:
    y, w = _rows(torch.float32, 50_000)
    offsets = torch.tensor([0, 0, 1, 17, 9_000, 50_000])
    found = _with_gradients(y.cuda(), w.cuda(), offsets=offsets.cuda())
    for mine, right in zip(found, _with_gradients(y, w, offsets=offsets), strict=True):
        assert torch.equal(mine.cpu(), right)


def test_a_captured_fit_is_replayed_on_new_values() -> None:
    y, _ = _rows(torch.float32, 1, 30_000)
    held = y.cuda()
    isotonic_regression(held)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        fit = isotonic_regression(held)
    for new in (y, -y):
        held.copy_(new)
        graph.replay()
        assert torch.equal(fit.cpu(), isotonic_regression(new))
