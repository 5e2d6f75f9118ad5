"""isofold.jax on a GPU: the host's bits, on XLA's streams, in its command buffers, on every device."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import Any

import device_libraries
import numpy as np
import pytest

import isofold

device_libraries.skip_without_gpu()

jax: Any = pytest.importorskip("jax")
front: Any = pytest.importorskip("isofold.jax")

jax.config.update("jax_enable_x64", True)
GPU = jax.devices("gpu")[0]
HOST = jax.devices("cpu")[0]


def _draw(*shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _positive(*shape: int, seed: int = 1, dtype: str = "float64") -> Any:
    return (np.abs(_draw(*shape, seed=seed)) + 0.5).astype(dtype)


def _same(found: Any, expected: Any) -> bool:
    host, right = np.asarray(found), np.asarray(expected)
    return host.dtype == right.dtype and host.shape == right.shape and host.tobytes() == right.tobytes()


def _on_both(function: Any, *arrays: Any) -> None:
    """Runs a function, compiled, on both devices: every result has the same bits, NaNs included."""
    found = []
    for device in (GPU, HOST):
        placed = [jax.device_put(array, device) for array in arrays]
        found.append(jax.tree.leaves(jax.jit(function)(*placed)))
    for on_gpu, on_host in zip(*found, strict=True):
        assert on_gpu.devices() == {GPU}
        assert _same(on_gpu, on_host)


def _with_gradients(function: Any, *arrays: Any) -> Any:
    """A function whose results are the value of another and its gradients in the first arrays."""

    def both(g: Any, *rest: Any) -> Any:
        found, pull = jax.vjp(lambda *a: function(*a, *rest[len(arrays) :]), *rest[: len(arrays)])
        return found, pull(g)

    return both


@pytest.mark.parametrize("shape", [(1, 300_001), (7, 4_000), (3_000, 40), (100_000, 3), (2, 5, 30)])
@pytest.mark.parametrize("weight_dtype", [None, "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits(dtype: str, weight_dtype: str | None, shape: tuple[int, ...]) -> None:
    y = np.round(_draw(*shape, dtype=dtype), 1)
    g = _draw(*shape, seed=2, dtype=dtype)
    arrays = [y] if weight_dtype is None else [y, _positive(*shape, dtype=weight_dtype)]
    fit = partial(front.isotonic_regression, increasing=weight_dtype is None, y_min=-0.7, y_max=1.0)
    _on_both(_with_gradients(fit, *arrays), g, *arrays)
    _on_both(partial(front.blocks, increasing=weight_dtype is None), *arrays)
    expected = isofold.isotonic_regression(
        y, weights=None if weight_dtype is None else arrays[1], increasing=weight_dtype is None
    )
    found = front.isotonic_regression(
        *(jax.device_put(array, GPU) for array in arrays), increasing=weight_dtype is None
    )
    assert _same(found, expected.x)


@pytest.mark.parametrize("offset_dtype", ["int32", "int64"])
def test_ragged_rows(offset_dtype: str) -> None:
    lengths = [0, 3, 1, 0, 500, 20_000, 2, 0]
    offsets = np.cumsum([0, *lengths]).astype(offset_dtype)
    y, w, g = (draw(int(offsets[-1])) for draw in (_draw, _positive, partial(_draw, seed=2)))

    def fit(y: Any, w: Any, offsets: Any) -> Any:
        return front.isotonic_regression(y, w, offsets=offsets)

    _on_both(_with_gradients(fit, y, w), g, y, w, offsets)
    closed = front.isotonic_regression(jax.device_put(y, GPU), offsets=offsets.tolist())
    assert _same(closed, isofold.isotonic_regression(y, offsets=offsets).x)
    bad = offsets.copy()
    bad[3] = -7
    _on_both(_with_gradients(fit, y, w), g, y, w, bad)
    assert np.isnan(front.isotonic_regression(jax.device_put(y, GPU), offsets=jax.device_put(bad, GPU))).all()
    cuts = np.stack([offsets, bad, np.sort(offsets // 2 * 2)])
    _on_both(jax.vmap(fit, (None, None, 0)), y, w, cuts)


def test_refused_rows() -> None:
    y, w = _draw(6, 5_000), _positive(6, 5_000)
    y[1, 17], y[2, 4_999], w[4, 0], w[5, 3] = np.nan, np.inf, 0, -1
    g = _draw(6, 5_000, seed=2)
    _on_both(_with_gradients(front.isotonic_regression, y, w), g, y, w)
    _on_both(_with_gradients(front.isotonic_regression, y), g, y)
    _on_both(_with_gradients(front.soft_rank, y), g, y)
    with pytest.raises(ValueError, match="y is not finite: row 1, position 17 is nan"):
        front.isotonic_regression(jax.device_put(y, GPU), validate=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("name", ["soft_rank", "soft_sort"])
def test_soft_operators(name: str, direction: str, dtype: str) -> None:
    call = partial(getattr(front, name), regularization_strength=0.3, direction=direction)
    y = np.round(_draw(20, 700), 2).astype(dtype)
    g = _draw(20, 700, seed=2, dtype=dtype)
    _on_both(_with_gradients(call, y), g, y)
    _on_both(jax.vmap(call), y)
    offsets = np.array([0, 0, 5_000, 5_001, 14_000])
    _on_both(
        _with_gradients(lambda y, o: call(y, offsets=o), y.reshape(-1)), g.reshape(-1), y.reshape(-1), offsets
    )


def test_derivatives() -> None:
    from jax.test_util import check_grads

    y, w = (jax.device_put(array, GPU) for array in (_draw(3, 7), _positive(3, 7)))
    for y_max in (None, 0.5):
        fit = partial(front.isotonic_regression, y_max=y_max)
        check_grads(fit, (y,), order=2, modes=("fwd", "rev"))
        check_grads(fit, (y, w), order=2, modes=("fwd", "rev"))
    for soft in (front.soft_rank, front.soft_sort):
        check_grads(soft, (y,), order=2, modes=("fwd", "rev"))


def test_without_64_bit_types() -> None:
    y, g = _draw(5, 3_000, dtype="float32"), _draw(5, 3_000, seed=2, dtype="float32")
    w = _positive(5, 3_000, dtype="float32")
    jax.config.update("jax_enable_x64", False)
    try:
        _on_both(_with_gradients(front.isotonic_regression, y, w), g, y, w)
        _on_both(_with_gradients(front.soft_rank, y), g, y)
        _on_both(lambda y, o: front.isotonic_regression(y, offsets=o), y[0], np.array([0, 1, 1, 3_000]))
    finally:
        jax.config.update("jax_enable_x64", True)


def test_half_precision_fits_say_what_is_taken() -> None:
    y = jax.device_put(_draw(9, dtype="float16"), GPU)
    with pytest.raises(RuntimeError, match="values: the CUDA executor takes float32 and float64"):
        front.isotonic_regression(y)


def test_calls_follow_what_was_enqueued_before() -> None:
    y = _draw(100_000, dtype="float32")
    expected = isofold.isotonic_regression(y).x
    matrix = jax.device_put(np.ones((4_096, 4_096), "float32"), GPU)

    @jax.jit
    def slowly(values: Any, other: Any) -> Any:
        for _ in range(8):
            other = other @ other * 1e-4
        return front.isotonic_regression(values + 0 * other[0, 0])

    given = jax.device_put(y, GPU)
    for _ in range(20):
        found = slowly(given, matrix)
        following = jax.device_put(np.full(y.size, 7, "float32"), GPU)
        assert _same(found, expected)
        assert float(following.sum()) == 7 * y.size


def test_command_buffers() -> None:
    """XLA records a program's kernels as a CUDA graph, here from one kernel on, and replays it with other
    values: each round's answer is the host's."""
    code = """
