"""Batched preconditioned conjugate gradients, in which a system's solution is the one it has alone."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold import _native
from isofold._arrays import cuda_device, real_array, row_offsets, thread_count
from isofold.linear_maps import BuiltIn

__all__ = ["CGResult", "CGSolver", "CGStatus", "cg"]

Vector: TypeAlias = NDArray[Any]
Map: TypeAlias = BuiltIn | Callable[[Vector], ArrayLike]


class CGStatus(enum.IntEnum):
    """How a system's solve ended."""

    RUNNING = 0  # only where a callback ended the call
    CONVERGED = 1  # the true residual is within the tolerance
    MAX_ITERATIONS = 2
    INDEFINITE_OPERATOR = 3  # p . A p <= 0
    INDEFINITE_PRECONDITIONER = 4  # r . M r <= 0
    # The recursive residual is within the tolerance, the true one is not and stays; or one is too small to be
    # squared.
    STAGNATED = 5
    NOT_FINITE = 6
    EMPTY = 7


class CGResult:
    """The solutions `x`, of b's shape, and one entry a system in `iterations`, `status` (a `CGStatus`),
    `residual_norm` (of the recursive residual) and `true_residual_norm` (of b - A x)."""

    __slots__ = ("iterations", "residual_norm", "status", "true_residual_norm", "x")

    def __init__(self, x: Vector, systems: int) -> None:
        self.x = x
        self.iterations = np.zeros(systems, np.int64)
        self.status = np.zeros(systems, np.uint8)
        self.residual_norm = np.zeros(systems)
        self.true_residual_norm = np.zeros(systems)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """True for systems that have converged, and for empty ones."""
        found: NDArray[np.bool_] = np.isin(self.status, (CGStatus.CONVERGED, CGStatus.EMPTY))
        return found

    def __repr__(self) -> str:
        done = int(self.converged.sum())
        return (
            f"CGResult({done} of {self.status.size} systems converged, "
            f"at most {self.iterations.max(initial=0)} iterations)"
        )


class CGSolver:
    """Solves batches of one shape again and again, in memory that is allocated once.

    Parameters are those of `cg`; `solve` takes b and x0. Not for several threads at a time.
    """

    def __init__(
        self,
        A: Map,
        shape: int | tuple[int, ...],
        offsets: ArrayLike | None = None,
        *,
        dtype: Any = np.float64,
        preconditioner: Map | None = None,
        rtol: ArrayLike = 1e-5,
        atol: ArrayLike = 0.0,
        maxiter: ArrayLike | None = None,
        replace_every: int = 0,
        threads: int | None = None,
    ) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise TypeError(f"dtype must be float32 or float64, not {self.dtype}")
        if not 1 <= len(self.shape) <= 2:
            raise ValueError(f"b must be 1-D, or 2-D with a system a row, but has shape {self.shape}")
        total = int(np.prod(self.shape, dtype=np.int64))
        self._offsets = None
        if offsets is not None:
            if len(self.shape) != 1:
                raise ValueError(f"offsets cut a 1-D b into systems, but b has shape {self.shape}")
            self._offsets = row_offsets(offsets, total)
            self.systems = self._offsets.size - 1
        else:
            self.systems = 1 if len(self.shape) == 1 else self.shape[0]
        self._length = None if len(self.shape) == 1 else self.shape[1]
        self._tolerances = (*_tolerance(rtol, "rtol", self.systems), *_tolerance(atol, "atol", self.systems))
        self._most = _iterations(maxiter, self.systems)
        self._replace_every = _count(replace_every, "replace_every")
        self._threads = thread_count(threads)
        self._work = [np.zeros(total, self.dtype) for _ in range(5)]
        ragged = self._offsets is not None
        size = _native.conjugate_gradient_scratch(total, self.systems, ragged, False)
        self._scratch = np.zeros(size, np.uint8)
        _, r, z, p, q = self._work
        self._matrix = self._map(A, "A", p, q)
        self._preconditioner = (
            None if preconditioner is None else self._map(preconditioner, "preconditioner", r, z)
        )

    def _map(self, given: Map, name: str, source: Vector, target: Vector) -> Any:
        if isinstance(given, BuiltIn):
            if given.size != target.size:
                raise ValueError(f"{name} is for {given.size} unknowns, but b has {target.size}")
            length = self._length if self._offsets is None else None
            return given.native(self.dtype.name, self._offsets, length)
        if not callable(given):
            raise TypeError(f"{name} must be one of isofold.linear_maps or callable, not {given!r}")
        shape = self.shape

        def apply() -> None:
            found = np.asarray(given(source.reshape(shape)))
            if found.shape != shape:
                raise ValueError(f"{name} gave shape {found.shape}, but b has shape {shape}")
            if found.dtype.kind not in "biuf":
                raise TypeError(f"{name} gave dtype {found.dtype}, which is not of real numbers")
            target.reshape(shape)[...] = found

        return apply

    def solve(
        self,
        b: ArrayLike,
        x0: ArrayLike | None = None,
        *,
        callback: Callable[[CGResult], Any] | None = None,
    ) -> CGResult:
        """As `cg`. The result's arrays are its own."""
        x, r, z, p, q = self._work
        right_side = self._given(b, "b")
        x[...] = 0 if x0 is None else self._given(x0, "x0")
        result = CGResult(x.reshape(self.shape), self.systems)
        rtol, rtol_of_all, atol, atol_of_all = self._tolerances
        _native.conjugate_gradient(
            device=-1,
            b=right_side,
            x=x,
            r=r,
            z=z,
            p=p,
            q=q,
            matrix=self._matrix,
            preconditioner=self._preconditioner,
            offsets=self._offsets,
            row_length=self._length if self._offsets is None else None,
            rtol=rtol,
            rtol_of_all=rtol_of_all,
            atol=atol,
            atol_of_all=atol_of_all,
            maxiter=self._most[0],
            maxiter_of_all=self._most[1],
            replace_every=self._replace_every,
            iteration_limit=-1,
            check_every=0,
            callback=None if callback is None else lambda: callback(result),
            iterations=result.iterations,
            status=result.status,
            residual_norm=result.residual_norm,
            true_residual_norm=result.true_residual_norm,
            scratch=self._scratch,
            threads=self._threads,
            stream=0,
        )
        result.x = result.x.copy()
        return result

    def _given(self, array: ArrayLike, name: str) -> Vector:
        found = real_array(array, name)
        if found.shape != self.shape:
            raise ValueError(f"{name} has shape {found.shape}, but the solver is for {self.shape}")
        return np.ascontiguousarray(found, dtype=self.dtype).reshape(-1)


