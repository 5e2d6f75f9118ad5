"""Derivatives of both modes and any order, vmap, jit, scan, sharding."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from jax_rows import DTYPES, draw, positive, same

from isofold.jax import blocks, isotonic_regression


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("bounds", [(None, None), (-0.4, 0.6)])
def test_derivatives(increasing: bool, bounds: tuple[float | None, float | None]) -> None:
    y, w = draw(3, 7), positive(3, 7)
    fit = partial(isotonic_regression, increasing=increasing, y_min=bounds[0], y_max=bounds[1])
    check_grads(fit, (y,), order=2, modes=("fwd", "rev"))
    check_grads(fit, (y, w), order=2, modes=("fwd", "rev"))
    check_grads(lambda y: fit(y, w), (y,), order=2, modes=("fwd", "rev"))
    check_grads(lambda w: fit(y, w), (w,), order=2, modes=("fwd", "rev"))


def test_derivatives_of_ragged_rows() -> None:
    y, w, offsets = draw(9), positive(9), np.array([0, 4, 4, 9])
    check_grads(lambda y, w: isotonic_regression(y, w, offsets=offsets), (y, w), order=2)
    traced = jax.jit(lambda y, w, o: isotonic_regression(y, w, offsets=o))
    check_grads(lambda y, w: traced(y, w, offsets), (y, w), order=2)


def test_forward_mode_without_weights_is_exact() -> None:
    y, dot = draw(30, dtype="float32"), draw(30, seed=1, dtype="float32")
    _, tangent = jax.jvp(isotonic_regression, (y,), (dot,))
    _, pull = jax.vjp(isotonic_regression, y)
    assert same(tangent, np.asarray(pull(jnp.asarray(dot))[0]))  # averaging over blocks is its own transpose


def test_hessians_agree_with_each_other() -> None:
    y, w = draw(6), positive(6)

    def loss(y: Any, w: Any) -> Any:
        return (isotonic_regression(y, w) ** 3).sum()

    arguments: dict[str, Any] = {"argnums": (0, 1)}
    found = [
        outer(inner(loss, **arguments), **arguments)(y, w)
        for outer in (jax.jacfwd, jax.jacrev)
        for inner in (jax.jacfwd, jax.jacrev)
    ]
    for other in found[1:]:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), found[0], other)
    assert np.any(found[0][1][1])


def test_transposes() -> None:
    y, w = draw(12), positive(12)
    _, push = jax.linearize(isotonic_regression, y, w)
    pull = jax.linear_transpose(push, y, w)
    back = jax.linear_transpose(lambda g: pull(g), y)
    np.testing.assert_allclose(back((jnp.asarray(w), jnp.asarray(y)))[0], push(w, y), rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_have_the_dtypes_of_what_they_are_of(dtype: str) -> None:
    y, w = draw(9, dtype=dtype), positive(9, dtype="float32")

    def loss(y: Any, w: Any) -> Any:
        return (isotonic_regression(y, w).astype("float64") ** 2).sum()

    of_y, of_w = jax.grad(loss, (0, 1))(y, w)
    assert (of_y.dtype, of_w.dtype) == (dtype, np.float32)
    assert jax.jvp(isotonic_regression, (y, w), (y, w))[1].dtype == dtype
    second = jax.grad(lambda w: loss(y, w) + jax.grad(loss, 1)(y, w).sum())(w)
    assert second.dtype == np.float32
    assert np.isfinite(second).all()


def test_vmap() -> None:
    y, w = draw(6, 9), positive(6, 9)
    whole = np.asarray(isotonic_regression(y, w))
    assert same(jax.vmap(isotonic_regression)(y, w), whole)
    assert same(
        jax.vmap(isotonic_regression, (1, None))(y.T, w[0]),
        np.asarray(isotonic_regression(y, np.broadcast_to(w[0], y.shape))),
    )
    assert same(jax.vmap(jax.vmap(isotonic_regression))(y[None], w[None])[0], whole)
    assert same(
        jax.vmap(partial(isotonic_regression, axis=0), 1, 1)(y), np.asarray(isotonic_regression(y, axis=0))
    )
    assert same(jax.vmap(blocks)(y, w), np.asarray(blocks(y, w)))
    jacobian = jax.jacrev(isotonic_regression)(y[0])
    np.testing.assert_allclose(jacobian, jax.jacfwd(isotonic_regression)(y[0]), rtol=0)


def test_vmap_of_ragged_rows() -> None:
    y, w = draw(4, 12), positive(4, 12)
    offsets = np.array([[0, 3, 12], [0, 0, 12], [0, 12, 12], [0, 6, 12]])

    def fit(y: Any, w: Any, offsets: Any) -> Any:
        return isotonic_regression(y, w, offsets=offsets)

    found = jax.vmap(fit)(y, w, offsets)
    for i in range(4):
        assert same(found[i], np.asarray(fit(y[i], w[i], offsets[i])))
    one_y = jax.vmap(fit, (None, None, 0))(y[0], w[0], offsets)
    one_cut = jax.vmap(fit, (0, 0, None))(y, w, offsets[0])
    for i in range(4):
        assert same(one_y[i], np.asarray(fit(y[0], w[0], offsets[i])))
        assert same(one_cut[i], np.asarray(fit(y[i], w[i], offsets[0])))
    bad = offsets.copy()
    bad[2] = [0, 13, 12]
    found_bad, pull = jax.vjp(lambda y, w: jax.vmap(fit)(y, w, bad), y, w)
    of_y, of_w = pull(jnp.ones_like(found_bad))
    for i in range(4):
        for array in (found_bad[i], of_y[i], of_w[i]):
            assert np.isnan(array).all() == (i == 2)
        if i != 2:
            assert same(found_bad[i], np.asarray(found[i]))


def test_jit_is_one_operation_each_way() -> None:
    y = draw(3, 40)
    program = jax.jit(isotonic_regression).lower(y).as_text()
    assert program.count("@isofold_fit") == 1
    program = jax.jit(jax.grad(lambda y: isotonic_regression(y).sum())).lower(y).as_text()
    assert (program.count("@isofold_fit"), program.count("@isofold_gradient")) == (1, 1)


def test_scan() -> None:
    y = draw(5, 20)

    def step(total: Any, row: Any) -> tuple[Any, Any]:
        fit = isotonic_regression(row)
        return total + fit, fit

    def loss(y: Any) -> Any:
        total, fits = jax.lax.scan(step, jnp.zeros(20), y)
        return (total * fits).sum()

    assert same(jax.lax.scan(step, jnp.zeros(20), y)[1], np.asarray(isotonic_regression(y)))
    fits = isotonic_regression(y)
    direct = jax.grad(lambda y: (isotonic_regression(y).sum(0) * isotonic_regression(y)).sum())(y)
    np.testing.assert_allclose(jax.grad(loss)(y), direct, rtol=1e-12)
    assert fits.shape == y.shape


def test_inputs_stay_as_they_were() -> None:
    y = jnp.asarray(draw(4, 30))
    before = np.array(y)
    isotonic_regression(y)
    jax.jit(isotonic_regression, donate_argnums=0)(jnp.array(y)).block_until_ready()
    assert same(y, before)


def test_sharded_rows() -> None:
    """Over the host's devices, of which conftest.py asks for two."""
    assert len(jax.devices()) == 2
    mesh = jax.make_mesh((2,), ("rows",))
    spec, spec_of_one = jax.sharding.PartitionSpec("rows"), jax.sharding.PartitionSpec()
    y = draw(4, 30)
    placed = jax.device_put(y, jax.sharding.NamedSharding(mesh, spec))
    expected = np.asarray(isotonic_regression(y))
    assert same(jax.jit(isotonic_regression)(placed), expected)
    if hasattr(jax, "shard_map"):
        shard_map = jax.shard_map
    else:  # JAX before 0.6, which asks for rules that it does not document
        from jax.experimental.shard_map import shard_map as with_rules

        shard_map = partial(with_rules, check_rep=False)
    mapped = shard_map(isotonic_regression, mesh=mesh, in_specs=spec, out_specs=spec)
    assert same(jax.jit(mapped)(placed), expected)
    loss = jax.grad(lambda y: (mapped(y) ** 2).sum())
    assert same(jax.jit(loss)(placed), np.asarray(jax.grad(lambda y: (isotonic_regression(y) ** 2).sum())(y)))
    # Weights that all shards share: their gradient is summed over the shards.
    with_weights = shard_map(isotonic_regression, mesh=mesh, in_specs=(spec, spec_of_one), out_specs=spec)
    w = positive(30)
    found = jax.jit(jax.grad(lambda w: (with_weights(placed, w) ** 2).sum()))(w)
    right = jax.grad(lambda w: (isotonic_regression(y, w) ** 2).sum())(w)
    np.testing.assert_allclose(found, right, rtol=1e-12)