import jax, numpy as np
import isofold
from isofold.jax import isotonic_regression
jax.config.update("jax_enable_x64", True)

@jax.jit
def step(y, w, g):
    fit, pull = jax.vjp(lambda y, w: isotonic_regression(y, w, y_max=1.0), y + 0.0, w * 2)
    other = isotonic_regression(-fit, increasing=False)
    return fit, other, pull(g)

for seed in range(8):
    random = np.random.default_rng(seed)
    y, g = random.standard_normal((2, 5, 60_000))
    w = random.uniform(0.5, 1, y.shape)
    fit, other, (of_y, of_w) = step(y, w, g)
    expected = isofold.isotonic_regression(y, weights=w * 2, y_max=1.0)
    right = isofold.isotonic_gradient(expected, g)
    assert np.array_equal(fit, expected.x), seed
    assert np.array_equal(other, -expected.x), seed
    assert np.array_equal(of_y, right[0]), seed
    assert np.array_equal(of_w, right[1]), seed
print("right")
"""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_graph_min_graph_size=1"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags},
    )
    assert done.stdout.strip() == "right", done.stderr[-3_000:]


def test_every_device() -> None:
    y = _draw(4, 30_000)
    expected = isofold.isotonic_regression(y).x
    for device in jax.devices("gpu"):
        found = jax.jit(front.isotonic_regression)(jax.device_put(y, device))
        assert found.devices() == {device}
        assert _same(found, expected)


def test_memory_does_not_grow() -> None:
    y = jax.device_put(_draw(300_000), GPU)
    call = jax.jit(jax.grad(lambda y: front.isotonic_regression(y, y * y + 1).sum()))
    call(y).block_until_ready()
    before = GPU.memory_stats()["bytes_in_use"]
    for _ in range(1_000):
        call(y)
    call(y).block_until_ready()
    assert GPU.memory_stats()["bytes_in_use"] - before < 10 * y.nbytes


def test_long_rows() -> None:
    """Beyond what float32 counts to."""
    y = np.full(20_000_000, 0.1, "float32")
    assert _same(front.isotonic_regression(jax.device_put(y, GPU)), y)
    y = _draw(20_000_000, dtype="float32")
    assert _same(front.isotonic_regression(jax.device_put(y, GPU)), isofold.isotonic_regression(y).x)
