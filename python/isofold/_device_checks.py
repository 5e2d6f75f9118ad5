"""What is asked of arrays in device memory before the native library sees them. Nothing here waits."""

from __future__ import annotations

from typing import Any

from isofold import _native
from isofold._arrays import cuda_device
from isofold._device_kinds import Kind

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def check_cuda() -> None:
    fault = _native.cuda_fault()
    if fault:
        raise RuntimeError(f"an array is in the memory of a CUDA device, and {fault}")


def check_place(kind: Kind, device: int, first: str, other: Any, name: str) -> None:
    """`other` must lie where `first` does, and be of its library."""
    found = cuda_device(other)
    if found is None:
        raise TypeError(f"{name} is in host memory, but {first} is on CUDA device {device}: move it there")
    if not kind.owns(other):
        raise TypeError(
            f"{name} is a {type(other).__name__}, but {first} is a {kind.name}: "
            f"on a GPU all arrays of a call are of one library"
        )
    if found != device:
        raise ValueError(f"{name} is on CUDA device {found}, but {first} is on CUDA device {device}")


def check_offsets(kind: Kind, offsets: Any, shape: tuple[int, ...], first: str, parts: str) -> int:
    """How many parts (rows, segments) the offsets cut `first`, of that shape, into."""
    if len(shape) != 1:
        raise ValueError(f"offsets cut a 1-D array into {parts}, but {first} has shape {shape}")
    given = kind.shape(offsets)
    if len(given) != 1 or given[0] == 0:
        raise ValueError(
            f"offsets must be 1-D with one entry more than there are {parts}, but has shape {given}"
        )
    if given[0] == 1 and shape[0] > 0:
        raise ValueError(
            f"offsets has one entry, so there are no {parts}, but {first} has {shape[0]} elements"
        )
    if kind.dtype(offsets) not in INTEGERS[1:]:
        raise TypeError(f"offsets must hold integers, not dtype {kind.dtype(offsets)}")
    return given[0] - 1
