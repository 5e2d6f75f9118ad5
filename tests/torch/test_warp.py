"""Warp's batched conjugate gradients with isofold's dots, on Warp's CPU device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp as wp
from warp.optim import linear
from warp.sparse import bsr_from_triplets, bsr_mv

import isofold
from isofold.compat.warp import SegmentDot, use_exact_dots

wp.config.quiet = True
wp.init()
DEVICE = wp.get_device("cpu")


def array(values: Any, dtype: Any = wp.float32) -> Any:
    return wp.array(values, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize(("scalar", "dtype"), [(wp.float32, "float32"), (wp.float64, "float64")])
def test_columns_are_exact_dots(scalar: Any, dtype: str) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 2, 900)).astype(dtype)
    offsets = np.array([0, 0, 7, 900], np.int32)
    dot = SegmentDot(900, scalar, device=DEVICE, max_column_count=3, batch_offsets=array(offsets, wp.int32))
    dot.compute(array(a, scalar), array(b, scalar), col_offset=1)
    dot.compute(array(a[0], scalar), array(a[0], scalar))
    assert np.array_equal(dot.col(0).numpy(), isofold.segment_dot(a[0], a[0], offsets))
    for k in range(2):
        assert np.array_equal(dot.col(1 + k).numpy(), isofold.segment_dot(a[k], b[k], offsets))
        assert np.array_equal(dot.cols(2, 1).numpy()[k], dot.col(1 + k).numpy())
    # Warp issue 1608: a vector longer than its offsets.
    longer = np.concatenate([a[0], np.full(5, np.nan, dtype)])
    dot.compute(array(longer, scalar), array(longer, scalar))
    assert np.array_equal(dot.col(0).numpy(), isofold.segment_dot(a[0], a[0], offsets))


def test_vectors_of_several_scalars() -> None:
    a = np.random.default_rng(1).standard_normal((10, 3)).astype(np.float32)
    dot = SegmentDot(30, wp.float32, device=DEVICE)
    dot.compute(array(a, wp.vec3), array(a, wp.vec3))
    assert dot.col(0).numpy()[0] == isofold.segment_dot(a.reshape(-1), a.reshape(-1))


def _systems(count: int, length: int) -> tuple[Any, Any, Any]:
    """`count` copies of second differences as one matrix, b, and offsets."""
    rows, columns, values = [], [], []
    for s in range(count):
        for i in range(length):
            for j, value in ((i - 1, -1.0), (i, 2.0001), (i + 1, -1.0)):
                if 0 <= j < length:
                    rows.append(s * length + i)
                    columns.append(s * length + j)
                    values.append(value)
    matrix = bsr_from_triplets(
        count * length, count * length, array(rows, wp.int32), array(columns, wp.int32), array(values)
    )
    b = np.tile(np.random.default_rng(2).standard_normal(length).astype(np.float32), count)
    return matrix, array(b), array(np.arange(count + 1) * length, wp.int32)


def _solved(count: int, length: int) -> np.ndarray:
    matrix, b, offsets = _systems(count, length)

    def matvec(x: Any, y: Any, z: Any, alpha: float, beta: float) -> None:
        if z.ptr != y.ptr and beta != 0.0:
            wp.copy(src=y, dest=z)
        bsr_mv(matrix, x, z, alpha, beta)

    operator = linear.LinearOperator(
        (count * length, count * length), wp.float32, DEVICE, matvec, batch_offsets=offsets
    )
    x = wp.zeros(count * length, dtype=wp.float32, device=DEVICE)
    solver = linear.CG(operator, b, x, maxiter=150, tol=1e-6)
    use_exact_dots(solver)
    solver(operator, b, x)
    return np.asarray(x.numpy())


def test_a_batch_solves_as_one_alone() -> None:
    alone = _solved(1, 300)
    batch = _solved(4, 300).reshape(4, 300)
    assert np.isfinite(alone).all()
    for x in batch:
        assert x.tobytes() == alone.tobytes()
