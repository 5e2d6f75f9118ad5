"""What is taken, what is refused, and in which words."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_rows import draw, positive, same

from isofold import _native
from isofold.jax import blocks, isotonic_regression, soft_rank, soft_sort


def test_rows_that_cannot_be_fitted_are_nan_alone() -> None:
    y, w = draw(6, 50), positive(6, 50)
    clean = np.asarray(isotonic_regression(y, w))
    bad_y, bad_w = y.copy(), w.copy()
    bad_y[1, 3], bad_y[2, 49], bad_w[4, 0], bad_w[5, 7] = np.nan, np.inf, 0, np.nan
    for y_max in (None, 0.0):
        found, pull = jax.vjp(partial(isotonic_regression, y_max=y_max), bad_y, bad_w)
        of_y, of_w = pull(jnp.ones_like(found))
        for row in range(6):
            good = row in (0, 3)
            for array in (found, of_y, of_w):
                assert np.isnan(array[row]).all() == (not good)
            if good:
                assert same(found[row], clean[row] if y_max is None else np.minimum(clean[row], 0))
    assert blocks(bad_y, bad_w)[1].tolist() == [True] + [False] * 49
    found, pull = jax.vjp(isotonic_regression, bad_y)
    assert np.isnan(found[1:3]).all()
    assert np.isnan(pull(jnp.ones_like(found))[0][1:3]).all()
    assert np.isnan(soft_rank(bad_y)[1:3]).all()
    assert not np.isnan(soft_rank(bad_y)[3:]).any()
    with pytest.raises(ValueError, match="y is not finite: row 1, position 3 is nan"):
        isotonic_regression(bad_y, validate=True)
    with pytest.raises(ValueError, match="weights is not a positive number: row 4, position 0 is 0"):
        isotonic_regression(y, bad_w, validate=True)
    with pytest.raises(ValueError, match="y is not finite: row 2, position 0 is inf"):
        isotonic_regression(bad_y[2], offsets=[0, 7, 49, 50], validate=True)
    with pytest.raises(ValueError, match="validate=True looks at the entries"):
        jax.jit(lambda y: isotonic_regression(y, validate=True))(y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_refusal_by_dtype(dtype: str) -> None:
    y, w = draw(3, 4, dtype=dtype), positive(3, 4, dtype=dtype)
    w[1, 2] = -w[1, 2]
    found = np.asarray(isotonic_regression(y, w))
    assert np.isnan(found[1]).all()
    assert same(found[[0, 2]], np.asarray(isotonic_regression(y[[0, 2]], w[[0, 2]])))


@pytest.mark.parametrize("bad", [[1, 3], [0, 2], [0, 2, 1, 3], [0, 9, 3], [0, -1, 3]])
def test_traced_offsets_that_are_wrong_refuse_everything(bad: list[int]) -> None:
    y, w = draw(3), positive(3)

    def loss(y: Any, w: Any, offsets: Any) -> Any:
        return isotonic_regression(y, w, offsets=offsets).sum()

    of_y, of_w = jax.jit(jax.grad(loss, (0, 1)))(y, w, np.array(bad))
    assert np.isnan(jax.jit(loss)(y, w, np.array(bad)))
    assert np.isnan(of_y).all()
    assert np.isnan(of_w).all()
    assert np.isnan(jax.jit(lambda y, o: isotonic_regression(y, offsets=o))(y, np.array(bad))).all()
    assert np.isnan(jax.jit(lambda y, o: soft_rank(y, offsets=o))(y, np.array(bad))).all()
    with pytest.raises(ValueError, match="offsets must"):
        isotonic_regression(y, offsets=jnp.array(bad))


def test_shapes_and_types() -> None:
    assert isotonic_regression(np.array([3, 1, 2])).tolist() == [2, 2, 2]
    assert isotonic_regression(np.array([3, 1])).dtype == np.float64
    assert isotonic_regression(np.array([True, False])).tolist() == [0.5, 0.5]
    for shape in [(0,), (0, 5), (5, 0), (2, 0, 3)]:
        y = np.zeros(shape)
        assert isotonic_regression(y).shape == blocks(y).shape == soft_rank(y).shape == shape
        assert jax.grad(lambda y: isotonic_regression(y).sum())(y).shape == shape
        assert jax.grad(lambda y: soft_sort(y).sum())(y).shape == shape
    assert isotonic_regression(np.zeros(0), offsets=[0]).shape == (0,)
    assert isotonic_regression(np.zeros(0), offsets=np.array([0, 0, 0])).shape == (0,)
    y = draw(8, 6)
    expected = np.asarray(isotonic_regression(np.ascontiguousarray(y.T[::2]), axis=0))
    assert same(isotonic_regression(jnp.asarray(y).T[::2], axis=0), expected)
    assert same(isotonic_regression(y.T[::2], axis=0), expected)
    plain = np.asarray(isotonic_regression(y))
    for weights in (2.0, 2, np.float32(2), np.ones(6), np.ones((8, 1)), np.ones(6, int)):
        assert same(isotonic_regression(y, weights), plain)
    assert same(isotonic_regression(y.astype(">f8")), plain)


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "y must be an array of JAX or NumPy, not list", {"y": [1.0]}),
        (TypeError, "y must be an array of JAX or NumPy, not MaskedArray", {"y": np.ma.masked_array([1.0])}),
        (TypeError, "y must be real.*not complex64", {"y": np.zeros(3, np.complex64)}),
        (TypeError, "y must be real.*not float8_e5m2", {"y": jnp.zeros(3, jnp.float8_e5m2)}),
        (ValueError, "y must have at least one dimension", {"y": np.float64(1)}),
        (ValueError, "axis 2 is out of range for y with 2 dimensions", {"axis": 2}),
        (TypeError, "increasing must be True or False, not 1", {"increasing": 1}),
        (ValueError, "no value lies between y_min = 2 and y_max = 1", {"y_min": 2, "y_max": 1}),
        (ValueError, "y_min is not a number", {"y_min": float("nan")}),
        (ValueError, r"weights has shape \(2,\), which does not fit y's, \(2, 3\)", {"weights": np.ones(2)}),
        (TypeError, "weights must be an array of JAX or NumPy, not str", {"weights": "1"}),
        (ValueError, "offsets cut 1-D y into rows, but it has 2 dimensions", {"offsets": [0, 3]}),
        (TypeError, "offsets must hold integers", {"y": np.zeros(3), "offsets": [0.0, 3.0]}),
        (ValueError, "offsets must end at the number of values, 3", {"y": np.zeros(3), "offsets": [0, 2]}),
        (ValueError, r"offsets must not fall, but offsets\[2\]", {"y": np.zeros(3), "offsets": [0, 2, 1, 3]}),
        (ValueError, "offsets must be 1-D", {"y": np.zeros(3), "offsets": [[0, 3]]}),
    ],
)
def test_errors(error: type[Exception], message: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        isotonic_regression(**({"y": np.zeros((2, 3))} | arguments))


def test_errors_of_traced_offsets() -> None:
    def fit(offsets: Any) -> Any:
        return isotonic_regression(np.zeros(3), offsets=offsets)

    with pytest.raises(TypeError, match="offsets must hold integers"):
        jax.jit(fit)(np.array([0.0, 3.0]))
    with pytest.raises(ValueError, match="offsets must be 1-D"):
        jax.jit(fit)(np.array([[0, 3]]))
    with pytest.raises(ValueError, match="has no row"):
        jax.jit(fit)(np.array([0]))


def test_platforms_without_kernels() -> None:
    if _native.cuda_fault().startswith("this build of isofold has no CUDA"):
        with pytest.raises(RuntimeError, match=r"pip install \. -C cmake\.define\.ISOFOLD_CUDA=ON"):
            jax.jit(isotonic_regression).trace(np.zeros(3)).lower(lowering_platforms=("cuda",))
    with pytest.raises(NotImplementedError, match="isofold_fit"):
        jax.jit(isotonic_regression).trace(np.zeros(3)).lower(lowering_platforms=("tpu",))


def test_errors_of_soft_operators() -> None:
    values = np.arange(3.0)
    for strength in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="regularization_strength must be positive and finite"):
            soft_rank(values, regularization_strength=strength)
    with pytest.raises(TypeError, match="regularization_strength must be a number"):
        jax.jit(lambda strength: soft_rank(values, regularization_strength=strength))(1.0)
    with pytest.raises(ValueError, match="regularization must be 'l2' or 'kl', not 'l1'"):
        soft_rank(values, "l1")
    with pytest.raises(ValueError, match="direction must be"):
        soft_sort(values, direction="UP")
    with pytest.raises(TypeError, match="values must be an array"):
        soft_sort([1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="axis 1 is out of range for values with 1 dimensions"):
        soft_rank(values, axis=1)
