"""Batches of systems as the native library takes them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isofold.torch._rows import as_offsets
from isofold.torch._solve import check_offsets

NAMES = {torch.float32: "float32", torch.float64: "float64"}


def place(tensor: Tensor) -> int:
    """The CUDA device's number; -1: host memory."""
    return tensor.get_device() if tensor.is_cuda else -1


def stream_of(tensor: Tensor) -> int:
    # The default stream is 0 in CUDA and 1 in DLPack, where 0 is refused.
    return (int(torch.cuda.current_stream(tensor.device).cuda_stream) or 1) if tensor.is_cuda else 0


def hand(tensor: Tensor | None, stream: int) -> Any:
    """What the native library takes."""
    if tensor is None:
        return None
    flat = tensor.detach().reshape(-1)
    return flat.__dlpack__(stream=stream) if flat.is_cuda else flat.numpy()


class Cut:
    """How the concatenated vector is cut into systems."""

    def __init__(self, shape: tuple[int, ...], offsets: Any, like: Tensor) -> None:
        self.shape = shape
        if not 1 <= len(shape) <= 2:
            raise ValueError(f"b must be 1-D, or 2-D with a system a row, but has shape {tuple(shape)}")
        self.offsets: Tensor | None = None
        self.length: int | None = shape[1] if len(shape) == 2 else None
        self.systems = 1 if len(shape) == 1 else shape[0]
        if offsets is not None:
            if len(shape) != 1:
                raise ValueError(f"offsets cut a 1-D b into systems, but b has shape {tuple(shape)}")
            self.offsets = as_offsets(offsets, like, "b").contiguous()
            self.systems = int(self.offsets.shape[0]) - 1
            if not like.is_cuda:
                check_offsets(self.offsets, like.numel())

    @property
    def segment_length(self) -> int | None:
        """As segment reductions have it: one system is one segment."""
        return None if self.offsets is not None else self.shape[-1]
