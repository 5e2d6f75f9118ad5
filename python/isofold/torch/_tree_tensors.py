"""Results of `isofold.torch.trees`, and its arguments as the native module takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from isofold import _native
from isofold._histogram import GradientGrid, Histogram
from isofold._splits import MOST_CATEGORIES, RECORD, Splits


class QuantizedTensors(NamedTuple):
    """Each row's gradient and hessian as integers on a grid."""

    values: Tensor  # int32, (rows, 2): gradient, hessian
    grid: Tensor  # int32: exponent of the gradients' unit, of the hessians', and 1 for a fault


class TensorHistogram:
    """As `isofold.Histogram`, of tensors. ``grid`` is int32: two exponents and a fault."""

    __slots__ = ("counts", "fault", "gradients", "grid", "hessians")

    def __init__(
        self, gradients: Tensor, hessians: Tensor, counts: Tensor, grid: Tensor, fault: Tensor
    ) -> None:
        self.gradients = gradients  # int64, (nodes, features, bins)
        self.hessians = hessians  # int64
        self.counts = counts  # int32
        self.grid = grid
        self.fault = fault  # int32 of shape (1,): 1 where a bin, node or row was out of range

    @property
    def shape(self) -> tuple[int, int, int]:
        nodes, features, bins = self.counts.shape
        return int(nodes), int(features), int(bins)

    def subtract(self, child: TensorHistogram) -> TensorHistogram:
        """The histogram of the rows that are not in `child`, on the same grid; also ``self - child``."""
        if child.shape != self.shape:
            raise ValueError(f"child has shape {child.shape}, but its parent has shape {self.shape}")
        return TensorHistogram(
            self.gradients - child.gradients,
            self.hessians - child.hessians,
            self.counts - child.counts,
            self.grid,
            self.fault | child.fault,
        )

    __sub__ = subtract

    def select(self, nodes: Any) -> TensorHistogram:
        """These nodes of it, in this order."""
        index = torch.as_tensor(nodes, device=self.counts.device).reshape(-1)
        return TensorHistogram(
            self.gradients[index], self.hessians[index], self.counts[index], self.grid, self.fault
        )

    def numpy(self) -> Histogram:
        """On the host, as `isofold.Histogram`. Waits for the device; raises ValueError for a fault."""
        check_fault(self.grid, self.fault)
        first, second, _ = self.grid.tolist()
        return Histogram(
            self.gradients.cpu().numpy(),
            self.hessians.cpu().numpy(),
            self.counts.cpu().numpy(),
            GradientGrid(first, second),
        )


class TensorSplits:
    """As `isofold.Splits`, of tensors."""

    def __init__(self, records: Tensor, words: Tensor | None, bins: int) -> None:
        self._records = records  # uint8, (..., 72)
        self._words = words  # uint8, (..., bytes)
        self._bins = bins

    def __getattr__(self, name: str) -> Tensor:
        records = self.__dict__.get("_records")
        fields = RECORD.fields
        if records is None or fields is None or name not in fields or name == "unused":
            raise AttributeError(f"'TensorSplits' object has no attribute {name!r}")
        dtype, offset = fields[name][:2]
        base = dtype.base
        wide: Tensor = records.view(getattr(torch, "uint8" if base == np.bool_ else base.name))
        place = offset // base.itemsize
        if dtype.shape:
            return wide[..., place : place + dtype.shape[0]]
        found = wide[..., place]
        return found.to(torch.bool) if base == np.bool_ else found

    @property
    def categories(self) -> Tensor | None:
        """For categorical splits, which bins go left."""
        if self._words is None:
            return None
        bits = torch.arange(8, dtype=torch.uint8, device=self._words.device)
        flags = (self._words[..., None] >> bits) & 1
        return flags.flatten(-2)[..., : self._bins].to(torch.bool)

    def numpy(self) -> Splits:
        """On the host, as `isofold.Splits`. Waits for the device."""
        categories = self.categories
        records = self._records.cpu().numpy().view(RECORD)[..., 0]
        return Splits(records, None if categories is None else categories.cpu().numpy())


def check_fault(grid: Tensor, fault: Tensor | None = None) -> None:
    """Raise ValueError for what the device has found. Waits for it."""
    if int(grid[2]):
        raise ValueError(
            "gradients and hessians must be finite, hessians not negative, and a given grid hold them"
        )
    if fault is not None and int(fault[0]):
        raise ValueError("a bin, a node id or a row is out of range")


def check_categories(of_features: np.ndarray[Any, Any]) -> None:
    """What the host refuses, before a device would have to."""
    for index, feature in enumerate(of_features):
        at = f"feature_rules: feature {index}, "
        if feature["missing"] and feature["bins"] == 0:
            raise ValueError(f"{at}has_missing, but no bins")
        if feature["categorical"] and feature["monotone"]:
            raise ValueError(f"{at}a categorical feature cannot be monotone")
        if feature["categorical"] and feature["bins"] > MOST_CATEGORIES:
            raise ValueError(
                f"{at}a categorical feature has at most {MOST_CATEGORIES} bins, not {feature['bins']}"
            )


def current_stream(tensor: Tensor) -> int:
    fault = _native.cuda_fault()
    if fault:
        raise RuntimeError(fault)
    # The default stream is 0 in CUDA and 1 in DLPack, where 0 is refused.
    return int(torch.cuda.current_stream(tensor.device).cuda_stream) or 1


def as_tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, not {type(value).__name__}")
    return value.detach()


def as_floats(value: Any, name: str) -> Tensor:
    tensor = as_tensor(value, name)
    if tensor.dim() != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {tuple(tensor.shape)}")
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.to(torch.float32)
    if tensor.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"{name} must be a floating-point tensor, not {tensor.dtype}")
    return tensor.contiguous()


def as_integers(value: Any, name: str) -> Tensor:
    tensor = as_tensor(value, name)
    if tensor.dim() != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {tuple(tensor.shape)}")
    if tensor.dtype not in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        raise TypeError(f"{name} must hold integers, not {tensor.dtype}")
    return tensor


def beside(tensor: Tensor, other: Tensor, name: str) -> Tensor:
    if tensor.device != other.device:
        raise ValueError(f"{name} is on {tensor.device}, and the others are on {other.device}")
    return tensor


def placed(
    value: Any, name: str, dtype: torch.dtype, device: torch.device, shapes: list[Any]
) -> Tensor | None:
    if value is None:
        return None
    tensor = torch.as_tensor(value)
    if dtype == torch.bool and tensor.dtype != torch.bool:
        raise TypeError(f"{name} must hold booleans, not {tensor.dtype}")
    if tuple(tensor.shape) not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {wanted}")
    return tensor.detach().to(device=device, dtype=dtype).contiguous()


def as_bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def capsule(tensor: Tensor | None, stream: int) -> Any:
    return None if tensor is None else tensor.reshape(-1).__dlpack__(stream=stream)
