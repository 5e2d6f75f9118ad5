"""Sums, dot products and norms of segments of tensors: the exact real values, each rounded once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isofold.torch import _segments
from isofold.torch._rows import as_float, as_offsets, axis_of

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _Cut(NamedTuple):
    """Flat tensors and how they are cut."""

    tensors: list[Tensor]
    offsets: Tensor | None
    length: int | None
    outer: tuple[int, ...] | None  # the shape of the values; None: one a segment, as offsets have it

    def bring_back(self, values: Tensor) -> Tensor:
        return values if self.outer is None else values.reshape(self.outer)


def _cut(tensors: list[Any], names: list[str], offsets: Any, dim: int) -> _Cut:
    given = [as_float(tensor, name) for tensor, name in zip(tensors, names, strict=True)]
    first = given[0]
    for tensor, name in zip(given, names, strict=True):
        if tensor.is_nested:
            raise TypeError(f"{name} is a nested tensor: pass its .values() and .offsets()")
        if tensor.shape != first.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, but {names[0]} has shape {tuple(first.shape)}"
            )
        if tensor.device != first.device:
            raise ValueError(f"{name} is on {tensor.device}, but {names[0]} is on {first.device}")
        if tensor.dtype not in _DTYPES:
            raise TypeError(f"{name} must be float16, bfloat16, float32 or float64, not {tensor.dtype}")
    if first.dim() == 0:
        raise ValueError(f"{names[0]} must have at least one dimension")
    dim = axis_of(dim, first.dim(), names[0])
    if offsets is not None:
        return _Cut(given, as_offsets(offsets, first, names[0]), None, None)
    if dim != first.dim() - 1:
        given = [tensor.movedim(dim, -1) for tensor in given]
    outer = given[0].shape[:-1]
    length = given[0].shape[-1]
    return _Cut([tensor.reshape(-1) for tensor in given], None, length, tuple(outer))


def _dtype(dtype: torch.dtype | None, *tensors: Tensor) -> torch.dtype:
    if dtype is None:
        dtype = tensors[0].dtype
        for tensor in tensors[1:]:
            dtype = torch.promote_types(dtype, tensor.dtype)
        return dtype
    if dtype not in _DTYPES:
        raise TypeError(f"dtype must be float16, bfloat16, float32 or float64, not {dtype}")
    return dtype


def _reduce(operator: Any, cut: _Cut, dtype: torch.dtype) -> Tensor:
    if cut.length == 0:
        assert cut.outer is not None
        # Empty segments: zeros, which still belong to the graph.
        return cut.tensors[0].new_zeros(cut.outer, dtype=dtype) + cut.tensors[0].sum().to(dtype)
    return cut.bring_back(operator(*cut.tensors, cut.offsets, cut.length, dtype))


def segment_sum(
    a: Tensor,
    offsets: Tensor | None = None,
    *,
    dim: int = -1,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The sum of every segment of a tensor: the exact real value, rounded once.

    So it is a function of the segment's own elements: not of their order, of other segments, of where it
    starts, or of the device.

    Parameters
    ----------
    a : Tensor
        Real; float16, bfloat16, float32 or float64, integers become torch's default dtype.
    offsets : int tensor of shape (segments + 1,), optional
        Cuts a 1-D tensor: segment s is ``a[offsets[s]:offsets[s + 1]]``.
    dim : int
        Without offsets, the dimension along which the segments lie.
    dtype : torch.dtype, optional
        What the exact values are rounded to; by default a's dtype.

    Returns
    -------
    Tensor
        With offsets one value for each segment, else of a's shape without `dim`. Empty segments have the sum
        0.0. A NaN, or infinities of both signs, make a segment's sum NaN; other segments are untouched.

    Raises
    ------
    TypeError, ValueError, IndexError
        Arguments of the wrong type, shape or device; offsets that do not rise from 0 to the end (on CUDA all
        values are NaN instead).

    Notes
    -----
    On CUDA the call waits for nothing and may be captured in a graph. Gradients, of any order and in forward
    mode, are made of the same sums and dots. That of a sum is exact; that of a dot is rounded once if all
    dtypes are one; that of a norm is g a / norm, two roundings, and 0 where the norm is.
    """
    cut = _cut([a], ["a"], offsets, dim)
    return _reduce(_segments.segment_sum, cut, _dtype(dtype, *cut.tensors))


def segment_dot(
    a: Tensor,
    b: Tensor,
    offsets: Tensor | None = None,
    *,
    dim: int = -1,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The dot product of every segment of `a` with that of `b`, which has a's shape: exact, rounded once.

    By default the values have the wider of both dtypes. A zero times an infinity is NaN. Otherwise as
    `segment_sum`.
    """
    cut = _cut([a, b], ["a", "b"], offsets, dim)
    return _reduce(_segments.segment_dot, cut, _dtype(dtype, *cut.tensors))


def segment_norm(
    a: Tensor,
    offsets: Tensor | None = None,
    *,
    dim: int = -1,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The Euclidean norm of every segment: the root of the exact sum of squares, rounded once, without
    overflow or underflow midway. Otherwise as `segment_sum`."""
    cut = _cut([a], ["a"], offsets, dim)
    return _reduce(_segments.segment_norm, cut, _dtype(dtype, *cut.tensors))


def segment_dots(
    pairs: Iterable[tuple[Tensor, Tensor]],
    offsets: Tensor | None = None,
    *,
    dim: int = -1,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, ...]:
    """Several dot products over the same segments: the values of `segment_dot` of each pair.

    Where no gradient is asked for and nothing is traced, in one pass over the data.
    """
    given = list(pairs)
    tensors = [tensor for pair in given for tensor in pair]
    if not tensors:
        return ()
    names = [f"{letter} of pair {k}" for k in range(len(given)) for letter in "ab"]
    cut = _cut(tensors, names, offsets, dim)
    types = [_dtype(dtype, a, b) for a, b in zip(cut.tensors[::2], cut.tensors[1::2], strict=True)]
    if cut.length == 0 or len(given) > 16 or not _segments.segment_dot.plain(*cut.tensors):
        return tuple(segment_dot(a, b, offsets, dim=dim, dtype=dtype) for a, b in given)
    found = _segments.reduce(
        [("dot", a, b, form) for a, b, form in zip(cut.tensors[::2], cut.tensors[1::2], types, strict=True)],
        cut.offsets,
        cut.length,
    )
    return tuple(cut.bring_back(values) for values in found)
