"""Fits, blocks and gradients against rational arithmetic and against the NumPy front, bit by bit."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from jax_rows import DTYPES, draw, positive, same
from random_rows import FAMILIES, to_finite

import isofold
from isofold.jax import blocks, isotonic_regression


def _hard_rows(dtype: str, seed: int) -> tuple[Any, Any]:
    """(a flat array of rows of every family, their offsets)"""
    rng = np.random.default_rng(seed)
    base = "float32" if dtype == "bfloat16" else dtype
    largest = float(jnp.finfo(dtype).max)
    rows = [
        np.clip(to_finite(family(rng, int(rng.integers(0, 40)), base), base), -largest, largest).astype(dtype)
        for family in FAMILIES.values()
        for _ in range(3)
    ]
    return np.concatenate(rows), np.cumsum([0, *map(len, rows)])


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("weight_dtype", [None, "float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_hard_rows(dtype: str, weight_dtype: str | None, increasing: bool) -> None:
    y, offsets = _hard_rows(dtype, 3)
    w = None if weight_dtype is None else positive(y.size, dtype=weight_dtype)
    g = draw(y.size, seed=5, dtype=dtype)
    fit = partial(isotonic_regression, increasing=increasing, offsets=offsets)
    starts = np.asarray(blocks(y, w, increasing=increasing, offsets=offsets))
    if w is None:
        found, pull = jax.vjp(fit, y)
    else:
        found, pull = jax.vjp(fit, y, w)
    grads = [np.asarray(array) for array in pull(jnp.asarray(g))]
    assert same(jax.jit(fit)(y, w), np.asarray(found))
    for begin, end in itertools.pairwise(offsets):
        row = slice(begin, end)
        weights = None if w is None else w[row]
        solution = oracle.solve(y[row], weights, increasing=increasing)
        assert same(np.asarray(found)[row], solution.fit(dtype))
        assert starts[row].tolist() == solution.flags().astype(bool).tolist()
        expected = oracle.gradient(solution, y[row], weights, g[row], dtype, weight_dtype or dtype)
        for gradient, right in zip(grads, expected, strict=False):
            assert same(gradient[row], right)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_bits_are_those_of_the_numpy_front(dtype: str, increasing: bool, axis: int) -> None:
    y, w, g = draw(5, 300, 3, dtype=dtype), positive(5, 300, 3), draw(5, 300, 3, seed=2, dtype=dtype)
    options: dict[str, Any] = {"increasing": increasing, "axis": axis}
    expected = isofold.isotonic_regression(y, weights=w, y_min=-0.4, y_max=0.3, **options)
    found, pull = jax.vjp(partial(isotonic_regression, y_min=-0.4, y_max=0.3, **options), y, w)
    assert same(found, expected.x)
    assert same(blocks(y, w, **options), expected.block_mask)
    for gradient, right in zip(pull(jnp.asarray(g)), isofold.isotonic_gradient(expected, g), strict=True):
        assert right is not None
        assert same(gradient, right)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_are_rounded_to_the_dtype(dtype: str) -> None:
    y = np.array([-3, -1, 0, 1, 3]).astype(dtype)
    # float64 to bfloat16 by way of float32 would round the second to 1.
    for low, high in [(-1 / 3, 1 / 3), (-2.0, 1 + 2**-8 + 2**-40), (-0.0, 0.0), (1e-46, 2.0)]:
        found = isotonic_regression(y, y_min=low, y_max=high)
        assert same(found, oracle.solve(y).fit(dtype, low, high) + np.zeros((), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_subnormals_are_kept(dtype: str) -> None:
    """XLA's own arithmetic on a CPU takes them for zero."""
    smallest = np.asarray(jnp.finfo(dtype).smallest_subnormal)
    y = (np.array([3, 1, 5, -1, 9, 4]).astype(dtype) * smallest).astype(dtype)  # fit: 2, 2, 2, 2, 6, 6
    found, pull = jax.vjp(jax.jit(isotonic_regression), y)
    assert same(found, oracle.solve(y).fit(dtype))
    assert np.asarray(found)[1] != 0
    expected, _ = oracle.gradient(oracle.solve(y), y, None, y, dtype, dtype)
    assert same(pull(jnp.asarray(y))[0], expected)
    bounded = isotonic_regression(np.zeros(2, dtype), y_min=float(smallest) * 3)
    assert same(bounded, (np.full(2, 3).astype(dtype) * smallest).astype(dtype))


