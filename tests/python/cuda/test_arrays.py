"""Arrays of torch, CuPy and JAX in device memory: the host's bits, and arrays of the same library back."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import device_libraries
import numpy as np
import pytest
from device_libraries import Library, agree

import isofold

device_libraries.skip_without_gpu()


@pytest.fixture(scope="module", params=["torch", "cupy", "jax"])
def library(request: pytest.FixtureRequest) -> Library:
    try:
        return Library(request.param)
    except ImportError:
        pytest.skip(f"{request.param} is not installed")


def _rows(seed: int, shape: Any, dtype: str = "float64") -> tuple[Any, Any]:
    """Decimals, which tie, and weights."""
    random = np.random.default_rng(seed)
    y = np.round(random.standard_normal(shape) + np.linspace(0, 1, shape[-1]), 1).astype(dtype)
    return y, random.uniform(0.5, 2, shape)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("weight_dtype", [None, "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_one_row(library: Library, dtype: str, weight_dtype: str | None, increasing: bool) -> None:
    y, w = _rows(1, (60_001,), dtype)
    agree(library, y, weights=None if weight_dtype is None else w.astype(weight_dtype), increasing=increasing)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_any_axis(library: Library, axis: int) -> None:
    y, w = _rows(2, (7, 300, 5), "float32")
    agree(library, y, weights=w, axis=axis)
    agree(library, y, axis=axis)


def test_any_strides(library: Library) -> None:
    y, _ = _rows(3, (40, 50), "float32")
    on_device = library.to(y)
    for given, view in ((on_device.T, y.T), (on_device[::3, 1::2], y[::3, 1::2]), (on_device[:, 7], y[:, 7])):
        assert library.same(isofold.isotonic_regression(given).x, isofold.isotonic_regression(view).x)


@pytest.mark.parametrize("shape", [(4, 30), (30,), (4, 1), (1, 30), ()])
def test_weights_are_broadcast(library: Library, shape: tuple[int, ...]) -> None:
    y, _ = _rows(4, (4, 30))
    agree(library, y, weights=np.random.default_rng(4).uniform(0.5, 2, shape).astype("float32"))


def test_weights_may_be_a_number(library: Library) -> None:
    y, _ = _rows(4, (4, 30), "float32")
    found = isofold.isotonic_regression(library.to(y), weights=2.5)
    assert library.same(found.x, isofold.isotonic_regression(y, weights=2.5).x)
    assert library.same(found.weights, isofold.isotonic_regression(y, weights=2.5).weights)
    with pytest.raises(ValueError, match="weights must be finite and greater than zero"):
        isofold.isotonic_regression(library.to(y), weights=0)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_ragged_rows(library: Library, dtype: str) -> None:
    lengths = [0, 3, 1, 0, 500, 20_000, 2, 0]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(dtype)
    y, w = _rows(5, (int(offsets[-1]),))
    agree(library, y, offsets=offsets)
    agree(library, y, offsets=offsets, weights=w, increasing=False)


def test_bounds(library: Library) -> None:
    y, _ = _rows(6, (3, 100), "float32")
    agree(library, y, y_min=-0.25, y_max=0.5)
    with pytest.raises(ValueError, match="no value lies between"):
        isofold.isotonic_regression(library.to(y), y_min=1, y_max=0)


def test_weights_and_gradients_of_other_dtypes_are_exact(library: Library) -> None:
    y, _ = _rows(7, (200,), "float32")
    w = np.random.default_rng(7).integers(1, 9, 200)
    agree(library, y, weights=w)
    agree(library, y, weights=w.astype("float16"))
    grad = np.random.default_rng(7).integers(-9, 9, 200)
    expected, _ = isofold.isotonic_gradient(isofold.isotonic_regression(y), grad.astype("float16"))
    found, _ = isofold.isotonic_gradient(
        isofold.isotonic_regression(library.to(y)), library.to(grad.astype("float16"))
    )
    assert library.same(found, expected)


def test_integers_become_the_default_float(library: Library) -> None:
    y = np.array([[3, 1, 2], [1, 0, 1]])
    for given in (y, y > 1):
        found = isofold.isotonic_regression(library.to(given)).x
        expected = isofold.isotonic_regression(given).x.astype(
            "float32" if library.name == "torch" else "float64"
        )
        assert library.same(found, expected)


def test_a_refused_row_is_nan_and_the_others_are_not(library: Library) -> None:
    y, w = _rows(8, (6, 5_000))
    expected = isofold.isotonic_regression(y, weights=w)
    bad_y, bad_w = y.copy(), w.copy()
    bad_y[1, 17], bad_y[2, 4_999], bad_w[4, 0], bad_w[5, 3] = np.nan, np.inf, 0, -1
    result = isofold.isotonic_regression(library.to(bad_y), weights=library.to(bad_w))
    found = library.host(result.x)
    for row in range(6):
        if row in (0, 3):
            assert found[row].tobytes() == expected.x[row].tobytes()
        else:
            assert np.isnan(found[row]).all()
            assert np.flatnonzero(library.host(result.block_mask)[row]).tolist() == [0]
    offsets = library.host(result.block_offsets)
    weights = library.host(result.weights)
    assert np.isnan(weights[offsets[4]])
    assert np.isnan(weights[offsets[5]])
    assert weights[: offsets[1]].tolist() == expected.weights[: expected.block_offsets[1]].tolist()


@pytest.mark.parametrize(
    "offsets",
    [[0, 10, 50, 40, 90, 100], [5, 10, 20, 40, 90, 100], [0, 10, 20, 40, 90, 99], [0, -1, 200, 40, 90, 100]],
)
def test_bad_offsets_are_judged_on_the_device(library: Library, offsets: list[int]) -> None:
    y, w = _rows(9, (100,))
    found = isofold.isotonic_regression(
        library.to(y), weights=library.to(w), offsets=library.to(np.array(offsets))
    )
    assert np.isnan(library.host(found.x)).all()
    assert library.host(found.weights).size == library.host(found.blocks).size - 1


def test_gradients_have_the_bits_of_the_host(library: Library) -> None:
    y, w = _rows(10, (4, 2_000, 2), "float32")
    grad = np.random.default_rng(10).standard_normal(y.shape)
    options: dict[str, Any] = {"axis": 1, "y_min": -0.5, "y_max": 1.0}
    for weights in (None, w):
        on_host = isofold.isotonic_regression(y, weights=weights, **options)
        on_device = isofold.isotonic_regression(
            library.to(y), weights=None if weights is None else library.to(weights), **options
        )
        expected_y, expected_w = isofold.isotonic_gradient(on_host, grad)
        found_y, found_w = isofold.isotonic_gradient(on_device, library.to(grad))
        assert library.same(found_y, expected_y)
        if expected_w is None:
            assert found_w is None
        else:
            assert library.same(found_w, expected_w)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_nothing_to_fit(library: Library, shape: tuple[int, ...]) -> None:
    y = np.zeros(shape, "float32")
    found = agree(library, y)
    for gradient, expected in zip(
        isofold.isotonic_gradient(found, library.to(y)),
        isofold.isotonic_gradient(isofold.isotonic_regression(y), y),
        strict=True,
    ):
        assert (gradient is None) == (expected is None)
        assert expected is None or library.same(gradient, expected)


def test_inputs_stay_as_they_were(library: Library) -> None:
    y, w = _rows(11, (3, 4_000), "float32")
    on_device, weights = library.to(y), library.to(w)
    result = isofold.isotonic_regression(on_device, weights=weights, y_max=0)
    isofold.isotonic_gradient(result, on_device)
    assert library.same(on_device, y)
    assert library.same(weights, w)


def test_a_result_in_device_memory_is_compared_by_identity_and_not_pickled(library: Library) -> None:
    result = isofold.isotonic_regression(library.to(np.array([3.0, 1.0, 2.0])))
    assert isinstance(result, isofold.IsotonicResult)
    assert result == result
    assert result != isofold.isotonic_regression([3.0, 1.0, 2.0])
    assert hash(result) == hash(result)
    assert "CUDA device 0" in repr(result)
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="device memory"):
            copied(result)
    with pytest.raises(AttributeError, match="immutable"):
        result.x = None  # type: ignore[assignment]


def test_wrong_arguments(library: Library) -> None:
    y = np.array([3.0, 1.0, 2.0], "float32")
    d = library.to(y)
    fit = isofold.isotonic_regression

    def refused(error: type[Exception], match: str, *args: Any, **options: Any) -> None:
        with pytest.raises(error, match=match):
            fit(*args, **options)

    refused(TypeError, "weights is in host memory, but y is on CUDA device 0", d, weights=y)
    refused(TypeError, "offsets is in host memory, but y is on CUDA device 0", d, offsets=[0, 3])
    refused(TypeError, "y is in host memory, but weights is on a CUDA device", y, weights=d)
    refused(TypeError, "y is in host memory, but offsets is on a CUDA device", y, offsets=d)
    refused(TypeError, "y has dtype float16", library.to(y.astype("float16")))
    refused(TypeError, "y has dtype complex64", library.to(y.astype("complex64")))
    refused(TypeError, "weights must hold real numbers", d, weights=library.to(y.astype("complex64")))
    refused(ValueError, "weights has shape \\(2,\\)", d, weights=library.to(y[:2]))
    refused(TypeError, "offsets must hold integers, not dtype float32", d, offsets=d)
    refused(ValueError, "offsets must be 1-D", d, offsets=library.to(np.zeros((2, 2), int)))
    refused(ValueError, "offsets has one entry", d, offsets=library.to(np.zeros(1, int)))
    refused(
        ValueError,
        "offsets cut a 1-D array into rows, but y",
        library.to(y[None]),
        offsets=library.to(np.array([0, 3])),
    )
    refused(ValueError, "axis 1 is out of range", d, axis=1)
    refused(ValueError, "at least one dimension", library.to(np.float32(1)))
    refused(TypeError, "increasing must be True or False", d, increasing=1)
    refused(ValueError, "threads must be at least 1", d, threads=0)
    with pytest.raises(TypeError, match="grad is in host memory, but the fit is on CUDA device 0"):
        isofold.isotonic_gradient(fit(d), y)
    with pytest.raises(TypeError, match="grad is on a CUDA device, but the fit is in host memory"):
        isofold.isotonic_gradient(fit(y), d)
    with pytest.raises(ValueError, match="grad has shape"):
        isofold.isotonic_gradient(fit(d), library.to(y[:2]))


def test_arrays_of_two_libraries_are_not_mixed() -> None:
    torch, cupy = Library("torch"), Library("cupy")
    y = np.array([3.0, 1.0, 2.0], "float32")
    with pytest.raises(TypeError, match=r"weights is a ndarray, but y is a torch\.Tensor"):
        isofold.isotonic_regression(torch.to(y), weights=cupy.to(y))


def test_jax_without_64_bits() -> None:
    jax = Library("jax")
    jax.module.config.update("jax_enable_x64", False)
    try:
        y, w = _rows(12, (3_000,), "float32")
        offsets = np.array([0, 1, 1, 1_200, 3_000])
        found = isofold.isotonic_regression(
            jax.to(y), weights=jax.to(w.astype("float32")), offsets=jax.to(offsets)
        )
        expected = isofold.isotonic_regression(y, weights=w.astype("float32"), offsets=offsets)
        assert jax.same(found.x, expected.x)
        assert jax.host(found.blocks).tolist() == expected.blocks.tolist()
        assert jax.same(found.weights, expected.weights.astype("float32"))
        bad = isofold.isotonic_regression(jax.to(y), offsets=jax.to(np.array([0, 1, -5, 1_200, 3_000])))
        assert np.isnan(jax.host(bad.x)).all()
        assert jax.host(isofold.isotonic_regression(jax.to(np.array([3, 1]))).x).dtype == np.float32
    finally:
        jax.module.config.update("jax_enable_x64", True)
