"""Segment reductions of arrays in device memory. Loaded when the first one is given. Waits for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isofold import _native
from isofold._arrays import cuda_device, normalize_axis, thread_count
from isofold._device_kinds import Cupy, Kind, Torch, kind_of

_WIDE = ("float32", "float64")
_HALVES = ("float16", "bfloat16")
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_MOST_AT_ONCE = 16


def reduce(
    reductions: Sequence[tuple[str, Any, Any]], offsets: Any, axis: int, dtype: Any, threads: int | None
) -> tuple[Any, ...]:
    """As `isofold.segmented` has it, where at least one of the arrays is on a device."""
    fault = _native.cuda_fault()
    if fault:
        raise RuntimeError(f"an array is in the memory of a CUDA device, and {fault}")
    thread_count(threads)
    first = reductions[0][1]
    device = cuda_device(first)
    if device is None:
        raise TypeError("a is in host memory, but other arguments are on a CUDA device: move it there")
    kind = kind_of(first, "a")
    for _, a, b in reductions:
        for array, name in ((a, "a"), (b, "b")):
            if array is not None:
                _same_place(kind, device, array, name)
    if offsets is not None:
        _same_place(kind, device, offsets, "offsets")
    shape = kind.shape(first)
    for _, a, b in reductions:
        for array, name in ((a, "a"), (b, "b")):
            if array is not None and kind.shape(array) != shape:
                raise ValueError(f"{name} has shape {kind.shape(array)}, but a has shape {shape}")
    along = normalize_axis(axis, len(shape), "a")
    with kind.on(device):
        found: list[Any] = []
        for start in range(0, len(reductions), _MOST_AT_ONCE):
            some = reductions[start : start + _MOST_AT_ONCE]
            found.extend(_reduce(kind, device, some, offsets, shape, along, dtype))
    return tuple(found)


def _reduce(
    kind: Kind,
    device: int,
    reductions: Sequence[tuple[str, Any, Any]],
    offsets: Any,
    shape: tuple[int, ...],
    along: int,
    dtype: Any,
) -> list[Any]:
    total = int(np.prod(shape, dtype=np.int64))
    outer = (*shape[:along], *shape[along + 1 :])
    rows = int(np.prod(outer, dtype=np.int64)) if offsets is None else _segments(kind, offsets, shape)
    stream = kind.stream(device)
    calls = []
    outputs = []
    for name, a, b in reductions:
        type_of_terms = _term_dtype(kind, a, b)
        out_type = type_of_terms if dtype is None else _value_dtype(kind, dtype)
        like = kind.cast(a, type_of_terms)
        x = _flat(kind, like, along)
        y = None if b is None else _flat(kind, kind.cast(b, type_of_terms), along)
        outputs.append(kind.output(like, rows, out_type, False, device, stream))
        if rows and (offsets is not None or shape[along]):
            calls.append(
                (
                    name,
                    x.__dlpack__(stream=stream),
                    None if y is None else y.__dlpack__(stream=stream),
                    outputs[-1].__dlpack__(stream=stream),
                )
            )
    if not calls:
        # Segments without elements, or no segments.
        return [
            kind.reshape(
                kind.full(a, rows, 0, _term_dtype(kind, a, b)), outer if offsets is None else (rows,)
            )
            for _, a, b in reductions
        ]
    needed = _native.segment_scratch_bytes(len(calls), total, rows, offsets is not None)
    scratch = kind.scratch(reductions[0][1], needed) if needed else None
    _native.segment_reductions_on_device(
        device,
        calls,
        None if offsets is None else kind.offsets(offsets).__dlpack__(stream=stream),
        shape[along] if offsets is None else None,
        total,
        None if scratch is None else scratch.__dlpack__(stream=stream),
        stream,
    )
    found = [kind.adopt(output, stream) for output in outputs]
    return found if offsets is not None else [kind.reshape(values, outer) for values in found]


def _flat(kind: Kind, array: Any, along: int) -> Any:
    last = len(kind.shape(array)) - 1
    return kind.reshape(array if along == last else kind.move_axis(array, along, last), (-1,))


def _taken(kind: Kind) -> tuple[str, ...]:
    return (*_WIDE, *_HALVES) if isinstance(kind, (Torch, Cupy)) else _WIDE


def _dtype(kind: Kind, array: Any, name: str) -> str:
    found = kind.dtype(array)
    if found in _INTEGERS:
        return kind.widest_float()
    if found not in _taken(kind):
        raise TypeError(f"{name} has dtype {found}; on a GPU {', '.join(_taken(kind))} are taken")
    return found


def _term_dtype(kind: Kind, a: Any, b: Any) -> str:
    """One that holds the elements of both: to it, nothing is rounded."""
    first = _dtype(kind, a, "a")
    second = first if b is None else _dtype(kind, b, "b")
    if first == second:
        return first
    if "float64" in (first, second):
        return "float64"
    return "float32"


def _value_dtype(kind: Kind, dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in _taken(kind):
        name = np.dtype(dtype).name
    if name not in _taken(kind):
        raise TypeError(f"dtype must be one of {', '.join(_taken(kind))}, not {name}")
    return name


def _segments(kind: Kind, offsets: Any, shape: tuple[int, ...]) -> int:
    if len(shape) != 1:
        raise ValueError(f"offsets cut a 1-D array into segments, but a has shape {shape}")
    given = kind.shape(offsets)
    if len(given) != 1 or given[0] == 0:
        raise ValueError(
            f"offsets must be 1-D with one entry more than there are segments, but has shape {given}"
        )
    if given[0] == 1 and shape[0] > 0:
        raise ValueError(f"offsets has one entry, so there are no segments, but a has {shape[0]} elements")
    if kind.dtype(offsets) not in _INTEGERS[1:]:
        raise TypeError(f"offsets must hold integers, not dtype {kind.dtype(offsets)}")
    return given[0] - 1


def _same_place(kind: Kind, device: int, other: Any, name: str) -> None:
    found = cuda_device(other)
    if found is None:
        raise TypeError(f"{name} is in host memory, but a is on CUDA device {device}: move it there")
    if not kind.owns(other):
        raise TypeError(
            f"{name} is a {type(other).__name__}, but a is a {kind.name}: "
            f"on a GPU all arrays of a call are of one library"
        )
    if found != device:
        raise ValueError(f"{name} is on CUDA device {found}, but a is on CUDA device {device}")
