"""Soft ranks and soft sorting: known values, exact projections, derivatives, rows."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from jax.test_util import check_grads
from jax_rows import DTYPES, draw, same

import isofold
from isofold.jax import soft_rank, soft_sort, soft_topk

VALUES = np.array([1, -2, 2, 3, 0.5, -1])
SOFT = [soft_rank, soft_sort]
ALL = [*SOFT, partial(soft_topk, k=2)]


def test_known_ranks() -> None:
    assert soft_rank(VALUES).tolist() == [3.875, 1, 4.875, 5.875, 3.375, 2]
    assert soft_rank(VALUES, direction="DESCENDING").tolist() == [3.125, 6, 2.125, 1.125, 3.625, 5]


def exact_projection(s: list[Fraction], w: list[Fraction]) -> list[Fraction]:
    """Of s, falling, onto the permutahedron of w, falling, by pooling s - w."""
    blocks: list[list[Fraction]] = []
    for z in (a - b for a, b in zip(s, w, strict=True)):
        blocks.append([z, Fraction(1)])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] <= blocks[-1][0] * blocks[-2][1]:
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    means = [total / count for total, count in blocks for _ in range(int(count))]
    return [a - m for a, m in zip(s, means, strict=True)]


def exact_soft(values: Any, strength: float, descending: bool, sort: bool) -> list[Fraction]:
    sign = -1 if descending else 1
    n = len(values)
    ranks = [Fraction(n - i) for i in range(n)]
    exact = [Fraction(float(v)) for v in values]
    if sort:
        s = sorted((-sign * v for v in exact), reverse=True)
        return [-sign * v for v in exact_projection([r / Fraction(strength) for r in ranks], s)]
    s = [sign * v / Fraction(strength) for v in exact]
    order = sorted(range(n), key=lambda i: -s[i])
    found = [Fraction(0)] * n
    for i, value in zip(order, exact_projection([s[i] for i in order], ranks), strict=True):
        found[i] = value
    return found


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("strength", [0.25, 1.0, 8.0])
def test_is_the_exact_projection(sort: bool, descending: bool, strength: float) -> None:
    values = np.round(draw(6, 25) * 4) / 4  # with ties
    values[0] *= 1e6
    direction = "DESCENDING" if descending else "ASCENDING"
    soft = soft_sort if sort else soft_rank
    found = np.asarray(soft(values, "l2", strength, direction))
    halves = np.asarray(soft(values.astype("float32"), "l2", strength, direction))
    for row, half, given in zip(found, halves, values, strict=True):
        right = exact_soft(given, strength, descending, sort)
        largest = max(abs(float(v)) for v in [*right, *given / strength])
        np.testing.assert_allclose(row, [float(v) for v in right], rtol=0, atol=4 * np.spacing(largest))
        if np.abs(given).max() < 100:  # nothing near a midpoint
            assert half.tolist() == [oracle.round_fraction(v, "float32") for v in right]


@pytest.mark.parametrize("soft", SOFT)
def test_blocks_and_means_are_the_library_s(soft: Any) -> None:
    values, strength = draw(200), 0.7
    w = np.arange(200.0, 0, -1)
    order = np.argsort(-values, kind="stable")
    s = values[order] / strength
    if soft is soft_sort:
        s, w = w / strength, np.sort(-values)[::-1]
    fit = isofold.isotonic_regression(s - w, increasing=False)
    means = [isofold.isotonic_gradient(fit, x)[0] for x in (s, w)]
    projected = (s - means[0]) + means[1]
    if soft is soft_sort:
        expected = -projected
    else:
        expected = np.empty(200)
        expected[order] = projected
    assert same(soft(values, regularization_strength=strength), expected)


def test_hard_ranks_and_order_in_the_limit() -> None:
    values = np.random.default_rng(1).permutation(np.linspace(0, 4e-4, 2_000))
    hard = values.argsort().argsort() + 1.0
    np.testing.assert_allclose(soft_rank(values, regularization_strength=1e-7), hard, rtol=0, atol=1e-8)
    assert same(soft_rank(values.astype("float32"), regularization_strength=1e-7), hard.astype("float32"))
    np.testing.assert_allclose(
        soft_sort(draw(50), regularization_strength=1e-9), np.sort(draw(50)), rtol=1e-7
    )
    np.testing.assert_allclose(
        soft_sort(draw(50), regularization_strength=1e-9, direction="DESCENDING"),
        np.sort(draw(50))[::-1],
        rtol=1e-7,
    )


@pytest.mark.parametrize("soft", SOFT)
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_derivatives_and_rows(soft: Any, direction: str) -> None:
    call = partial(soft, regularization_strength=0.3, direction=direction)
    values = draw(3, 6)
    check_grads(call, (values,), order=2, modes=("fwd", "rev"))
    check_grads(lambda v: call(v) ** 2, (values,), order=2, modes=("fwd", "rev"))
    whole = np.asarray(call(values))
    assert same(jax.jit(call)(values), whole)
    assert same(jax.vmap(call)(values), whole)
    assert same(call(values.T, axis=0), np.ascontiguousarray(whole.T))
    flat = values.reshape(-1)
    offsets = np.array([0, 0, 6, 7, 18])
    ragged = np.asarray(call(flat, offsets=offsets))
    assert same(jax.jit(lambda v, o: call(v, offsets=o))(flat, offsets), ragged)
    assert same(ragged[:6], np.asarray(call(flat[:6])))
    assert same(ragged[6:7], np.asarray(call(flat[6:7])))
    assert same(ragged[7:], np.asarray(call(flat[7:])))
    check_grads(lambda v: call(v, offsets=offsets), (flat,), order=2, modes=("fwd", "rev"))
    both = np.array([[0, 6, 18], [0, 18, 18]])
    found = jax.vmap(lambda o: call(flat, offsets=o))(both)
    for row, cut in zip(found, both, strict=True):
        assert same(row, np.asarray(call(flat, offsets=cut)))


def test_hessian() -> None:
    hessian = jax.hessian(lambda x: soft_rank(x)[0] ** 2 / 2)(jnp.array([0, 0.1]))
    assert hessian.tolist() == [[0.25, -0.25], [-0.25, 0.25]]


@pytest.mark.parametrize("soft", ALL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounded_once_from_float64(soft: Any, dtype: str) -> None:
    values = draw(4, 300, dtype=dtype)
    exact = np.asarray(soft(values.astype("float64")))
    expected = np.array([oracle.round_float(float(v), dtype) for v in exact.ravel()]).reshape(exact.shape)
    assert same(soft(values), expected.astype(dtype))


@pytest.mark.parametrize("soft", ALL)
def test_without_64_bit_types(soft: Any, without_x64: None) -> None:
    values, g = draw(4, 90, dtype="float32"), draw(4, 90, seed=1, dtype="float32")
    offsets = np.array([0, 50, 50, 360])

    def results() -> list[Any]:
        found, pull = jax.vjp(soft, values)
        ragged = soft(values.reshape(-1), offsets=jnp.asarray(offsets))
        return [np.asarray(array) for array in (found, pull(jnp.asarray(g))[0], ragged)]

    narrow = results()
    jax.config.update("jax_enable_x64", True)
    for found, expected in zip(narrow, results(), strict=True):
        assert same(found, expected)


def test_ties_share_their_rank() -> None:
    assert soft_rank(np.full(3, 2.0)).tolist() == [2, 2, 2]
    assert soft_rank(np.array([3, 1, 2])).tolist() == [3, 1, 2]


def test_derivatives_where_ranks_overflow() -> None:
    """Ranks past 65,504 are infinite in float16; their derivatives are finite."""
    values, g = draw(70_000, dtype="float16"), (draw(70_000, seed=1) / 64).astype("float16")
    call = partial(soft_rank, regularization_strength=1e-5)
    found, pull = jax.vjp(call, values)
    _, pull_wide = jax.vjp(call, values.astype("float64"))
    assert np.isinf(found).any()
    expected = np.asarray(pull_wide(jnp.asarray(g, "float64"))[0]).astype("float16")
    assert same(pull(jnp.asarray(g))[0], expected)
    assert expected.any()


# ---- The top k ----


def exact_top_k(values: Any, k: int, strength: float) -> list[Fraction]:
    s = [Fraction(float(v)) / Fraction(strength) for v in values]
    order = sorted(range(len(s)), key=lambda i: -s[i])
    ones = [Fraction(int(place < k)) for place in range(len(s))]
    found = [Fraction(0)] * len(s)
    for i, value in zip(order, exact_projection([s[i] for i in order], ones), strict=True):
        found[i] = value
    return found


def test_known_top_k() -> None:
    values, mask = VALUES.astype("float32"), [0.25, 0, 0.75, 1, 0, 0]
    assert soft_topk(values, 2, regularization_strength=2).tolist() == mask
    assert soft_topk(-values, 2, regularization_strength=2, direction="ASCENDING").tolist() == mask
    assert soft_topk(VALUES, 0).tolist() == [0] * 6
    assert soft_topk(VALUES, 6).tolist() == [1] * 6


@pytest.mark.parametrize("strength", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("k", [1, 3, 24])
def test_top_k_is_the_exact_projection(strength: float, k: int) -> None:
    values = np.round(draw(6, 25) * 4) / 4  # with ties
    found = np.asarray(soft_topk(values, k, regularization_strength=strength))
    singles = np.asarray(soft_topk(values.astype("float32"), k, regularization_strength=strength))
    assert not np.signbit(found).any()
    for row, single, given in zip(found, singles, values, strict=True):
        right = exact_top_k(given, k, strength)
        assert all(0 <= v <= 1 for v in right)
        largest = np.abs(given / strength).max() + 1
        np.testing.assert_allclose(row, [float(v) for v in right], rtol=0, atol=4 * np.spacing(largest))
        np.testing.assert_allclose(single, row.astype("float32"), rtol=2e-7, atol=0)


def test_top_k_of_rows_and_its_derivatives() -> None:
    call = partial(soft_topk, k=2, regularization_strength=0.7)
    values = draw(3, 6)
    check_grads(call, (values,), order=2, modes=("fwd", "rev"))
    whole = np.asarray(call(values))
    assert same(jax.jit(call)(values), whole)
    assert same(jax.vmap(call)(values), whole)
    assert same(call(values.T, axis=0), np.ascontiguousarray(whole.T))
    flat, offsets = values.reshape(-1), np.array([0, 0, 6, 7, 18])
    ragged = np.asarray(call(flat, offsets=offsets))
    assert same(ragged[:6], whole[0])
    assert ragged[6] == 1  # a row shorter than k
    assert same(ragged[7:], np.asarray(call(flat[7:])))
    broken = values.copy()
    broken[1, 2] = np.nan
    found = np.asarray(call(broken))
    assert np.isnan(found[1]).all()
    assert same(found[[0, 2]], whole[[0, 2]])


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (-1, ValueError, "k must be at least 0, but is -1"),
        (7, ValueError, "k must be from 0 to the length of the rows, 6, but is 7"),
        (1.5, TypeError, "k must be an integer, not 1.5"),
        (True, TypeError, "k must be an integer, not True"),
    ],
)
def test_what_k_may_be(k: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        soft_topk(VALUES, k)
    with pytest.raises(ValueError, match="regularization must be 'l2', not 'kl'"):
        soft_topk(VALUES, 2, "kl")
    with pytest.raises(TypeError, match="k must be an integer, known when jit traces"):
        jax.jit(lambda v, count: soft_topk(v, count))(VALUES, 2)
