"""Soft ranks, soft sorting and soft top-k: projections onto the permutahedron.

Blondel, Teboul, Berthet and Djolonga, Fast differentiable sorting and ranking, 2020; Sander, Puigcerver,
Djolonga, Peyre and Blondel, Fast, differentiable and sparse top-k, 2023.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isofold._soft_arguments import soft_arguments
from isofold.torch._rows import Rows, as_rows
from isofold.torch._soft import directly, is_short, projected

_REGULARIZATIONS = ("l2", "kl")


def _rows(values: Tensor, dim: int, offsets: Tensor | None) -> Rows:
    return as_rows(values, None, True, None, None, dim, offsets, name="values")


def _count(k: Any) -> Any:
    if not isinstance(k, (int, torch.SymInt)) and hasattr(k, "__index__"):
        k = k.__index__()
    if isinstance(k, bool) or not isinstance(k, (int, torch.SymInt)):
        raise TypeError(f"k must be an integer, not {k!r}")
    if k < 0:
        raise ValueError(f"k must be at least 0, but is {k}")
    return k


def _check_count(k: Any, length: Any) -> None:
    if k > length:
        raise ValueError(f"k must be from 0 to the length of the rows, {length}, but is {k}")


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
        Real, of at least one dimension; jagged nested tensors too. Integers become torch's default dtype.
    regularization : "l2" or "kl"
        The distance of the projection: Euclidean, or the Kullback-Leibler divergence of their exponentials.
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
        Formed in float64, rounded once. A row with a NaN, an infinity or a value / strength beyond float64 is
        NaN; the others are untouched. ``torchsort.soft_rank`` takes the same first three arguments.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `isotonic_regression`; a ValueError too for a regularization, strength or direction not listed
        here.

    Notes
    -----
    Differentiable any number of times, in either mode. A sort and a fit.
    """
    strength, sign = soft_arguments(regularization, regularization_strength, direction, _REGULARIZATIONS)
    if is_short(values, regularization, dim, offsets):
        return directly(values, "rank", strength, sign)
    rows = _rows(values, dim, offsets)
    return rows.bring_back(
        projected(rows.values, rows.offsets, rows.call.length, "rank", regularization, strength, sign)
    )


def soft_sort(
    values: Tensor,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "ASCENDING",
    dim: int = -1,
    offsets: Tensor | None = None,
) -> Tensor:
    """Every row softly sorted, rising, or falling if DESCENDING. All else is as for `soft_rank`.

    The larger the strength, the closer every element to the mean of its row; for KL, whose exponentials
    count, to log mean exp, or to minus that of -values if ASCENDING. KL on CUDA, and anywhere for values or
    length / strength beyond some 600, takes O(n log^2 n).
    """
    strength, sign = soft_arguments(regularization, regularization_strength, direction, _REGULARIZATIONS)
    # The projection has the largest first.
    if is_short(values, regularization, dim, offsets):
        return directly(values, "sort", strength, -sign)
    rows = _rows(values, dim, offsets)
    return rows.bring_back(
        projected(rows.values, rows.offsets, rows.call.length, "sort", regularization, strength, -sign)
    )


def soft_topk(
    values: Tensor,
    k: int,
    regularization: str = "l2",
    regularization_strength: float = 1.0,
    direction: str = "DESCENDING",
    dim: int = -1,
    offsets: Tensor | None = None,
) -> Tensor:
    """A soft mask of the k largest values of every row, or of the k smallest if ASCENDING.

    Parameters
    ----------
    values : Tensor
        As for `soft_rank`.
    k : int
        From 0 to the length of the rows; ragged rows that are shorter are taken whole.
    regularization : "l2"
    regularization_strength : float
        Positive. The smaller, the fewer values lie between 0 and 1.
    direction, dim, offsets
        As for `soft_rank`.

    Returns
    -------
    Tensor of values' shape and dtype
        In [0, 1], with sum k but for rounding: the point with that sum, of [0, 1]^n, closest to values /
        strength. Most of it is 0 or 1 exactly.

    Raises
    ------
    TypeError, ValueError, IndexError
        As `soft_rank`; a ValueError too for a k out of range.

    Notes
    -----
    Sander et al. 2023, with p = 2. Cost and derivatives are those of `soft_rank`.
    """
    if regularization != "l2":
        raise ValueError(f"regularization of soft_topk must be 'l2', not {regularization!r}")
    strength, sign = soft_arguments(regularization, regularization_strength, direction, _REGULARIZATIONS)
    k = _count(k)
    if is_short(values, regularization, dim, offsets):
        _check_count(k, values.shape[-1])
        return directly(values, "topk", strength, -sign, k)
    rows = _rows(values, dim, offsets)
    length = rows.call.length
    if length is not None:
        _check_count(k, length)
    return rows.bring_back(
        projected(rows.values, rows.offsets, length, "topk", regularization, strength, -sign, k)
    )
