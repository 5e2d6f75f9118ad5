"""Segment reductions of arrays of torch, CuPy and JAX in device memory: the host's bits."""

from __future__ import annotations

from typing import Any

import device_libraries
import numpy as np
import pytest
from device_libraries import Library

import isofold

device_libraries.skip_without_gpu()


@pytest.fixture(scope="module", params=["torch", "cupy", "jax"])
def library(request: pytest.FixtureRequest) -> Library:
    try:
        return Library(request.param)
    except ImportError:
        pytest.skip(f"{request.param} is not installed")


def _arrays(shape: Any, dtype: str) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    return random.standard_normal(shape).astype(dtype), random.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_the_host(library: Library, dtype: str) -> None:
    a, b = _arrays(60_001, dtype)
    a[30_000:50_000] = -a[10_000:30_000]
    b[30_000:50_000] = b[10_000:30_000]
    offsets = np.array([0, 0, 7, 40, 10_000, 50_000, 60_001])
    x, y, cuts = library.to(a), library.to(b), library.to(offsets)
    assert library.same(isofold.segment_sum(x, cuts), isofold.segment_sum(a, offsets))
    assert library.same(isofold.segment_dot(x, y, cuts), isofold.segment_dot(a, b, offsets))
    assert library.same(isofold.segment_norm(x, cuts), isofold.segment_norm(a, offsets))
    for found, expected in zip(
        isofold.segment_dots([(x, y), (x, x)], cuts),
        isofold.segment_dots([(a, b), (a, a)], offsets),
        strict=True,
    ):
        assert library.same(found, expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes(library: Library, axis: int) -> None:
    a, b = _arrays((7, 300), "float32")
    found = isofold.segment_dot(library.to(a), library.to(b), axis=axis)
    assert library.same(found, isofold.segment_dot(a, b, axis=axis))


def test_refused(library: Library) -> None:
    a, b = _arrays(5, "float32")
    with pytest.raises(TypeError, match="b is in host memory, but a is on CUDA device 0"):
        isofold.segment_dot(library.to(a), b)
    with pytest.raises(ValueError, match="b has shape"):
        isofold.segment_dot(library.to(a), library.to(b[:3]))
    falling = isofold.segment_sum(library.to(a), library.to(np.array([0, 3, 2, 5])))
    assert np.isnan(library.host(falling)).all()
