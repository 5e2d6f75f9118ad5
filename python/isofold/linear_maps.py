"""Linear maps for `isofold.cg`: block-diagonal matrices, one block for each system.

An element of A x is the sum over its own row, in order, in float64, rounded once to the vectors' dtype: so
that nothing else of a batch has a part in it, and a system is solved as it is alone.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold import _native
from isofold._arrays import unmasked

__all__ = ["Banded", "BlockDiagonal", "CompressedRows", "NormalEquations"]

_HOST = -1
_Systems: TypeAlias = "tuple[NDArray[np.int64] | None, int | None]"  # offsets, or a length of all


@runtime_checkable
class BuiltIn(Protocol):
    """A matrix that the library itself applies."""

    @property
    def size(self) -> int: ...

    def native(self, dtype: str, offsets: NDArray[np.int64] | None, length: int | None) -> Any: ...


def _values(array: ArrayLike, name: str) -> NDArray[Any]:
    found = unmasked(array, name)
    if found.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        if found.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold real numbers, not dtype {found.dtype}")
        found = found.astype(np.float64)
    return found


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array).reshape(-1)


def _integers(array: ArrayLike, name: str) -> NDArray[np.int64]:
    found = unmasked(array, name)
    if found.ndim != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {found.shape}")
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, not dtype {found.dtype}")
    return np.ascontiguousarray(found, dtype=np.int64)


class CompressedRows:
    """A matrix by compressed rows, as SciPy's CSR arrays have it.

    Row i holds ``values[offsets[i]:offsets[i + 1]]`` at the columns ``indices[...]``, which count through the
    concatenated vector. Row i's columns must lie in its system; an entry elsewhere couples systems, and then
    what is said of bits does not hold. No entry may lie outside of the matrix.
    """

    def __init__(
        self, offsets: ArrayLike, indices: ArrayLike, values: ArrayLike, columns: int | None = None
    ) -> None:
        # A copy: what is checked here must not change under a solver.
        self.offsets = _integers(offsets, "offsets").copy()
        self.indices = _integers(indices, "indices")
        self.values = _flat(_values(values, "values"))
        if self.offsets.size == 0 or self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any():
            raise ValueError("offsets must rise from 0")
        if self.offsets[-1] != self.indices.size or self.indices.size != self.values.size:
            raise ValueError(
                f"offsets end at {self.offsets[-1]}, but there are {self.indices.size} indices and "
                f"{self.values.size} values"
            )
        self.columns = self.offsets.size - 1 if columns is None else int(columns)
        outside = (self.indices < 0) | (self.indices >= self.columns)
        if outside.any():
            at = int(np.argmax(outside))
            raise ValueError(
                f"indices must lie from 0 to {self.columns - 1}, but indices[{at}] is {self.indices[at]}"
            )

    @classmethod
    def from_scipy(cls, matrix: Any) -> CompressedRows:
        """Of a SciPy sparse array or matrix of any format."""
        rows = matrix.tocsr()
        return cls(rows.indptr, rows.indices, rows.data, rows.shape[1])

    @property
    def size(self) -> int:
        return self.offsets.size - 1

    def transpose(self) -> CompressedRows:
        rows = np.repeat(np.arange(self.size), np.diff(self.offsets))
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.columns)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return CompressedRows(offsets, rows[order], self.values[order], self.size)

    def diagonal(self) -> NDArray[Any]:
        rows = np.repeat(np.arange(self.size), np.diff(self.offsets))
        on = self.indices == rows
        found = np.zeros(self.size, self.values.dtype)
        np.add.at(found, rows[on], self.values[on])
        return found

    def jacobi(self) -> BlockDiagonal:
        """The inverse of the diagonal, as a preconditioner."""
        return BlockDiagonal(1 / self.diagonal())

    def block_jacobi(self, size: int) -> BlockDiagonal:
        """The inverses of the blocks of `size` unknowns along the diagonal, as a preconditioner."""
        if size < 1 or self.size % size:
            raise ValueError(f"size must divide the number of rows, {self.size}, but is {size}")
        rows = np.repeat(np.arange(self.size), np.diff(self.offsets))
        inside = rows // size == self.indices // size
        blocks = np.zeros((self.size // size, size, size), self.values.dtype)
        where = (rows[inside] // size, rows[inside] % size, self.indices[inside] % size)
        np.add.at(blocks, where, self.values[inside])
        return BlockDiagonal(np.linalg.inv(blocks))

    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        return self.offsets, self.indices, self.values

    def native(self, dtype: str, offsets: NDArray[np.int64] | None, length: int | None) -> Any:
        return _native.compressed_map(_HOST, dtype, *self._arrays(), self.columns)


class Banded:
    """A matrix by its diagonals, of shape (2 width + 1, n): row d + width is the one d places above the main.

    ``(A x)[i]`` sums ``diagonals[d + width, i] * x[i + d]``; entries that would leave i's system are not
    looked at.
    """

    def __init__(self, diagonals: ArrayLike) -> None:
        self.diagonals = np.ascontiguousarray(_values(diagonals, "diagonals"))
        if self.diagonals.ndim != 2 or self.diagonals.shape[0] % 2 == 0:
            raise ValueError(f"diagonals must have shape (2 width + 1, n), but have {self.diagonals.shape}")
        self.width = self.diagonals.shape[0] // 2

    @property
    def size(self) -> int:
        return int(self.diagonals.shape[1])

    def jacobi(self) -> BlockDiagonal:
        """The inverse of the diagonal, as a preconditioner."""
        return BlockDiagonal(1 / self.diagonals[self.width])

    def native(self, dtype: str, offsets: NDArray[np.int64] | None, length: int | None) -> Any:
        return _native.banded_map(_HOST, dtype, self.width, _flat(self.diagonals), self.size, offsets, length)


class BlockDiagonal:
    """Square blocks of one size along the diagonal: of shape (blocks, size, size), or (n,) for a diagonal."""

    def __init__(self, blocks: ArrayLike) -> None:
        self.blocks = np.ascontiguousarray(_values(blocks, "blocks"))
        if self.blocks.ndim == 1:
            self.blocks = self.blocks[:, None, None]
        if self.blocks.ndim != 3 or self.blocks.shape[1] != self.blocks.shape[2]:
            raise ValueError(f"blocks must have shape (blocks, size, size), but have {self.blocks.shape}")

    @property
    def size(self) -> int:
        return int(self.blocks.shape[0] * self.blocks.shape[1])

    def native(self, dtype: str, offsets: NDArray[np.int64] | None, length: int | None) -> Any:
        return _native.block_map(_HOST, dtype, self.blocks.shape[1] or 1, _flat(self.blocks), self.size)


class NormalEquations:
    """J^T J + damping, applied as two products with J's rows and with those of its transpose."""

    def __init__(self, jacobian: CompressedRows, damping: float = 0.0) -> None:
        self.jacobian = jacobian
        self.transposed = jacobian.transpose()
        self.damping = float(damping)

    @property
    def size(self) -> int:
        return self.jacobian.columns

    def _products(self) -> CompressedRows:
        """The squares of J's entries, at their places in its transpose."""
        j = self.transposed
        return CompressedRows(j.offsets, j.indices, j.values.astype(np.float64) ** 2, j.columns)

    def jacobi(self) -> BlockDiagonal:
        """The inverse of the diagonal, as a preconditioner."""
        squares = self._products()
        sums = np.zeros(self.size)
        np.add.at(sums, np.repeat(np.arange(self.size), np.diff(squares.offsets)), squares.values)
        return BlockDiagonal((1 / (sums + self.damping)).astype(self.jacobian.values.dtype))

    def native(self, dtype: str, offsets: NDArray[np.int64] | None, length: int | None) -> Any:
        between = np.empty(self.jacobian.size, dtype)
        return _native.normal_map(
            _HOST, dtype, *self.jacobian._arrays(), *self.transposed._arrays(), self.damping, between
        )
