"""Jagged nested tensors: a flat tensor of values and the offsets of its rows, under one shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def unwrapped(nested: Tensor, weights: Any, dim: int) -> tuple[Tensor, Any, int, Tensor | None]:
    """(values, weights, the dim of the values to fit along, offsets if that is the ragged one)"""
    if nested.layout != torch.jagged:
        raise ValueError("a nested input must have the layout torch.jagged, not torch.strided")
    if nested._ragged_idx != 1:
        raise ValueError(f"a nested input must be ragged in dim 1, not {nested._ragged_idx}")
    if nested.lengths() is not None:
        raise ValueError("a nested input must have no holes between its rows: copy it first")
    if dim == 0:
        raise ValueError("dim 0 of a nested input counts its rows: they have no common position to fit along")
    values, offsets = nested.values(), nested.offsets()
    if isinstance(weights, Tensor) and weights.is_nested:
        if weights.layout != torch.jagged or weights.shape != nested.shape:
            raise ValueError("nested weights must have the offsets of the input: make them with its offsets")
        weights = weights.values()
    elif isinstance(weights, Tensor) and weights.dim() > 0:
        raise ValueError("weights of a nested input must be nested as it is, or a number")
    if dim > 1:
        return values, weights, dim - 1, None
    offsets = offsets.to(torch.int64)
    copies = values.shape[1:].numel()
    if copies != 1:
        # One set of rows for each position of the dims that are not ragged.
        shifted = offsets[1:] + values.shape[0] * torch.arange(copies, device=offsets.device)[:, None]
        offsets = torch.cat([offsets[:1], shifted.reshape(-1)])
    return values, weights, 0, offsets


def wrapped(values: Tensor, like: Tensor) -> Tensor:
    """Values under the offsets of another nested tensor, so that torch takes the two for one shape."""
    return torch.nested.nested_tensor_from_jagged(
        values,
        offsets=like.offsets(),
        min_seqlen=like._maybe_min_seqlen,
        max_seqlen=like._maybe_max_seqlen,
    )
