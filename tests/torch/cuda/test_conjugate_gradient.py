"""Conjugate gradients on a GPU: the CPU's bits, waiting for nothing, in graphs."""

from __future__ import annotations

import device_libraries
import pytest
import torch
from tensors import draw, leaves, same
from torch import Tensor

from isofold.torch.conjugate_gradient import CGResult, CGSolver, cg
from isofold.torch.linear_maps import Banded, BlockDiagonal, CompressedRows

device_libraries.skip_without_gpu()

LENGTHS = [3, 0, 37, 1000, 260, 1, 5000]
OFFSETS = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0).tolist()])
TOTAL = sum(LENGTHS)
FIELDS = ("x", "iterations", "status", "residual_norm", "true_residual_norm")


def diagonals(dtype: torch.dtype) -> Tensor:
    values = torch.full((3, TOTAL), -1.0, dtype=dtype)
    values[1] = 2.001
    return values


def rows(values: Tensor) -> CompressedRows:
    offsets, indices, entries = [0], [], []
    for begin, end in zip(OFFSETS[:-1].tolist(), OFFSETS[1:].tolist(), strict=True):
        for i in range(begin, end):
            inside = [j for j in (i - 1, i, i + 1) if begin <= j < end]
            indices += inside
            entries += [values[j - i + 1, i] for j in inside]
            offsets.append(len(indices))
    return CompressedRows(torch.tensor(offsets), torch.tensor(indices), torch.stack(entries))


def on_gpu(a: Banded | CompressedRows) -> Banded | CompressedRows:
    if isinstance(a, Banded):
        return Banded(a.values.cuda())
    return CompressedRows(a.offsets.cuda(), a.indices.cuda(), a.values.cuda())


def agree(found: CGResult, expected: CGResult) -> None:
    for name in FIELDS:
        assert same(getattr(found, name).cpu(), getattr(expected, name)), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("jacobi", [False, True])
@pytest.mark.parametrize("kind", ["banded", "rows"])
def test_bits_of_the_cpu(dtype: torch.dtype, jacobi: bool, kind: str) -> None:
    a = Banded(diagonals(dtype)) if kind == "banded" else rows(diagonals(dtype))
    b = draw(TOTAL, dtype=dtype)
    b[50] = float("nan")
    expected = cg(a, b, OFFSETS, preconditioner=a.jacobi() if jacobi else None, maxiter=200)
    x, cuts, given = on_gpu(a), OFFSETS.cuda(), b.cuda()
    for every in (0, 7):
        preconditioner = BlockDiagonal(a.jacobi().values.cuda()) if jacobi else None
        solver = CGSolver(x, given, cuts, preconditioner=preconditioner, maxiter=200, check_every=every)
        torch.cuda.set_sync_debug_mode("error" if every == 0 else "default")
        try:
            found = solver.solve(given)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        agree(found, expected)


# Warp issue 1391: a batched solve inside a captured loop must not allocate anew.
def test_captured_in_a_graph() -> None:
    a, cuts = on_gpu(Banded(diagonals(torch.float32))), OFFSETS.cuda()
    b = draw(TOTAL, dtype=torch.float32).cuda()
    solver = CGSolver(a, b, cuts, maxiter=40)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        solver.solve(b)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = solver.solve(b)
    before = torch.cuda.memory_allocated()
    for seed in (3, 4):
        b.copy_(draw(TOTAL, seed=seed, dtype=torch.float32))
        graph.replay()
        agree(found, cg(Banded(diagonals(torch.float32)), b.cpu(), OFFSETS, maxiter=40))
    assert torch.cuda.memory_allocated() <= before


def test_callables_and_gradients() -> None:
    root = draw(3, 20, 20)
    matrices = (root @ root.mT + torch.eye(20)).cuda()
    b = draw(3, 20, seed=1).cuda()
    found = cg(lambda x: torch.einsum("sij,sj->si", matrices, x), b, rtol=1e-11, maxiter=100)
    assert torch.allclose(found.x, torch.linalg.solve(matrices, b), rtol=1e-6)
    gradients = []
    for device in ("cpu", "cuda"):
        (m, v) = leaves(matrices.to(device), b.to(device))
        cg(BlockDiagonal(m), v, rtol=1e-12, maxiter=100).x.square().sum().backward()
        gradients.append((m.grad.cpu(), v.grad.cpu()))
    for x, y in zip(*gradients, strict=True):
        assert torch.allclose(x, y, rtol=1e-9)


def test_lengths_are_not_read() -> None:
    with pytest.raises(ValueError, match="need maxiter or iteration_limit"):
        cg(on_gpu(Banded(diagonals(torch.float32))), torch.ones(TOTAL, device="cuda"), OFFSETS.cuda())
