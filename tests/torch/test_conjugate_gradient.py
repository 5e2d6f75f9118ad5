"""Conjugate gradients on tensors: NumPy's bits, derivatives, solvers that are used again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tensors import draw, leaves, same
from torch import Tensor
from torch.autograd import gradcheck

import isofold
from isofold.linear_maps import Banded as NumpyBanded
from isofold.torch.conjugate_gradient import CGSolver, cg
from isofold.torch.linear_maps import Banded, BlockDiagonal, CompressedRows, NormalEquations

OFFSETS = torch.tensor([0, 3, 3, 40, 300])


def diagonals(dtype: torch.dtype) -> Tensor:
    values = torch.full((3, 300), -1.0, dtype=dtype)
    values[1] = 2.01
    return values


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("jacobi", [False, True])
def test_bits_of_numpy(dtype: torch.dtype, jacobi: bool) -> None:
    a, b = Banded(diagonals(dtype)), draw(300, dtype=dtype)
    host = NumpyBanded(a.values.numpy())
    expected = isofold.cg(host, b.numpy(), OFFSETS.numpy(), preconditioner=host.jacobi() if jacobi else None)
    found = cg(a, b, OFFSETS, preconditioner=a.jacobi() if jacobi else None)
    for name in ("x", "iterations", "status", "residual_norm", "true_residual_norm"):
        assert same(getattr(found, name), torch.from_numpy(getattr(expected, name)))
    assert found.converged.all()


def test_rectangles_and_callables() -> None:
    root = draw(3, 20, 20)
    matrices = root @ root.mT + torch.eye(20)
    b = draw(3, 20, seed=1)
    expected = torch.linalg.solve(matrices, b)
    for a in (BlockDiagonal(matrices), lambda x: torch.einsum("sij,sj->si", matrices, x)):
        found = cg(a, b, rtol=1e-11, maxiter=200)
        assert torch.allclose(found.x, expected, rtol=1e-6)
    assert cg(BlockDiagonal(matrices), b, x0=found.x, rtol=1e-8).iterations.tolist() == [0, 0, 0]


def dense_as_rows(matrix: Tensor) -> CompressedRows:
    n = len(matrix)
    offsets = torch.arange(0, n * n + 1, n)
    return CompressedRows(offsets, torch.arange(n).repeat(n), matrix.reshape(-1))


def test_gradients() -> None:
    root = draw(6, 6)
    (matrix,) = leaves(root @ root.mT + torch.eye(6))
    (b,) = leaves(draw(6, seed=1))

    def by_rows(matrix: Tensor, b: Tensor) -> Tensor:
        # Symmetric, whichever entry is moved.
        half = (matrix + matrix.mT) / 2
        return cg(dense_as_rows(half), b, rtol=1e-14, maxiter=100).x

    def by_blocks(matrix: Tensor, b: Tensor) -> Tensor:
        return cg(BlockDiagonal(((matrix + matrix.mT) / 2)[None]), b, rtol=1e-14, maxiter=100).x

    assert gradcheck(by_rows, (matrix, b), atol=1e-5)
    assert gradcheck(by_blocks, (matrix, b), atol=1e-5)
    offsets = torch.tensor([0, 2, 6])

    def banded(off: Tensor, main: Tensor, b: Tensor) -> Tensor:
        lower = torch.cat([off.new_zeros(1), off])
        upper = torch.cat([off, off.new_zeros(1)])
        return cg(Banded(torch.stack([lower, main, upper])), b, offsets, rtol=1e-14, maxiter=100).x

    off, main = leaves(draw(5, seed=2) * 0.3, draw(6, seed=3).abs() + 2)
    assert gradcheck(banded, (off, main, b), atol=1e-5)


def test_normal_equations() -> None:
    dense = draw(9, 6) * (draw(9, 6, seed=4) > 0)
    places = dense.nonzero()
    counts = torch.bincount(places[:, 0], minlength=9).cumsum(0)
    offsets = torch.cat([counts.new_zeros(1), counts])
    (values,) = leaves(dense[places[:, 0], places[:, 1]])
    (b,) = leaves(draw(6, seed=1))

    def solution(values: Tensor, b: Tensor) -> Tensor:
        matrix = NormalEquations(CompressedRows(offsets, places[:, 1], values, 6), damping=0.5)
        return cg(matrix, b, preconditioner=matrix.jacobi(), rtol=1e-14, maxiter=100).x

    full = dense.T @ dense + 0.5 * torch.eye(6)
    assert torch.allclose(solution(values, b), torch.linalg.solve(full, b), rtol=1e-8)
    assert gradcheck(solution, (values, b), atol=1e-5)


# JAX 40254: a tiny cotangent gave NaN.
def test_a_tiny_cotangent_is_scaled() -> None:
    a = Banded(diagonals(torch.float32))
    (b,) = leaves(draw(300, dtype=torch.float32))
    x = cg(a, b, OFFSETS, rtol=1e-6).x
    g = draw(300, seed=1, dtype=torch.float32)
    (usual,) = torch.autograd.grad(x, b, g, retain_graph=True)
    (tiny,) = torch.autograd.grad(x, b, g * 2.0**-100, retain_graph=True)
    assert torch.isfinite(tiny).all()
    assert torch.allclose(tiny * 2.0**100, usual, rtol=1e-4)
    (zero,) = torch.autograd.grad(x, b, torch.zeros_like(g))
    assert not zero.any()


def test_a_solver_is_used_again() -> None:
    a, b = Banded(diagonals(torch.float64)), draw(300)
    solver = CGSolver(a, b, OFFSETS, preconditioner=a.jacobi())
    first = solver.solve(b)
    kept = first.x.clone()
    assert same(solver.solve(2 * b).x, 2 * kept)
    assert same(first.x, kept)
    seen = []
    solver.solve(b, callback=lambda result: seen.append(float(result.residual_norm[3])))
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cg(Banded(torch.ones(3, 2)), torch.ones(3)), ValueError, "A is for 2 unknowns, but b has 3"),
        (
            lambda: cg(5, torch.ones(3)),
            TypeError,
            "A must be a map of isofold.torch.linear_maps or callable, not 5",
        ),
        (
            lambda: cg(lambda x: x, torch.ones(3).half()),
            TypeError,
            "b must be float32 or float64, not torch.float16",
        ),
        (
            lambda: cg(lambda x: x, torch.ones(3), torch.tensor([0, 2])),
            ValueError,
            "offsets must end at the number of elements, 3, but offsets[1] is 2",
        ),
        (
            lambda: cg(lambda x: x, torch.ones(3), rtol=torch.ones(2)),
            ValueError,
            "rtol has shape (2,), but there are 1 systems",
        ),
        (
            lambda: cg(lambda x: x, torch.ones(3), x0=torch.ones(2)),
            ValueError,
            "x0 is torch.float32 of shape (2,) on cpu, "
            "but the solver is for torch.float32 of shape (3,) on cpu",
        ),
        # copy_ would have repeated these for all unknowns.
        (
            lambda: cg(lambda x: x.sum(), torch.ones(2)),
            ValueError,
            "A gave shape (), but b has shape (2,)",
        ),
        (
            lambda: cg(lambda x: x * 1j, torch.ones(2)),
            TypeError,
            "A gave torch.complex64, which is not of real numbers",
        ),
        (
            lambda: cg(lambda x: x, torch.ones(2, 2), preconditioner=lambda x: x[0]),
            ValueError,
            "preconditioner gave shape (2,), but b has shape (2, 2)",
        ),
        (
            lambda: cg(
                CompressedRows(torch.tensor([0, 1]), torch.tensor([2]), torch.ones(1), 3), torch.ones(1)
            ),
            ValueError,
            "a matrix of conjugate gradients is square, but has 1 rows and 3 columns",
        ),
        (
            lambda: cg(
                CompressedRows(torch.tensor([0, 2**40, 1]), torch.tensor([0]), torch.ones(1)), torch.ones(2)
            ),
            ValueError,
            "offsets must rise from 0 to the number of indices",
        ),
    ],
)
def test_refused(call: object, error: type[Exception], message: str) -> None:
    assert callable(call)
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_systems_without_unknowns() -> None:
    found = cg(BlockDiagonal(torch.ones(0)), torch.zeros(3, 0))
    assert found.x.shape == (3, 0)
    assert found.status.tolist() == [7, 7, 7]


def test_results_are_arrays_of_torch() -> None:
    found = cg(BlockDiagonal(torch.ones(2)), torch.ones(2))
    assert isinstance(found.status, Tensor)
    assert np.asarray(found.status).tolist() == [1]