def cg(
    A: Map,
    b: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    x0: ArrayLike | None = None,
    preconditioner: Map | None = None,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: ArrayLike | None = None,
    replace_every: int = 0,
    callback: Callable[[CGResult], Any] | None = None,
    threads: int | None = None,
) -> CGResult:
    """Solves a batch of symmetric positive definite systems A x = b by preconditioned conjugate gradients.

    Every scalar of the method is an exact dot product or norm of the system's own elements, rounded once to
    float64, and so with the maps of `isofold.linear_maps` a system's iterates, iterations and status are to
    the bit those that it has alone: neither siblings nor their number, order or fate play a part. A system
    that is done is frozen; one with a NaN touches no other.

    Parameters
    ----------
    A : one of `isofold.linear_maps`, or callable
        A callable gets the concatenated vector, of b's shape, which it must not change, and returns A x; what
        is promised about bits is then as good as the callable's.
    b : array_like, 1-D, or 2-D with one system a row
        float32 is solved in float32, everything else in float64.
    offsets : array_like of integers, shape (systems + 1,), optional
        Cuts a 1-D b: system s is ``b[offsets[s]:offsets[s + 1]]``.
    x0 : array_like of b's shape, optional
        The first guess; zeros.
    preconditioner : as A, optional
        An approximation of A's inverse, symmetric positive definite: ``A.jacobi()``, ``A.block_jacobi(35)``.
    rtol, atol : float, or one for each system
        A system has converged when the norm of b - A x is at most max(rtol |b|, atol).
    maxiter : int, or one for each system, optional
        By default the system's own number of unknowns.
    replace_every : int
        After so many iterations r is computed anew as b - A x, and the directions start afresh; 0: only where
        a residual seems small enough.
    callback : callable, optional
        Called after every step with the result so far (x too); a true answer ends the call.
    threads : int, optional
        As in `isofold.segment_sum`. Changes no bit.

    Returns
    -------
    CGResult

    Raises
    ------
    ValueError, TypeError
        Shapes, offsets, tolerances or types that do not fit.

    Notes
    -----
    Where the recursive residual is within the tolerance, the true one is computed; if that is not, the method
    goes on from it, until it no longer halves: `CGStatus.STAGNATED`. x, r and p are updated in float64 and
    rounded to b's dtype, an element at a time.

    Examples
    --------
    >>> import isofold
    >>> from isofold.linear_maps import Banded
    >>> A = Banded([[0, -1, -1, 0, -1], [2, 2, 2, 2, 2], [-1, -1, 0, -1, 0]])
    >>> isofold.cg(A, [1.0, 0.0, 1.0, 3.0, 0.0], [0, 3, 5]).x.round(6).tolist()
    [1.0, 1.0, 1.0, 2.0, 1.0]
    """
    if cuda_device(b) is not None:
        raise TypeError("b is in the memory of a CUDA device: isofold.torch.cg solves there")
    right_side = real_array(b, "b")
    dtype = np.float32 if right_side.dtype == np.float32 else np.float64
    solver = CGSolver(
        A,
        right_side.shape,
        offsets,
        dtype=dtype,
        preconditioner=preconditioner,
        rtol=rtol,
        atol=atol,
        maxiter=maxiter,
        replace_every=replace_every,
        threads=threads,
    )
    return solver.solve(right_side, x0, callback=callback)


def _tolerance(given: ArrayLike, name: str, systems: int) -> tuple[NDArray[np.float64] | None, float]:
    array = np.asarray(given, dtype=np.float64)
    if not (array >= 0).all():
        raise ValueError(f"{name} must not be negative")
    if array.ndim == 0:
        return None, float(array)
    if array.shape != (systems,):
        raise ValueError(f"{name} has shape {array.shape}, but there are {systems} systems")
    return np.ascontiguousarray(array), 0.0


def _iterations(given: ArrayLike | None, systems: int) -> tuple[NDArray[np.int64] | None, int]:
    if given is None:
        return None, -1
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise TypeError(f"maxiter must hold integers, not dtype {array.dtype}")
    if (array < 0).any():
        raise ValueError("maxiter must not be negative")
    if array.ndim == 0:
        return None, int(array)
    if array.shape != (systems,):
        raise ValueError(f"maxiter has shape {array.shape}, but there are {systems} systems")
    return np.ascontiguousarray(array, dtype=np.int64), -1


def _count(given: int, name: str) -> int:
    count = operator.index(given)
    if count < 0:
        raise ValueError(f"{name} must not be negative, but is {count}")
    return count
