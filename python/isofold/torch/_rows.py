"""Tensors of any shape as flat rows, and back."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isofold.torch import _jagged


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
    shape: tuple[int, ...]  # of the input with the fitted dim moved to the end
    dim: int  # where that belongs
    nested: Tensor | None  # the input, if that was a jagged nested tensor

    def bring_back(self, flat: Tensor) -> Tensor:
        """Flat values in the input's shape."""
        found = flat if len(self.shape) == 1 else flat.reshape(self.shape)
        if self.dim != len(self.shape) - 1:
            found = found.movedim(-1, self.dim)
        return found if self.nested is None else _jagged.wrapped(found, self.nested)


def as_float(tensor: Any, name: str) -> Tensor:
    """Integers and booleans become torch's default dtype."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
    if tensor.is_complex():
        raise TypeError(f"{name} must be real, not {tensor.dtype}")
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def is_solved(tensor: Tensor) -> bool:
    """Whether the last dimension of a tensor can be solved as it is."""
    return (
        tensor.is_floating_point()
        and tensor.dim() > 0
        and tensor.layout == torch.strided
        and not tensor.is_nested
    )


def _bound(bound: float | None, name: str, default: float) -> float:
    if bound is None:
        return default
    value = float(bound)
    # Not math.isnan: a compiler may hold it as a symbol.
    if value != value:
        raise ValueError(f"{name} is NaN")
    return value


def as_bounds(y_min: float | None, y_max: float | None) -> tuple[float, float]:
    lower = _bound(y_min, "y_min", -math.inf)
    upper = _bound(y_max, "y_max", math.inf)
    if lower > upper:
        raise ValueError(f"y_min is {lower}, above y_max, {upper}")
    return lower, upper


def as_offsets(offsets: Any, values: Tensor, name: str) -> Tensor:
    """Their values are looked at where the rows are solved."""
    if not isinstance(offsets, Tensor):
        offsets = torch.as_tensor(offsets)
    if offsets.is_floating_point() or offsets.is_complex() or offsets.dtype == torch.bool:
        raise TypeError(f"offsets must hold integers, not {offsets.dtype}")
    if offsets.dim() != 1 or offsets.numel() == 0:
        raise ValueError("offsets must be 1-D with at least one entry")
    if values.dim() != 1:
        raise ValueError(f"offsets cut 1-D {name} into rows, but it has {values.dim()} dimensions")
    return offsets.to(device=values.device, dtype=torch.int64)


def _as_weights(weights: Tensor | float, values: Tensor) -> Tensor:
    if not isinstance(weights, Tensor):
        weights = torch.as_tensor(weights, dtype=torch.float64, device=values.device)
    given = as_float(weights, "weights")
    if given.device != values.device:
        raise ValueError(f"weights are on {given.device}, but input is on {values.device}")
    try:
        return given.broadcast_to(values.shape)
    except RuntimeError:
        raise ValueError(
            f"weights of shape {tuple(given.shape)} do not fit input of shape {tuple(values.shape)}"
        ) from None


def axis_of(dim: int, dimensions: int, name: str) -> int:
    if not -dimensions <= dim < dimensions:
        raise IndexError(f"dim {dim} is out of range for {name} of {dimensions} dimensions")
    return dim % dimensions


def as_rows(
    input: Tensor,
    weights: Tensor | float | None,
    increasing: bool,
    y_min: float | None,
    y_max: float | None,
    dim: int,
    offsets: Any,
    name: str = "input",
) -> Rows:
    """Checks the arguments of a fit and lays them out; differentiable."""
    values = as_float(input, name)
    if values.dim() == 0:
        raise ValueError(f"{name} must have at least one dimension")
    if not isinstance(increasing, bool):
        raise TypeError(f"increasing must be True or False, not {increasing!r}")
    dim = axis_of(dim, values.dim(), name)
    lower, upper = as_bounds(y_min, y_max)
    nested = None
    if values.is_nested:
        if offsets is not None:
            raise ValueError(f"offsets go with 1-D {name}, but it is a nested tensor, which has its own")
        nested = values
        values, weights, dim, offsets = _jagged.unwrapped(values, weights, dim)
    elif offsets is not None:
        offsets = as_offsets(offsets, values, name)
    spread = None if weights is None else _as_weights(weights, values)
    if dim != values.dim() - 1:
        values = values.movedim(dim, -1)
        spread = None if spread is None else spread.movedim(dim, -1)
    shape = values.shape
    call = Call(shape[-1] if offsets is None else None, increasing, lower, upper)
    if len(shape) != 1:
        values = values.reshape(-1)
        spread = None if spread is None else spread.reshape(-1)
    return Rows(values, spread, offsets, call, shape, dim, nested)
