"""Soft ranks and soft sorting: projections onto the permutahedron (Blondel, Teboul, Berthet, Djolonga 2020).

The projection of a vector s in falling order onto the permutahedron of w, also in falling order, is s minus
the non-increasing fit of s - w (their Proposition 3). On a block of that fit it is (s_i - mean s) + mean w,
which loses nothing where s is large. All is formed in float64, with exact blocks and means, and the result is
rounded once to the input's dtype.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isofold.torch._rows import as_rows
from isofold.torch.isotonic import block_means

_DIRECTIONS = {"ASCENDING": 1.0, "DESCENDING": -1.0}


def _arguments(regularization: str, strength: float, direction: str) -> tuple[float, float]:
    if regularization != "l2":
        raise ValueError(f"regularization must be 'l2', not {regularization!r}")
    if direction not in _DIRECTIONS:
        raise ValueError(f"direction must be 'ASCENDING' or 'DESCENDING', not {direction!r}")
    value = float(strength)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"regularization_strength must be positive and finite, not {strength!r}")
    return value, _DIRECTIONS[direction]


class _SortedRows:
    """A batch in float64 with every row in falling order."""

    def __init__(self, values: Tensor, dim: int, offsets: Any) -> None:
        self.rows = as_rows(values, None, True, None, None, dim, offsets)
        self.offsets = self.rows.offsets

    def falling(self, s: Tensor) -> Tensor:
        """The flat s with every row sorted, stable; keeps where each element went."""
        if self.offsets is None:
            length = self.rows.call.length or 1
            found = s.view(-1, length).sort(dim=1, descending=True, stable=True)
            self.order = (
                found.indices + length * torch.arange(len(found.indices), device=s.device)[:, None]
            ).view(-1)
            self.places = torch.arange(length, device=s.device).repeat(len(found.indices))
            self.lengths: Tensor | float = float(length)
        else:
            index = torch.arange(s.numel(), device=s.device)
            row = torch.searchsorted(self.offsets, index, right=True) - 1
            # By value, then, keeping that order, by row.
            by_value = s.detach().sort(descending=True, stable=True).indices
            self.order = by_value[row[by_value].sort(stable=True).indices]
            self.places = index - self.offsets[row]
            self.lengths = (self.offsets[row + 1] - self.offsets[row]).double()
        return s[self.order]

    def weights(self) -> Tensor:
        """n, n - 1, ..., 1 in every row."""
        return self.lengths - self.places.double()

    def projection(self, s: Tensor, w: Tensor) -> Tensor:
        """Of every row of s onto the permutahedron of its row of w."""
        length = self.rows.call.length

        def means(x: Tensor) -> Tensor:
            return block_means(x, s - w, self.offsets, length)

        return (s - means(s)) + means(w)

    def unsorted(self, sorted_values: Tensor) -> Tensor:
        return torch.zeros_like(sorted_values).index_copy(0, self.order, sorted_values)


def soft_rank(
    values: Tensor,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "ASCENDING",
    dim: int = -1,
    offsets: Tensor | None = None,
) -> Tensor:
    """Soft ranks of every row: 1 for its smallest value, n for its largest; reversed if DESCENDING.

    Parameters
    ----------
    values : Tensor
        Real, of at least one dimension.
    regularization : "l2"
    regularization_strength : float
        Positive. The smaller, the closer to hard ranks; the larger, the closer to the mean rank.
    direction : "ASCENDING" or "DESCENDING"
    dim : int
        Along which rows run.
    offsets : int tensor of shape (rows + 1,), optional
        Cuts 1-D values into ragged rows.

    Returns
    -------
    Tensor of values' shape and dtype
        Formed in float64, rounded once. ``torchsort.soft_rank`` takes the same first three arguments.
    """
    strength, sign = _arguments(regularization, regularization_strength, direction)
    batch = _SortedRows(values, dim, offsets)
    s = batch.falling(sign * batch.rows.values.double() / strength)
    ranks = batch.unsorted(batch.projection(s, batch.weights()))
    return batch.rows.bring_back(ranks.to(batch.rows.values.dtype))


def soft_sort(
    values: Tensor,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "ASCENDING",
    dim: int = -1,
    offsets: Tensor | None = None,
) -> Tensor:
    """Every row softly sorted, rising, or falling if DESCENDING. Parameters are those of `soft_rank`."""
    strength, sign = _arguments(regularization, regularization_strength, direction)
    batch = _SortedRows(values, dim, offsets)
    s = batch.falling(-sign * batch.rows.values.double())
    found = -sign * batch.projection(batch.weights() / strength, s)
    return batch.rows.bring_back(found.to(batch.rows.values.dtype))
