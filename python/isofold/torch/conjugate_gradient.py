"""Batched preconditioned conjugate gradients on tensors, differentiable by the implicit adjoint."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from isofold import _native
from isofold.conjugate_gradient import CGStatus
from isofold.torch._segments import spread
from isofold.torch._systems import NAMES, Cut, hand, place, stream_of
from isofold.torch.linear_maps import BUILT_IN, BuiltIn
from isofold.torch.segmented import segment_norm

Map: TypeAlias = BuiltIn | Callable[[Tensor], Tensor]


class CGResult:
    """The solutions `x`, of b's shape and differentiable, and one entry a system in each of the others.

    `iterations`; `status`, an `isofold.CGStatus`; `residual_norm`, of the recursive residual;
    `true_residual_norm`, of b - A x.
    """

    __slots__ = ("iterations", "residual_norm", "status", "true_residual_norm", "x")

    def __init__(self, x: Tensor, systems: int) -> None:
        self.x = x
        self.iterations = torch.zeros(systems, dtype=torch.int64, device=x.device)
        self.status = torch.zeros(systems, dtype=torch.uint8, device=x.device)
        self.residual_norm = torch.zeros(systems, dtype=torch.float64, device=x.device)
        self.true_residual_norm = torch.zeros(systems, dtype=torch.float64, device=x.device)

    @property
    def converged(self) -> Tensor:
        """True for systems that have converged, and for empty ones."""
        return (self.status == CGStatus.CONVERGED) | (self.status == CGStatus.EMPTY)


class CGSolver:
    """Solves batches of one shape again and again, in memory that is allocated once.

    Parameters are those of `cg`; `like` is a tensor of b's shape, dtype and device. On CUDA a `solve` without
    `check_every` waits for nothing, allocates only its results, and may be captured in a graph. Not for
    several threads or streams at a time.
    """

    def __init__(
        self,
        A: Map,
        like: Tensor,
        offsets: Tensor | None = None,
        *,
        preconditioner: Map | None = None,
        rtol: float | Tensor = 1e-5,
        atol: float | Tensor = 0.0,
        maxiter: int | Tensor | None = None,
        iteration_limit: int | None = None,
        replace_every: int = 0,
        check_every: int = 0,
    ) -> None:
        if like.dtype not in NAMES:
            raise TypeError(f"b must be float32 or float64, not {like.dtype}")
        if like.is_cuda and _native.cuda_fault():
            raise RuntimeError(_native.cuda_fault())
        self._like = torch.empty(0, dtype=like.dtype, device=like.device)
        self._cut = cut = Cut(tuple(like.shape), offsets, like)
        self._matrix = A
        self._preconditioner = preconditioner
        self._tolerances = (*self._tolerance(rtol, "rtol"), *self._tolerance(atol, "atol"))
        self._most = self._iterations(maxiter)
        self._limit = -1 if iteration_limit is None else int(iteration_limit)
        if like.is_cuda and self._limit < 0:
            if isinstance(maxiter, Tensor):
                raise ValueError("on CUDA maxiter of every system needs an iteration_limit beside it")
            if cut.offsets is not None and maxiter is None:
                raise ValueError(
                    "on CUDA systems by offsets need maxiter or iteration_limit: the lengths, its default, "
                    "are in the device's memory"
                )
        if replace_every < 0 or check_every < 0:
            raise ValueError("replace_every and check_every must not be negative")
        self._replace_every, self._check_every = int(replace_every), int(check_every)
        total = like.numel()
        self._work = [torch.zeros(total, dtype=like.dtype, device=like.device) for _ in range(5)]
        size = _native.conjugate_gradient_scratch(total, cut.systems, cut.offsets is not None, like.is_cuda)
        self._scratch = torch.zeros(size, dtype=torch.uint8, device=like.device)
        for given, name in ((A, "A"), (preconditioner, "preconditioner")):
            if isinstance(given, BUILT_IN):
                if given.size != total:
                    raise ValueError(f"{name} is for {given.size} unknowns, but b has {total}")
                if given.values.device != like.device:
                    raise ValueError(f"{name} is on {given.values.device}, but b is on {like.device}")
            elif given is not None and not callable(given):
                raise TypeError(
                    f"{name} must be a map of isofold.torch.linear_maps or callable, not {given!r}"
                )

    def _tolerance(self, given: float | Tensor, name: str) -> tuple[Tensor | None, float]:
        if not isinstance(given, Tensor):
            if not given >= 0:
                raise ValueError(f"{name} must not be negative")
            return None, float(given)
        return self._by_system(given, name, torch.float64), 0.0

    def _iterations(self, given: int | Tensor | None) -> tuple[Tensor | None, int]:
        if given is None:
            return None, -1
        if isinstance(given, Tensor):
            return self._by_system(given, "maxiter", torch.int64), -1
        if given < 0:
            raise ValueError("maxiter must not be negative")
        return None, int(given)

    def _by_system(self, given: Tensor, name: str, dtype: torch.dtype) -> Tensor:
        if given.shape != (self._cut.systems,):
            raise ValueError(
                f"{name} has shape {tuple(given.shape)}, but there are {self._cut.systems} systems"
            )
        return given.detach().to(device=self._like.device, dtype=dtype).contiguous()

    def _map(self, given: Map | None, name: str, source: Tensor, target: Tensor, stream: int) -> Any:
        if given is None:
            return None
        if isinstance(given, BUILT_IN):
            return given.native(NAMES[self._like.dtype], self._cut, stream)
        shape = self._cut.shape

        def apply() -> None:
            with torch.no_grad():
                found = given(source.view(shape))
                # copy_ would repeat a value, or a row, for all.
                if found.shape != torch.Size(shape):
                    raise ValueError(f"{name} gave shape {tuple(found.shape)}, but b has shape {shape}")
                if found.is_complex():
                    raise TypeError(f"{name} gave {found.dtype}, which is not of real numbers")
                target.view(shape).copy_(found)

        return apply

    def solve(
        self, b: Tensor, x0: Tensor | None = None, *, callback: Callable[[CGResult], Any] | None = None
    ) -> CGResult:
        """As `cg`."""
        for tensor, name in ((b, "b"), (x0, "x0")):
            if tensor is not None and (
                tuple(tensor.shape) != self._cut.shape
                or tensor.dtype != self._like.dtype
                or tensor.device != self._like.device
            ):
                raise ValueError(
                    f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)} on {tensor.device}, but the "
                    f"solver is for {self._like.dtype} of shape {self._cut.shape} on {self._like.device}"
                )
        values = self._matrix.values if isinstance(self._matrix, BUILT_IN) else None
        if torch.is_grad_enabled() and (b.requires_grad or (values is not None and values.requires_grad)):
            kept: list[CGResult] = []
            x = _Adjoint.apply(b, values, self, x0, callback, kept)
            kept[0].x = x
            return kept[0]
        return self._solve(b, x0, callback)

    def _solve(self, b: Tensor, x0: Tensor | None, callback: Callable[[CGResult], Any] | None) -> CGResult:
        x, r, z, p, q = self._work
        with torch.no_grad():
            if x0 is None:
                x.zero_()
            else:
                x.copy_(x0.detach().reshape(-1))
            right_side = b.detach().contiguous().reshape(-1)
        result = CGResult(x.view(self._cut.shape), self._cut.systems)
        stream = stream_of(x)
        rtol, rtol_of_all, atol, atol_of_all = self._tolerances
        guard: Any = torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()
        with guard:
            _native.conjugate_gradient(
                device=place(x),
                b=hand(right_side, stream),
                x=hand(x, stream),
                r=hand(r, stream),
                z=hand(z, stream),
                p=hand(p, stream),
                q=hand(q, stream),
                matrix=self._map(self._matrix, "A", p, q, stream),
                preconditioner=self._map(self._preconditioner, "preconditioner", r, z, stream),
                offsets=hand(self._cut.offsets, stream),
                row_length=self._cut.length if self._cut.offsets is None else None,
                rtol=hand(rtol, stream),
                rtol_of_all=rtol_of_all,
                atol=hand(atol, stream),
                atol_of_all=atol_of_all,
                maxiter=hand(self._most[0], stream),
                maxiter_of_all=self._most[1],
                replace_every=self._replace_every,
                iteration_limit=self._limit,
                check_every=self._check_every,
                callback=None if callback is None else lambda: callback(result),
                iterations=hand(result.iterations, stream),
                status=hand(result.status, stream),
                residual_norm=hand(result.residual_norm, stream),
                true_residual_norm=hand(result.true_residual_norm, stream),
                scratch=hand(self._scratch, stream),
                threads=0,
                stream=stream,
            )
        result.x = result.x.clone()
        return result

    def _adjoint(self, grad: Tensor) -> Tensor:
        """A^-1 g, solved with g of norm one in every system: a tiny one would not be told from zero."""
        cut = self._cut
        flat = grad.reshape(-1)
        norm = (
            segment_norm(flat, cut.offsets)
            if cut.offsets is not None
            else segment_norm(grad.reshape(cut.systems, -1) if flat.numel() else flat.reshape(cut.systems, 0))
        )
        width = spread(norm, cut.offsets, cut.segment_length, flat.shape[0])
        unit = torch.where(width != 0, flat / torch.where(width != 0, width, 1), 0)
        found = self._solve(unit.reshape(cut.shape), None, None).x.reshape(-1)
        return torch.where(width != 0, found * width, 0).reshape(cut.shape)


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        b: Tensor,
        values: Tensor | None,
        solver: CGSolver,
        x0: Tensor | None,
        callback: Any,
        kept: list[CGResult],
    ) -> Tensor:
        result = solver._solve(b, x0, callback)
        kept.append(result)
        ctx.solver = solver
        ctx.save_for_backward(result.x, values)
        return result.x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, values = ctx.saved_tensors
        solver: CGSolver = ctx.solver
        adjoint = solver._adjoint(grad)
        of_values = None
        if values is not None and ctx.needs_input_grad[1]:
            matrix = solver._matrix
            assert isinstance(matrix, BUILT_IN)
            of_values = matrix.gradient(adjoint.reshape(-1), x.reshape(-1), solver._cut).to(values.dtype)
        return adjoint, of_values, None, None, None, None


def cg(
    A: Map,
    b: Tensor,
    offsets: Tensor | None = None,
    *,
    x0: Tensor | None = None,
    preconditioner: Map | None = None,
    rtol: float | Tensor = 1e-5,
    atol: float | Tensor = 0.0,
    maxiter: int | Tensor | None = None,
    iteration_limit: int | None = None,
    replace_every: int = 0,
    check_every: int = 0,
    callback: Callable[[CGResult], Any] | None = None,
) -> CGResult:
    """Solves a batch of symmetric positive definite systems by conjugate gradients, on the CPU or on CUDA.

    As `isofold.cg`, whose bits it gives on either device with `isofold.torch.linear_maps`, and:

    Parameters
    ----------
    A : CompressedRows, Banded, BlockDiagonal or NormalEquations of `isofold.torch.linear_maps`, or callable
        A callable gets the concatenated vector, of b's shape, which it must not change; on CUDA it works on
        the current stream.
    b : Tensor, float32 or float64, 1-D, or 2-D with one system a row
    iteration_limit : int, optional
        CUDA: the most iterations of any system, as many as are enqueued; needed where maxiter is a tensor.
        Systems by offsets need maxiter or this: the host does not read their lengths.
    check_every : int
        CUDA: after so many steps the host waits for the device, calls `callback` and ends if all systems are
        done; 0: it never waits.

    Notes
    -----
    x is differentiable in b and in a built-in A's values, by the adjoint system, solved with the same
    tolerances and an incoming gradient of norm one; once, and not in a callable's own parameters.
    """
    solver = CGSolver(
        A,
        b,
        offsets,
        preconditioner=preconditioner,
        rtol=rtol,
        atol=atol,
        maxiter=maxiter,
        iteration_limit=iteration_limit,
        replace_every=replace_every,
        check_every=check_every,
    )
    return solver.solve(b, x0, callback=callback)
