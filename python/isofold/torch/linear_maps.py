"""Linear maps of tensors for `isofold.torch.cg`: block-diagonal matrices, one block for each system.

As `isofold.linear_maps`, whose bits they give on the CPU and on CUDA; their values may require a gradient.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from isofold import _native
from isofold.torch._segments import spread
from isofold.torch._systems import NAMES, Cut, hand, place
from isofold.torch.segmented import segment_dot

__all__ = ["Banded", "BlockDiagonal", "CompressedRows", "NormalEquations"]


class CompressedRows:
    """A matrix by compressed rows, as `torch.sparse_csr_tensor` has it.

    Row i holds ``values[offsets[i]:offsets[i + 1]]`` at the columns ``indices[...]``, which count through the
    concatenated vector and must lie in i's system. A row with a column outside of the matrix is NaN.
    """

    def __init__(self, offsets: Tensor, indices: Tensor, values: Tensor, columns: int | None = None) -> None:
        self.offsets = offsets.to(torch.int64).contiguous()
        self.indices = indices.to(torch.int64).contiguous()
        self.values = values
        self.columns = int(offsets.shape[0]) - 1 if columns is None else int(columns)
        if values.dim() != 1 or values.shape != indices.shape:
            raise ValueError(
                f"values have shape {tuple(values.shape)}, but indices have {tuple(indices.shape)}"
            )

    @property
    def size(self) -> int:
        return int(self.offsets.shape[0]) - 1

    def _rows(self) -> Tensor:
        places = torch.arange(self.indices.shape[0], device=self.indices.device)
        return torch.searchsorted(self.offsets[1:], places, right=True).clamp_(max=max(self.size - 1, 0))

    def jacobi(self) -> BlockDiagonal:
        """The inverse of the diagonal, as a preconditioner."""
        rows = self._rows()
        values = self.values.detach()
        on = torch.where(rows == self.indices, values, 0)
        # At most one entry of a row is added to zeros.
        return BlockDiagonal(1 / values.new_zeros(self.size).index_add(0, rows, on))

    def transpose(self) -> CompressedRows:
        order = torch.argsort(self.indices, stable=True)
        ends = torch.arange(self.columns, device=self.indices.device)
        offsets = torch.searchsorted(self.indices[order], ends, right=True)
        offsets = torch.cat([offsets.new_zeros(1), offsets])
        return CompressedRows(offsets, self._rows()[order], self.values[order], self.size)

    def _arrays(self, stream: int) -> tuple[Any, Any, Any]:
        offsets, indices, values = (
            hand(t.contiguous(), stream) for t in (self.offsets, self.indices, self.values)
        )
        return offsets, indices, values

    def native(self, dtype: str, cut: Cut, stream: int) -> Any:
        return _native.compressed_map(place(self.values), dtype, *self._arrays(stream), self.columns)

    def gradient(self, adjoint: Tensor, x: Tensor, cut: Cut) -> Tensor:
        return -adjoint[self._rows()] * x[self.indices]


class Banded:
    """A matrix by its diagonals, of shape (2 width + 1, n): ``(A x)[i]`` sums
    ``diagonals[d + width, i] * x[i + d]`` over those i + d that lie in i's system."""

    def __init__(self, diagonals: Tensor) -> None:
        if diagonals.dim() != 2 or diagonals.shape[0] % 2 == 0:
            raise ValueError(f"diagonals must have shape (2 width + 1, n), but have {tuple(diagonals.shape)}")
        self.values = diagonals
        self.width = diagonals.shape[0] // 2

    @property
    def size(self) -> int:
        return int(self.values.shape[1])

    def jacobi(self) -> BlockDiagonal:
        """The inverse of the diagonal, as a preconditioner."""
        return BlockDiagonal(1 / self.values.detach()[self.width])

    def native(self, dtype: str, cut: Cut, stream: int) -> Any:
        length = cut.length if cut.offsets is None else None
        return _native.banded_map(
            place(self.values),
            dtype,
            self.width,
            hand(self.values.contiguous(), stream),
            self.size,
            hand(cut.offsets, stream),
            length,
        )

    def gradient(self, adjoint: Tensor, x: Tensor, cut: Cut) -> Tensor:
        numbers = torch.arange(cut.systems, device=x.device, dtype=torch.float64)
        system = spread(numbers, cut.offsets, cut.segment_length, x.shape[0])
        found = torch.zeros_like(self.values)
        for d in range(-self.width, self.width + 1):
            here = slice(max(0, -d), x.shape[0] - max(0, d))
            there = slice(max(0, d), x.shape[0] - max(0, -d))
            inside = system[here] == system[there]
            found[d + self.width, here] = torch.where(inside, -adjoint[here] * x[there], 0).to(found.dtype)
        return found


