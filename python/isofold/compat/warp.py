"""The dot products of NVIDIA Warp's `warp.optim.linear`, exact: what its solvers add up no longer depends on
how a batch is cut into blocks.

`SegmentDot` has the interface of Warp's `TiledDot` (compute, col, cols). Warp has no public place for it:

>>> solver = wp.optim.linear.CG(A, b, x)                                # doctest: +SKIP
>>> isofold.compat.warp.use_exact_dots(solver)                          # doctest: +SKIP
>>> solver(A, b, x)                                                     # doctest: +SKIP

puts it where the solvers of Warp 1.19 keep theirs. The operator and everything else stay Warp's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from isofold import _native

__all__ = ["SegmentDot", "use_exact_dots"]

_DTYPES = {wp.float16: "float16", wp.float32: "float32", wp.float64: "float64"}


class SegmentDot:
    """Dot products of the batch's segments, each the exact real value rounded once to the scalar type.

    Parameters are those of Warp's `TiledDot`; `tile_size` and `max_batch_length` mean nothing here. Offsets
    are read once, when it is made; on CUDA `compute` enqueues work on the device's current stream, waits for
    nothing and may be captured in a graph.
    """

    def __init__(
        self,
        max_length: int,
        scalar_type: Any,
        tile_size: int = 512,
        device: Any = None,
        max_column_count: int = 1,
        batch_offsets: Any = None,
        max_batch_length: int | None = None,
    ) -> None:
        if scalar_type not in _DTYPES:
            raise TypeError(f"scalar_type must be float16, float32 or float64, not {scalar_type}")
        self.tile_size = tile_size
        self.device = wp.get_device(device)
        self.max_column_count = max_column_count
        self.batch_offsets = batch_offsets
        self.max_batch_length = max_batch_length
        cuts = np.array([0, max_length]) if batch_offsets is None else batch_offsets.numpy()
        self.batch_count = len(cuts) - 1
        self._cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        self._total = int(self._cuts[-1])
        self._dtype = _DTYPES[scalar_type]
        self._output = wp.zeros((max_column_count, self.batch_count), dtype=scalar_type, device=self.device)
        if self.device.is_cuda:
            fault = _native.cuda_fault()
            if fault:
                raise RuntimeError(fault)
            self._device_cuts = wp.array(self._cuts, dtype=wp.int64, device=self.device)
            size = _native.segment_scratch_bytes(max_column_count, self._total, self.batch_count, True)
            self._scratch = wp.empty(size, dtype=wp.uint8, device=self.device)

    def compute(self, a: Any, b: Any, col_offset: int = 0) -> Any:
        """Dots of a and b, 1-D or 2-D with a column a row, into the columns from `col_offset` on."""
        columns = a.shape[0] if a.ndim == 2 else 1
        if self.device.is_cuda:
            self._compute_on_device(_columns(a), _columns(b), col_offset)
        else:
            found = self._output.numpy()
            x, y = (t.numpy().reshape(columns, -1)[:, : self._total] for t in (a, b))
            calls: list[Any] = [
                ("dot", np.ascontiguousarray(x[k]), np.ascontiguousarray(y[k]), self._dtype)
                for k in range(columns)
            ]
            values = _native.segment_reductions(calls, self._cuts, None, self._total, 0)
            for k, value in enumerate(values):
                found[col_offset + k] = value
        return self._output[col_offset : col_offset + columns]

    def _compute_on_device(self, a: list[Any], b: list[Any], col_offset: int) -> None:
        stream = int(wp.get_stream(self.device).cuda_stream) or 1
        kept = []
        on_device: list[Any] = []
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            x, y, out = x[: self._total], y[: self._total], self._output[col_offset + k]
            kept.append((x, y, out))
            on_device.append(("dot", *(t.__dlpack__(stream=stream) for t in (x, y, out))))
        _native.segment_reductions_on_device(
            self.device.ordinal,
            on_device,
            self._device_cuts.__dlpack__(stream=stream),
            None,
            self._total,
            self._scratch.__dlpack__(stream=stream),
            stream,
        )

    def col(self, col: int = 0) -> Any:
        """The values of column `col`, of shape (batch_count,)."""
        return self._output[col]

    def cols(self, count: int, start: int = 0) -> Any:
        """The values of the columns from `start` on, of shape (count, batch_count)."""
        return self._output[start : start + count]


def use_exact_dots(solver: Any) -> SegmentDot:
    """Gives a solver of `warp.optim.linear` that is built, but has not run, a `SegmentDot`; returns it."""
    old = solver._tiled_dot
    outputs = old._output
    new = SegmentDot(
        max_length=_length(solver, old),
        scalar_type=outputs.dtype,
        tile_size=old.tile_size,
        device=old.device,
        max_column_count=old.max_column_count,
        batch_offsets=old.batch_offsets,
        max_batch_length=old.max_batch_length,
    )
    solver._tiled_dot = new
    return new


def _columns(array: Any) -> list[Any]:
    """One flat array of scalars a column, in device memory."""
    parts = [array[k] for k in range(array.shape[0])] if array.ndim == 2 else [array]
    return [_scalars(part) for part in parts]


def _scalars(array: Any) -> Any:
    size = getattr(array.dtype, "_length_", 1)
    if size == 1:
        return array
    return wp.array(
        ptr=array.ptr,
        dtype=wp.types.type_scalar_type(array.dtype),
        shape=(array.shape[0] * size,),
        device=array.device,
        copy=False,
    )


def _length(solver: Any, old: Any) -> int:
    if old.batch_offsets is not None:
        return int(old.batch_offsets.numpy()[-1])
    vectors = solver._r_and_z_buf if hasattr(solver, "_r_and_z_buf") else solver._r
    return int(vectors.shape[-1]) * getattr(vectors.dtype, "_length_", 1)
