"""Tensors of any shape as flat rows, and back."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Call(NamedTuple):
    """What a fit takes beside its tensors."""

    length: int | None  # of every row; None: rows by offsets
    increasing: bool
    lower: float
    upper: float


class Rows(NamedTuple):
    """A batch of rows laid out flat."""

    values: Tensor
    weights: Tensor | None
    offsets: Tensor | None  # int64, on the values' device
    call: Call
    shape: torch.Size  # of the input with the fitted dim moved to the end
    dim: int  # where that belongs

    def bring_back(self, flat: Tensor) -> Tensor:
        """Flat values in the input's shape."""
        return flat.reshape(self.shape).movedim(-1, self.dim)


def as_float(tensor: Any, name: str) -> Tensor:
    """Integers and booleans become torch's default dtype."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
    if tensor.is_complex():
        raise TypeError(f"{name} must be real, not {tensor.dtype}")
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def _bound(bound: float | None, name: str, default: float) -> float:
    if bound is None:
        return default
    value = float(bound)
    if math.isnan(value):
        raise ValueError(f"{name} is NaN")
    return value


def _checked_offsets(offsets: Any, values: Tensor) -> Tensor:
    if not isinstance(offsets, Tensor):
        offsets = torch.as_tensor(offsets)
    if offsets.is_floating_point() or offsets.is_complex() or offsets.dtype == torch.bool:
        raise TypeError(f"offsets must hold integers, not {offsets.dtype}")
    if offsets.dim() != 1 or offsets.numel() == 0:
        raise ValueError("offsets must be 1-D with at least one entry")
    if values.dim() != 1:
        raise ValueError(f"offsets cut a 1-D input into rows, but it has {values.dim()} dimensions")
    offsets = offsets.to(device=values.device, dtype=torch.int64)
    if not values.is_cuda:
        steps = offsets.diff()
        if offsets[0] != 0 or offsets[-1] != values.numel() or bool((steps < 0).any()):
            raise ValueError("offsets must rise from 0 to the number of elements")
    return offsets


def as_rows(
    input: Tensor,
    weights: Tensor | float | None,
    increasing: bool,
    y_min: float | None,
    y_max: float | None,
    dim: int,
    offsets: Any,
) -> Rows:
    """Checks the arguments of a fit and lays them out; differentiable."""
    values = as_float(input, "input")
    if values.dim() == 0:
        raise ValueError("input must have at least one dimension")
    if not isinstance(increasing, bool):
        raise TypeError(f"increasing must be True or False, not {increasing!r}")
    if not -values.dim() <= dim < values.dim():
        raise IndexError(f"dim {dim} is out of range for an input of {values.dim()} dimensions")
    if values.is_cuda and values.dtype in (torch.float16, torch.bfloat16):
        raise TypeError(f"input is of {values.dtype} on CUDA, where float32 and float64 are taken")
    lower = _bound(y_min, "y_min", -math.inf)
    upper = _bound(y_max, "y_max", math.inf)
    if lower > upper:
        raise ValueError(f"y_min is {lower}, above y_max, {upper}")
    if weights is not None:
        if not isinstance(weights, Tensor):
            weights = torch.as_tensor(weights, dtype=torch.float64, device=values.device)
        given = as_float(weights, "weights")
        if given.device != values.device:
            raise ValueError(f"weights are on {given.device}, but input is on {values.device}")
        try:
            given = given.broadcast_to(values.shape)
        except RuntimeError:
            raise ValueError(
                f"weights of shape {tuple(given.shape)} do not fit input of shape {tuple(values.shape)}"
            ) from None
        weights = given.movedim(dim, -1).reshape(-1)
    cut = None if offsets is None else _checked_offsets(offsets, values)
    moved = values.movedim(dim, -1)
    length = None if cut is not None else moved.shape[-1]
    call = Call(length, increasing, lower, upper)
    return Rows(moved.reshape(-1), weights, cut, call, moved.shape, dim)
