"""Segment reductions of arrays in device memory. Loaded when the first one is given. Waits for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isofold import _native
from isofold._arrays import cuda_device, normalize_axis, thread_count
from isofold._device_checks import INTEGERS, check_cuda, check_offsets, check_place
from isofold._device_kinds import Cupy, Kind, Torch, kind_of

_WIDE = ("float32", "float64")
_HALVES = ("float16", "bfloat16")
_MOST_AT_ONCE = 16


def reduce(
    reductions: Sequence[tuple[str, Any, Any]], offsets: Any, axis: int, dtype: Any, threads: int | None
) -> tuple[Any, ...]:
    """As `isofold.segmented` has it, where at least one of the arrays is on a device."""
    check_cuda()
    thread_count(threads)
    first = reductions[0][1]
    device = cuda_device(first)
    if device is None:
        raise TypeError("a is in host memory, but other arguments are on a CUDA device: move it there")
    kind = kind_of(first, "a")
    for _, a, b in reductions:
        for array, name in ((a, "a"), (b, "b")):
            if array is not None:
                check_place(kind, device, "a", array, name)
    if offsets is not None:
        check_place(kind, device, "a", offsets, "offsets")
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
    rows = (
        int(np.prod(outer, dtype=np.int64))
        if offsets is None
        else check_offsets(kind, offsets, shape, "a", "segments")
    )
    terms = [_term_dtype(kind, a, b) for _, a, b in reductions]
    types = terms if dtype is None else [_value_dtype(kind, dtype)] * len(terms)
    if not rows or (offsets is None and not shape[along]):
        # No segments, or segments without elements.
        form = outer if offsets is None else (rows,)
        return [
            kind.reshape(kind.full(a, rows, 0, out_type), form)
            for (_, a, _), out_type in zip(reductions, types, strict=True)
        ]
    stream = kind.stream(device)
    calls = []
    outputs = []
    for (name, a, b), type_of_terms, out_type in zip(reductions, terms, types, strict=True):
        like = kind.cast(a, type_of_terms)
        x = _flat(kind, like, along)
        y = None if b is None else _flat(kind, kind.cast(b, type_of_terms), along)
        outputs.append(kind.output(like, rows, out_type, False, device, stream))
        calls.append(
            (
                name,
                x.__dlpack__(stream=stream),
                None if y is None else y.__dlpack__(stream=stream),
                outputs[-1].__dlpack__(stream=stream),
            )
        )
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
    if found in INTEGERS:
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
