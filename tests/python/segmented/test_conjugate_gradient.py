"""Batches of conjugate gradients: each system as alone, ways to end, arguments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

import isofold
from isofold import CGStatus
from isofold.linear_maps import Banded, BlockDiagonal, CompressedRows, NormalEquations

LENGTHS = (1, 2, 0, 5, 60, 400, 1500)


def systems(dtype: str, ridge: float = 1e-3, seed: int = 0) -> tuple[Banded, CompressedRows, Any, Any]:
    """Second differences: diagonals, the same by rows, b and offsets."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    total = int(offsets[-1])
    upper = np.full(total, -1.0)
    lower = np.full(total, -1.0)
    for begin, end in itertools.pairwise(offsets):
        if end > begin:
            upper[end - 1] = lower[begin] = 0
    diagonals = np.stack([lower, np.full(total, 2 + ridge), upper]).astype(dtype)
    matrix = sparse.diags_array([diagonals[0, 1:], diagonals[1], diagonals[2, :-1]], offsets=[-1, 0, 1])
    rows = CompressedRows.from_scipy(matrix)
    rows.values = rows.values.astype(dtype)
    return Banded(diagonals), rows, random.standard_normal(total).astype(dtype), offsets


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["banded", "rows"])
@pytest.mark.parametrize("jacobi", [False, True])
def test_batched_is_alone(dtype: str, kind: str, jacobi: bool) -> None:
    banded, rows, b, offsets = systems(dtype)
    matrix = banded if kind == "banded" else rows
    together = isofold.cg(matrix, b, offsets, preconditioner=matrix.jacobi() if jacobi else None)
    assert together.x.dtype == dtype
    assert together.status[2] == CGStatus.EMPTY
    for s, (begin, end) in enumerate(itertools.pairwise(offsets)):
        one = Banded(banded.diagonals[:, begin:end])
        if kind == "rows":
            first, last = rows.offsets[[begin, end]]
            one = CompressedRows(
                rows.offsets[begin : end + 1] - first,
                rows.indices[first:last] - begin,
                rows.values[first:last],
            )
        alone = isofold.cg(one, b[begin:end], preconditioner=one.jacobi() if jacobi else None)
        assert alone.x.tobytes() == together.x[begin:end].tobytes()
        for name in ("iterations", "status", "residual_norm", "true_residual_norm"):
            assert getattr(alone, name)[0] == getattr(together, name)[s]
    threaded = isofold.cg(matrix, b, offsets, preconditioner=matrix.jacobi() if jacobi else None, threads=3)
    assert threaded.x.tobytes() == together.x.tobytes()


def test_solutions_are_those_of_scipy() -> None:
    _, rows, b, offsets = systems("float64")
    found = isofold.cg(rows, b, offsets, rtol=1e-12)
    matrix = sparse.csr_array((rows.values, rows.indices, rows.offsets))
    expected = linalg.spsolve(matrix.tocsc(), b)
    assert found.converged.all()
    np.testing.assert_allclose(found.x, expected, rtol=1e-6, atol=1e-8)
    for s, (begin, end) in enumerate(itertools.pairwise(offsets)):
        residual = np.linalg.norm((b - matrix @ found.x)[begin:end])
        np.testing.assert_allclose(found.true_residual_norm[s], residual, rtol=1e-2, atol=1e-14)


def test_rectangles_callables_and_warm_starts() -> None:
    random = np.random.default_rng(1)
    root = random.standard_normal((3, 20, 20))
    matrices = root @ root.transpose(0, 2, 1) + np.eye(20)
    b = random.standard_normal((3, 20))

    def apply(x: Any) -> Any:
        assert x.shape == (3, 20)
        return np.einsum("sij,sj->si", matrices, x)

    found = isofold.cg(apply, b, rtol=1e-10, maxiter=200)
    np.testing.assert_allclose(found.x, np.linalg.solve(matrices, b[..., None])[..., 0], rtol=1e-6)
    again = isofold.cg(apply, b, x0=found.x, rtol=1e-9)
    assert again.iterations.tolist() == [0, 0, 0]
    blocks = isofold.cg(BlockDiagonal(matrices), b, rtol=1e-10, maxiter=200)
    np.testing.assert_allclose(blocks.x, found.x, rtol=1e-6)
    exact = isofold.cg(
        BlockDiagonal(matrices), b, preconditioner=BlockDiagonal(np.linalg.inv(matrices)), rtol=1e-8
    )
    assert exact.iterations.max() <= 2
    # float16 and integers are solved in float64.
    assert isofold.cg(BlockDiagonal(np.ones(3)), [1, 2, 3]).x.tolist() == [1, 2, 3]