def test_gradients_are_exact_under_transforms() -> None:
    y, w, g = draw(50, 40), positive(50, 40), draw(50, 40, seed=2)
    expected = isofold.isotonic_gradient(isofold.isotonic_regression(y, weights=w), g)

    def loss(y: Any, w: Any, g: Any) -> Any:
        return jnp.vdot(isotonic_regression(y, w), g)

    whole = jax.jit(jax.grad(loss, (0, 1)))(y, w, g)
    each = jax.jit(jax.vmap(jax.grad(loss, (0, 1))))(y, w, g)
    remat = jax.grad(jax.checkpoint(loss), (0, 1))(y, w, g)
    for found in (whole, each, remat):
        for gradient, right in zip(found, expected, strict=True):
            assert right is not None
            assert same(gradient, right)


def test_without_64_bit_types(without_x64: None) -> None:
    y, w, g = (
        draw(7, 90, dtype="float32"),
        positive(7, 90, dtype="float32"),
        draw(7, 90, seed=2, dtype="float32"),
    )
    fit = isofold.isotonic_regression(y, weights=w)
    found, pull = jax.vjp(jax.jit(isotonic_regression), y, w)
    assert same(found, fit.x)
    for gradient, right in zip(pull(jnp.asarray(g)), isofold.isotonic_gradient(fit, g), strict=True):
        assert right is not None
        assert same(gradient, right)
    offsets = np.array([0, 0, 10, 90, 630])
    ragged = isofold.isotonic_regression(y.reshape(-1), offsets=offsets)
    for given in (offsets, jnp.asarray(offsets)):
        assert same(isotonic_regression(y.reshape(-1), offsets=given), ragged.x)
    assert same(jax.jit(lambda y, o: isotonic_regression(y, offsets=o))(y.reshape(-1), offsets), ragged.x)
    half = draw(500, dtype="float16")
    assert same(isotonic_regression(half), isofold.isotonic_regression(half).x)
    assert isotonic_regression(np.array([3, 1])).dtype == np.float32


# Reports of other packages' users, with the right values.


def test_a_constant_row_stays_as_it_is() -> None:
    y = np.full(1_000_000, 0.1, np.float32)
    assert same(isotonic_regression(y), y)


def test_rows_longer_than_their_dtype_counts() -> None:
    y = draw(5_000, dtype="float16")
    assert same(isotonic_regression(y), isofold.isotonic_regression(y).x)


def test_blocks_do_not_come_from_a_tolerance() -> None:
    y = jnp.array([3e-10, 2e-10, 1e-10])
    _, pull = jax.vjp(partial(isotonic_regression, increasing=False), y)
    assert pull(jnp.array([1.0, 2.0, 3.0]))[0].tolist() == [1, 2, 3]


def test_gradient_of_a_pooled_pair() -> None:
    grad = jax.grad(lambda y: isotonic_regression(y, increasing=False)[1])(jnp.array([4, 0.7, 2]))
    assert grad.tolist() == [0, 0.5, 0.5]


def test_sums_beyond_the_dtype() -> None:
    assert isotonic_regression(np.array([1e308, 1e308, -1e308, -1e308])).tolist() == [0, 0, 0, 0]


def test_memory_does_not_grow() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    y = jnp.asarray(draw(50_000))
    call = jax.jit(jax.grad(lambda y: isotonic_regression(y, y * y + 1).sum()))
    for i in range(1_100):
        if i == 100:
            before = resident()
        call(y).block_until_ready()
    assert resident() - before < 1_000 * y.nbytes // 4
