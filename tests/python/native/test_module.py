"""The native module refuses what could touch memory out of bounds, and its stub says what is there."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import isofold
from isofold import _native

Y = np.array([3.0, 1.0, 2.0, 5.0])
ONE_ROW = (None, None, True, -math.inf, math.inf)


def _fit(y: Any = Y, weights: Any = None, offsets: Any = None, row_length: Any = None, **options: Any) -> Any:
    arguments = {"tie_offsets": None, "out_dtype": None, "threads": 1, **options}
    return _native.fit(y, weights, offsets, row_length, True, -math.inf, math.inf, **arguments)


@pytest.mark.parametrize(
    "array", [Y.astype(int), Y.astype(complex), Y[::2], Y.reshape(2, 2), Y.astype(">f8"), [1.0, 2.0], None]
)
def test_values_must_be_flat_floats(array: Any) -> None:
    with pytest.raises(TypeError):
        _fit(array)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float64"])
def test_offsets_must_be_int64(dtype: str) -> None:
    with pytest.raises(TypeError):
        _fit(offsets=np.array([0, 4], dtype=dtype))


@pytest.mark.parametrize("offsets", [[], [0], [0, 5], [1, 4], [0, 3, 2, 4], [0, 9, 4], [0, -9, 4]])
def test_offsets_must_rise_to_the_number_of_values(offsets: list[int]) -> None:
    array = np.array(offsets, dtype=np.int64)
    with pytest.raises(ValueError, match="offsets"):
        _fit(offsets=array)
    with pytest.raises(ValueError, match="offsets"):
        _fit(tie_offsets=array)
    flags = np.array([1, 0, 0, 1], dtype=np.uint8)
    with pytest.raises(ValueError, match="offsets"):
        _native.block_weights(Y, None, array, None, flags, 1)
    with pytest.raises(ValueError, match="offsets"):
        _native.gradient(Y, None, array, *ONE_ROW[1:], flags, Y, True, None, 1)


def test_tie_groups_must_not_be_empty_nor_cross_rows() -> None:
    with pytest.raises(ValueError, match="tie_offsets"):
        _fit(tie_offsets=np.array([0, 2, 2, 4]))
    with pytest.raises(ValueError, match="row 1"):
        _fit(row_length=2, tie_offsets=np.array([0, 1, 3, 4]))


@pytest.mark.parametrize("row_length", [-1, 0, 3, 5])
def test_row_length_must_divide(row_length: int) -> None:
    with pytest.raises(ValueError, match="row_length must divide"):
        _fit(row_length=row_length)


def test_sizes_must_agree() -> None:
    flags = np.array([1, 0, 0, 1], dtype=np.uint8)
    with pytest.raises(ValueError, match="weights has 3 entries, expected 4"):
        _fit(weights=np.ones(3))
    with pytest.raises(ValueError, match="gradient has 5 entries, expected 4"):
        _native.gradient(Y, None, *ONE_ROW, flags, np.ones(5), False, None, 1)
    with pytest.raises(ValueError, match="block_starts has 3 entries, expected 4"):
        _native.gradient(Y, None, *ONE_ROW, flags[:3], Y, False, None, 1)
    with pytest.raises(ValueError, match="block_starts has 3 entries, expected 4"):
        _native.block_weights(Y, None, None, None, flags[:3], 1)
    with pytest.raises(ValueError, match="knots_y has 1 entries, expected 2"):
        _native.interpolate(np.array([0.0, 1.0]), np.array([0.0]), Y)


def test_every_row_must_start_a_block() -> None:
    with pytest.raises(ValueError, match="start of every row"):
        _native.block_weights(Y, None, None, 2, np.array([1, 0, 0, 1], dtype=np.uint8), 1)


@pytest.mark.parametrize("name", ["int64", "float128", "", "bfloat16"])
def test_out_dtype(name: str) -> None:
    with pytest.raises(ValueError, match="out_dtype must be"):
        _fit(out_dtype=name)
    for good in ("float16", "float32", "float64"):
        assert _fit(out_dtype=good)[0].dtype == good


def test_executor_options() -> None:
    with pytest.raises(ValueError, match="backend must be cpu or reference"):
        _fit(backend="gpu")
    with pytest.raises(ValueError, match="threads must not be negative"):
        _fit(threads=-1)
    for size in (1, 33, 31, 131072, -32):
        with pytest.raises(ValueError, match="chunk_size must be a power of two"):
            _fit(chunk_size=size)


def test_crossed_bounds() -> None:
    with pytest.raises(ValueError, match="bound"):
        _native.fit(Y, None, None, None, True, 2.0, 1.0, None, None, 1)


def test_outputs_are_owned_writable_and_aligned() -> None:
    fitted, starts = _fit()
    for array in (fitted, starts):
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0
        array[:] = 7
    assert Y.tolist() == [3, 1, 2, 5]


def test_backends_agree() -> None:
    rng = np.random.default_rng(8)
    y, w = rng.standard_normal(3000), rng.uniform(0.1, 1, 3000)
    for backend in ("cpu", "reference"):
        fitted, starts = _fit(y, w, row_length=1000, backend=backend)
        gradients = _native.gradient(
            y, w, None, 1000, True, -math.inf, math.inf, starts, y, True, None, 1, backend=backend
        )
        if backend == "cpu":
            expected = (fitted, starts, *gradients)
    for found, one in zip((fitted, starts, *gradients), expected, strict=True):
        assert oracle.same_bits(found, one)


def test_the_stub_names_what_is_there() -> None:
    stub = ast.parse((Path(isofold.__file__).parent / "_native.pyi").read_text())
    functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    public = {name for name in vars(_native) if not name.startswith("_")}
    assert public == set(functions) | classes
    for name, node in functions.items():
        native = getattr(_native, name)
        signature, *_ = native.__nb_signature__[0]
        plain = re.sub(r"ndarray\[[^]]*\]", "ndarray", signature).replace("\\", "")
        defined = ast.parse(plain + ": ...").body[0]
        assert isinstance(defined, ast.FunctionDef)
        assert [a.arg for a in defined.args.args] == [a.arg for a in node.args.args], name
        assert len(defined.args.defaults) == len(node.args.defaults), name
        assert ast.get_docstring(node) == native.__doc__.split("\n\n", 1)[-1].strip(), name