def test_normal_equations_and_block_jacobi() -> None:
    random = np.random.default_rng(2)
    dense = random.standard_normal((40, 12)) * (random.random((40, 12)) < 0.4)
    jacobian = CompressedRows.from_scipy(sparse.csr_array(dense))
    matrix = NormalEquations(jacobian, damping=0.1)
    b = random.standard_normal(12)
    full = dense.T @ dense + 0.1 * np.eye(12)
    expected = np.linalg.solve(full, b)
    for preconditioner in (None, matrix.jacobi()):
        found = isofold.cg(matrix, b, preconditioner=preconditioner, rtol=1e-12, maxiter=100)
        np.testing.assert_allclose(found.x, expected, rtol=1e-8)
    rows = CompressedRows.from_scipy(sparse.csr_array(full))
    found = isofold.cg(rows, b, preconditioner=rows.block_jacobi(4), rtol=1e-12, maxiter=100)
    np.testing.assert_allclose(found.x, expected, rtol=1e-8)


def test_bad_systems_touch_no_other() -> None:
    b = np.array([1.0, 2.0, np.nan, 1.0, 3.0, 4.0, 5.0, 6.0])
    diagonal = np.array([2.0, 4.0, 1.0, 1.0, 1.0, -1.0, 2.0, 3.0])
    found = isofold.cg(BlockDiagonal(diagonal), b.reshape(4, 2))
    assert found.status.tolist() == [
        CGStatus.CONVERGED,
        CGStatus.NOT_FINITE,
        CGStatus.INDEFINITE_OPERATOR,
        CGStatus.CONVERGED,
    ]
    assert found.x[0].tolist() == [0.5, 0.5]
    assert found.x[3].tolist() == [2.5, 2.0]
    assert "2 of 4 systems converged" in repr(found)


def test_ends_and_tolerances() -> None:
    b = np.ones((3, 3))
    diagonal = np.tile([1.0, 2.0, 3.0], 3)
    found = isofold.cg(BlockDiagonal(diagonal), b, maxiter=[1, 3, 3], rtol=[1e-9, 1e-9, 2.0])
    assert found.status.tolist() == [CGStatus.MAX_ITERATIONS, CGStatus.CONVERGED, CGStatus.CONVERGED]
    assert found.iterations.tolist() == [1, 3, 0]
    minus = isofold.cg(BlockDiagonal(diagonal), b, preconditioner=BlockDiagonal(-diagonal))
    assert (minus.status == CGStatus.INDEFINITE_PRECONDITIONER).all()
    # Warp 189: an identity converges in the middle of the first iteration.
    identity = isofold.cg(BlockDiagonal(np.ones(5)), np.arange(5.0), rtol=0.0)
    assert identity.x.tolist() == [0, 1, 2, 3, 4]
    assert identity.iterations.tolist() == [1]
    # CuPy 7512: success is of the true residual.
    banded, _, b, offsets = systems("float32", ridge=1e-6)
    stuck = isofold.cg(banded, b, offsets, rtol=1e-10, maxiter=50_000)
    assert CGStatus.STAGNATED in stuck.status
    assert not stuck.converged[-1]


def test_a_limit_beyond_reach_is_none() -> None:
    b = np.arange(1.0, 7)
    diagonal = Banded([np.arange(1.0, 7)])
    alone = isofold.cg(diagonal, b, [0, 3, 6], maxiter=10)
    for most in (2**63 - 1, [10, 2**63 - 1]):
        found = isofold.cg(diagonal, b, [0, 3, 6], maxiter=most)
        assert found.converged.all()
        assert np.array_equal(found.x, alone.x)
    assert isofold.cg(diagonal, b, maxiter=2**62, replace_every=1).converged.all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tolerance_of_zero_ends(dtype: str) -> None:
    random = np.random.default_rng(0)
    n = 200
    matrix = Banded(np.array([[0.0] + [-1.0] * (n - 1), [2.5] * n, [-1.0] * (n - 1) + [0.0]]))
    b = random.normal(size=n).astype(dtype)
    found = isofold.cg(matrix, b, rtol=0.0, maxiter=5000)
    # Beyond what its dtype can hold of a residual there is nothing to be gained, and much to be lost.
    assert found.status.tolist() == [CGStatus.STAGNATED]
    assert found.true_residual_norm[0] < 10 * np.finfo(dtype).eps * np.linalg.norm(b)
    tiny = isofold.cg(matrix, np.full(n, 1e-170), rtol=1e-3)
    assert tiny.status.tolist() == [CGStatus.STAGNATED]


