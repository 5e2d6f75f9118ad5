"""Soft ranks and soft sorting in the Kullback-Leibler divergence: the definition, derivatives, rows."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.test_util import check_grads
from jax_rows import draw, same

from isofold.jax import soft_rank, soft_sort

sys.path.append(str(Path(__file__).parents[1] / "torch"))

import exact_projection

SOFT = {"rank": soft_rank, "sort": soft_sort}
SIGNS = {"ASCENDING": 1.0, "DESCENDING": -1.0}
EVERY_KIND = pytest.mark.parametrize("kind", SOFT)
EVERY_DIRECTION = pytest.mark.parametrize("direction", SIGNS)


def close(found: Any, expected: list[Any], ulps: float = 4) -> None:
    """Within so many units in the last place of what is largest."""
    right = np.array([float(v) for v in expected])
    limit = ulps * np.spacing(np.abs(right).max())
    np.testing.assert_allclose(np.asarray(found), right, rtol=0, atol=limit)


@EVERY_KIND
@EVERY_DIRECTION
@pytest.mark.parametrize(("strength", "scale"), [(1.0, 1.0), (0.1, 3.0), (1.0, 900.0), (1e-3, 1.0)])
def test_the_definition(kind: str, direction: str, strength: float, scale: float) -> None:
    x, g = draw(12) * scale, draw(12, seed=1)
    found, pull = jax.vjp(lambda v: SOFT[kind](v, "kl", strength, direction), x)
    sign = SIGNS[direction] if kind == "rank" else -SIGNS[direction]
    with mpmath.workdps(80):
        expected, gradient = exact_projection.kl(x.tolist(), kind, strength, sign, g.tolist())
        # One division of the values by the strength is rounded, of what may be large.
        slack = 4 + 2 * np.abs(x).max() / strength if kind == "rank" else 4 + 12 / strength
        close(found, expected, slack)
        close(pull(jnp.asarray(g))[0], gradient, slack)


@EVERY_KIND
@EVERY_DIRECTION
def test_derivatives_and_rows(kind: str, direction: str) -> None:
    call = partial(SOFT[kind], regularization="kl", regularization_strength=0.3, direction=direction)
    values = draw(3, 6)
    check_grads(call, (values,), order=3, modes=("fwd", "rev"))
    whole = np.asarray(call(values))
    assert same(jax.jit(call)(values), whole)
    assert same(jax.vmap(call)(values), whole)
    assert same(call(values.T, axis=0), np.ascontiguousarray(whole.T))
    flat, offsets = values.reshape(-1), np.array([0, 0, 6, 7, 18])
    ragged = np.asarray(call(flat, offsets=offsets))
    assert same(ragged[:6], whole[0])
    assert same(ragged[6:7], np.asarray(call(flat[6:7])))
    assert same(ragged[7:], np.asarray(call(flat[7:])))
    check_grads(lambda v: call(v, offsets=offsets), (flat,), order=2, modes=("fwd", "rev"))
    broken = values.copy()
    broken[1, 2] = np.nan
    found, pull = jax.vjp(call, broken)
    for array in (found, pull(jnp.ones((3, 6)))[0]):
        assert np.isnan(array).all(1).tolist() == [False, True, False]
    assert same(np.asarray(found)[[0, 2]], whole[[0, 2]])
    wrong = jax.jit(lambda v, o: call(v, offsets=o))(flat, np.array([0, 7, 6, 18]))
    assert np.isnan(wrong).all()
    assert call(values[:, :0]).shape == (3, 0)


@EVERY_KIND
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_types_with_and_without_64_bits(kind: str, dtype: str, without_x64: None) -> None:
    values, g = draw(4, 90, dtype="float32").astype(dtype), draw(4, 90, seed=1).astype(dtype)

    def results() -> list[Any]:
        found, pull = jax.vjp(lambda v: SOFT[kind](v, "kl"), jnp.asarray(values))
        return [np.asarray(array) for array in (found, pull(jnp.asarray(g))[0])]

    narrow = results()
    curved = jax.grad(lambda v: jnp.sum(SOFT[kind](v, "kl") ** 2).astype("float32"))
    second = jax.jvp(curved, (jnp.asarray(values),), (jnp.asarray(g),))[1]
    assert np.isfinite(np.asarray(second, "float32")).all()
    jax.config.update("jax_enable_x64", True)
    for found, expected in zip(narrow, results(), strict=True):
        assert same(found, expected)
    wide = SOFT[kind](values.astype("float64"), "kl")
    assert same(narrow[0], np.asarray(wide.astype(dtype)))