class BlockDiagonal:
    """Square blocks of one size along the diagonal: of shape (blocks, size, size), or (n,) for a diagonal."""

    def __init__(self, blocks: Tensor) -> None:
        if blocks.dim() not in (1, 3) or (blocks.dim() == 3 and blocks.shape[1] != blocks.shape[2]):
            raise ValueError(f"blocks must have shape (blocks, size, size), but have {tuple(blocks.shape)}")
        self.values = blocks

    @property
    def _width(self) -> int:
        return int(self.values.shape[1]) if self.values.dim() == 3 else 1

    @property
    def size(self) -> int:
        return int(self.values.shape[0]) * self._width

    def native(self, dtype: str, cut: Cut, stream: int) -> Any:
        device = place(self.values)
        return _native.block_map(
            device, dtype, self._width or 1, hand(self.values.contiguous(), stream), self.size
        )

    def gradient(self, adjoint: Tensor, x: Tensor, cut: Cut) -> Tensor:
        if self.values.dim() == 1:
            return -adjoint * x
        shape = (-1, self._width)
        return -adjoint.reshape(shape)[:, :, None] * x.reshape(shape)[:, None, :]


class NormalEquations:
    """J^T J + damping, applied as two products with J's rows and with those of its transpose."""

    def __init__(self, jacobian: CompressedRows, damping: float = 0.0) -> None:
        self.jacobian = jacobian
        self.values = jacobian.values
        self.damping = float(damping)
        with torch.no_grad():
            self.transposed = jacobian.transpose()
        self._between: Tensor | None = None  # J x

    @property
    def size(self) -> int:
        return self.jacobian.columns

    def jacobi(self) -> BlockDiagonal:
        """The inverse of the diagonal, as a preconditioner."""
        columns = self.transposed
        sums = segment_dot(columns.values.detach(), columns.values.detach(), columns.offsets)
        return BlockDiagonal(1 / (sums + self.damping))

    def native(self, dtype: str, cut: Cut, stream: int) -> Any:
        form = next(key for key, name in NAMES.items() if name == dtype)
        if self._between is None or self._between.dtype != form:
            self._between = torch.empty(self.jacobian.size, dtype=form, device=self.values.device)
        return _native.normal_map(
            place(self.values),
            dtype,
            *self.jacobian._arrays(stream),
            *self.transposed._arrays(stream),
            self.damping,
            hand(self._between, stream),
        )

    def gradient(self, adjoint: Tensor, x: Tensor, cut: Cut) -> Tensor:
        j = self.jacobian
        rows = j._rows()
        values = self.values.detach()
        along_x, along_adjoint = (
            segment_dot(values, vector[j.indices], j.offsets)[rows] for vector in (x, adjoint)
        )
        return -(along_x * adjoint[j.indices] + along_adjoint * x[j.indices])


BuiltIn: TypeAlias = CompressedRows | Banded | BlockDiagonal | NormalEquations
BUILT_IN = (CompressedRows, Banded, BlockDiagonal, NormalEquations)