def test_a_norm_beyond_doubles_is_no_measure() -> None:
    b = np.full(4, 1.7e308)
    found = isofold.cg(BlockDiagonal(np.ones(4)), b, x0=0.6 * b)
    assert found.status.tolist() == [CGStatus.NOT_FINITE]
    assert isofold.cg(BlockDiagonal(np.ones(4)), b, x0=b).converged.all()


def test_systems_without_unknowns() -> None:
    found = isofold.cg(BlockDiagonal(np.ones(0)), np.zeros((3, 0)))
    assert found.x.shape == (3, 0)
    assert found.status.tolist() == [CGStatus.EMPTY] * 3


def test_rows_keep_their_own_offsets() -> None:
    offsets = np.arange(4)
    rows = CompressedRows(offsets, [0, 1, 2], [1.0, 2.0, 4.0])
    offsets[:] = [0, 2**50, 2**50, 2**51]
    assert np.allclose(isofold.cg(rows, [1.0, 2.0, 4.0]).x, 1)
    rows.offsets[1:] = 2**50
    with pytest.raises(ValueError, match="offsets must rise from 0 to the number of indices"):
        isofold.cg(rows, [1.0, 2.0, 4.0])


def test_a_callback_sees_and_stops() -> None:
    banded, _, b, offsets = systems("float64")
    seen = []

    def watch(result: Any) -> bool:
        seen.append(result.residual_norm[-1])
        return len(seen) == 5

    found = isofold.cg(banded, b, offsets, callback=watch)
    assert len(seen) == 5
    assert found.status[-1] == CGStatus.RUNNING
    with pytest.raises(ZeroDivisionError):
        isofold.cg(banded, b, offsets, callback=lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        isofold.cg(lambda x: x / 0 if False else 1 / 0, b, offsets)


def test_a_solver_is_used_again() -> None:
    banded, _, b, offsets = systems("float32")
    solver = isofold.CGSolver(banded, b.shape, offsets, dtype=np.float32, preconditioner=banded.jacobi())
    first = solver.solve(b)
    kept = first.x.copy()
    second = solver.solve(2 * b)
    assert np.array_equal(first.x, kept)
    assert np.array_equal(second.x, 2 * kept)
    assert np.array_equal(solver.solve(b).x, kept)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: isofold.cg(Banded(np.ones((1, 3))), np.ones(2)),
            ValueError,
            "A is for 3 unknowns, but b has 2",
        ),
        (
            lambda: isofold.cg(np.eye(2), np.ones(2)),
            TypeError,
            f"A must be one of isofold.linear_maps or callable, not {np.eye(2)!r}",
        ),
        (
            lambda: isofold.cg(lambda x: x[:1], np.ones(2)),
            ValueError,
            "A gave shape (1,), but b has shape (2,)",
        ),
        (
            lambda: isofold.cg(lambda x: x * 1j, np.ones(2)),
            TypeError,
            "A gave dtype complex128, which is not of real numbers",
        ),
        (
            lambda: isofold.cg(lambda x: x, np.ones((2, 2, 2))),
            ValueError,
            "b must be 1-D, or 2-D with a system a row, but has shape (2, 2, 2)",
        ),
        (lambda: isofold.cg(lambda x: x, np.ones(2), rtol=-1), ValueError, "rtol must not be negative"),
        (
            lambda: isofold.cg(lambda x: x, np.ones(2), atol=[1, 2]),
            ValueError,
            "atol has shape (2,), but there are 1 systems",
        ),
        (
            lambda: isofold.cg(lambda x: x, np.ones(2), maxiter=1.5),
            TypeError,
            "maxiter must hold integers, not dtype float64",
        ),
        (
            lambda: isofold.cg(lambda x: x, np.ones(2), x0=np.ones(3)),
            ValueError,
            "x0 has shape (3,), but the solver is for (2,)",
        ),
        (
            lambda: isofold.cg(CompressedRows([0, 1], [10**9], [1.0], 10**9 + 1), np.ones(1)),
            ValueError,
            "a matrix of conjugate gradients is square, but has 1 rows and 1000000001 columns",
        ),
        (
            lambda: isofold.cg(lambda x: x, np.ones(2), callback=lambda _: np.ones(2)),
            ValueError,
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
        ),
        (
            lambda: CompressedRows([0, 1], [5], [1.0]),
            ValueError,
            "indices must lie from 0 to 0, but indices[0] is 5",
        ),
        (
            lambda: Banded(np.ma.masked_array(np.ones((1, 3)), [[1, 0, 0]])),
            TypeError,
            "diagonals is a masked array, whose masked values have no meaning here",
        ),
        (
            lambda: Banded(np.ones((2, 3))),
            ValueError,
            "diagonals must have shape (2 width + 1, n), but have (2, 3)",
        ),
    ],
)
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
