"""Calls are in the order of the library's stream, wait for nothing, and can be captured in a graph."""

from __future__ import annotations

from typing import Any

import device_libraries
import numpy as np
import pytest
from device_libraries import Library

import isofold

device_libraries.skip_without_gpu()

torch: Any = pytest.importorskip("torch")


def _row(seed: int, size: int = 300_000) -> Any:
    return np.random.default_rng(seed).standard_normal(size).astype("float32")


def _busy() -> None:
    torch.cuda._sleep(1_000_000_000)  # cycles: half a second


def test_torch_streams_are_kept_and_not_waited_for() -> None:
    y = _row(1)
    source = torch.from_numpy(y).pin_memory()
    expected = isofold.isotonic_regression(y, weights=np.ones_like(y))
    stream = torch.cuda.Stream()
    for first in (True, False):  # the first time, kernels are loaded
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            given = torch.full((y.size,), float("nan"), device="cuda")
            _busy()
            given.copy_(source, non_blocking=True)
            result = isofold.isotonic_regression(given, weights=torch.ones_like(given))
            mask = result.block_mask
            doubled = result.x * 2
            assert first or not stream.query()
        stream.synchronize()
        assert doubled.cpu().numpy().tobytes() == (expected.x * 2).tobytes()
        assert (mask.cpu().numpy() == expected.block_mask).all()


def test_torch_graphs_replay_with_other_values() -> None:
    rows = [_row(seed).reshape(3, -1) for seed in range(3)]
    offsets = torch.tensor([0, 7, 90_000, 300_000], device="cuda")
    given = torch.from_numpy(rows[0]).cuda()
    grad = torch.linspace(-1, 1, given.numel(), device="cuda").reshape(given.shape)

    def work() -> tuple[Any, Any, Any]:
        result = isofold.isotonic_regression(given, weights=given * given + 1)
        ragged = isofold.isotonic_regression(given.reshape(-1), offsets=offsets)
        return result.x, ragged.x, isofold.isotonic_gradient(result, grad)[0]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = work()
    for row in rows[1:]:
        given.copy_(torch.from_numpy(row))
        graph.replay()
        found = [array.clone() for array in captured]
        for array, expected in zip(found, work(), strict=True):
            assert torch.equal(array, expected)
        assert found[0].cpu().numpy().tobytes() == (
            isofold.isotonic_regression(row, weights=row * row + 1).x.tobytes()
        )


def test_torch_gradients_are_not_lost_in_silence() -> None:
    y = torch.tensor([3.0, 1.0, 2.0], device="cuda", requires_grad=True)
    with pytest.raises(TypeError, match="outside of autograd"):
        isofold.isotonic_regression(y)
    with torch.no_grad():
        assert isofold.isotonic_regression(y).x.tolist() == [2, 2, 2]
    result = isofold.isotonic_regression(y.detach())
    assert not result.x.requires_grad
    with pytest.raises(TypeError, match="outside of autograd"):
        isofold.isotonic_gradient(result, y)


def test_cupy_streams_are_kept_and_not_waited_for() -> None:
    cupy: Any = pytest.importorskip("cupy")
    y = _row(2)
    expected = isofold.isotonic_regression(y).x * 2
    source = cupy.asarray(y)
    sleeper = torch.cuda.Stream()
    event = torch.cuda.Event()
    for first in (True, False):  # the first time, kernels are compiled and loaded
        torch.cuda.synchronize()
        with torch.cuda.stream(sleeper):
            _busy()
            event.record()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            given = cupy.full(y.size, np.nan, dtype="float32")
            torch.cuda.ExternalStream(stream.ptr).wait_event(event)
            given[...] = source
            found = isofold.isotonic_regression(given).x * 2
            assert first or not stream.done
            stream.synchronize()
            assert found.get().tobytes() == expected.tobytes()


def test_jax_results_are_ordered_after_and_before_its_own_work() -> None:
    library = Library("jax")
    jax = library.module
    y = _row(3, 100_000)
    expected = isofold.isotonic_regression(y).x
    matrix = jax.numpy.ones((4_096, 4_096), "float32")

    @jax.jit
    def slowly(values: Any, other: Any) -> Any:
        for _ in range(8):
            other = other @ other * 1e-4
        return values + 0 * other[0, 0]

    given = library.to(y)
    for _ in range(30):
        # The input is made on JAX's stream and dropped at once; its memory is used again.
        x = isofold.isotonic_regression(slowly(given, matrix)).x
        following = jax.numpy.full(y.size, 7.0, "float32")
        assert library.same(x + 0, expected)
        assert float(following.sum()) == 7 * y.size
