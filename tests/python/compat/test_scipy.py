"""isofold.compat.scipy beyond SciPy's own tests."""

from __future__ import annotations

import inspect
import pickle
import sys
from typing import Any

import numpy as np
import oracle
import pytest
import scipy.optimize

from isofold.compat import scipy as compat


def test_signature_and_return_type() -> None:
    theirs = inspect.signature(scipy.optimize.isotonic_regression).parameters
    ours = inspect.signature(compat.isotonic_regression).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]
    result = compat.isotonic_regression([2, 1, 3])
    assert type(result) is scipy.optimize.OptimizeResult
    assert sorted(result) == ["blocks", "weights", "x"]
    assert result.x is result["x"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("weight_dtype", [None, "float16", "float32", "float64", "int16"])
def test_float64_out_exact_from_the_given_dtype(dtype: str, weight_dtype: str | None) -> None:
    y = np.array([1, 0, 1, 1, 0, 0, 1], dtype=dtype)
    if y.dtype.kind == "f":
        y = (y * 0.1).astype(dtype)
    w = None if weight_dtype is None else np.array([3, 1, 2, 1, 5, 1, 1], dtype=weight_dtype)
    result = compat.isotonic_regression(y, weights=w)
    solution = oracle.solve(y, w)
    assert oracle.same_bits(result.x, solution.fit("float64"))
    assert result.weights.tolist() == solution.block_weights()
    assert result.weights.dtype == np.float64
    assert result.blocks.tolist() == [*solution.starts(), 7]
    assert result.blocks.dtype == np.intp


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_agrees_with_scipy_to_rounding(increasing: bool, weighted: bool) -> None:
    rng = np.random.default_rng(9)
    y = rng.standard_normal(2000)
    w = rng.uniform(0.1, 3, 2000) if weighted else None
    ours = compat.isotonic_regression(y, weights=w, increasing=increasing)
    theirs = scipy.optimize.isotonic_regression(y, weights=w, increasing=increasing)
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-12)
    assert (ours.blocks == theirs.blocks).all()


def test_empty_and_scalar() -> None:
    empty = compat.isotonic_regression([])
    assert empty.x.tolist() == []
    assert empty.weights.tolist() == []
    assert empty.blocks.tolist() == [0]
    one = compat.isotonic_regression(3, weights=2)
    assert (one.x.tolist(), one.weights.tolist(), one.blocks.tolist()) == ([3], [2], [0, 1])


@pytest.mark.parametrize(
    ("y", "w", "error", "message"),
    [
        ([[0, 1]], None, ValueError, "array has incorrect number of dimensions: 2; expected 1"),
        ([[0, 1]], [[1, 1]], ValueError, "Input arrays y and w must have one dimension of equal length."),
        ([0, 1], [1, -1], ValueError, "Weights w must be strictly positive."),
        (
            [0, 1],
            [1, np.nan],
            ValueError,
            "w must be finite and greater than zero, but is nan at row 0, position 1",
        ),
        ([0, np.inf], None, ValueError, "y must be finite, but is inf at row 0, position 1"),
        ([0, 1j], None, TypeError, "y must hold real numbers"),
        ([0, 1], ["a", "b"], TypeError, "weights must hold real numbers"),
    ],
)
def test_errors(y: Any, w: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compat.isotonic_regression(y, weights=w)


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    result = compat.isotonic_regression([2, 1, 3])
    assert type(result) is compat.OptimizeResult
    assert result.x.tolist() == result["x"].tolist() == [1.5, 1.5, 3]
    assert dir(result) == ["x", "weights", "blocks"] or sorted(dir(result)) == ["blocks", "weights", "x"]
    result.success = True
    assert result["success"] is True
    del result.success
    assert "success" not in result
    for name in ("success", "message"):
        with pytest.raises(AttributeError, match=name):
            getattr(result, name)
    with pytest.raises(AttributeError, match="success"):
        del result.success
    twin = pickle.loads(pickle.dumps(result))
    assert twin.blocks.tolist() == [0, 2, 3]


def test_subnormal_float32_is_not_lost() -> None:
    y = np.array([3, 1, 2], dtype=np.float32) * np.float32(1e-45)
    assert compat.isotonic_regression(y).x.tolist() == [float(y.astype(np.float64).mean())] * 3
