"""isotonic_regression and isotonic_gradient of arrays in device memory. Loaded when the first one is given.

Nothing here waits for the device but `DeviceIsotonicResult.blocks`, `.weights` and `.block_offsets`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from isofold import _native
from isofold._arrays import cuda_device, fit_bounds, normalize_axis, thread_count
from isofold._device_checks import INTEGERS, check_cuda, check_offsets, check_place
from isofold._device_kinds import Kind, kind_of
from isofold.isotonic import IsotonicResult

_FITTED = ("float32", "float64")
_HALVES = ("float16", "bfloat16")


class _Problem(NamedTuple):
    kind: Kind
    device: int
    values: Any  # flat
    weights: Any | None  # flat
    offsets: Any | None
    shape: tuple[int, ...]  # of y with the fitted axis moved to the end
    axis: int  # where that axis belongs
    native: _native.DeviceProblem | None  # None: no elements

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def bring_back(self, values: Any) -> Any:
        """Flat values in y's shape."""
        rows = self.kind.reshape(values, self.shape)
        last = len(self.shape) - 1
        return rows if self.axis == last else self.kind.move_axis(rows, last, self.axis)


class DeviceIsotonicResult(IsotonicResult):
    """An `IsotonicResult` whose arrays are in device memory, of the library that y came from."""

    __slots__ = ("_device_problem", "_device_starts")

    _device_problem: _Problem
    _device_starts: Any

    def __init__(self, x: Any, problem: _Problem, starts: Any) -> None:
        self._assign(
            {
                "x": x,
                "_device_problem": problem,
                "_device_starts": starts,
                "_weights": None,
                "_blocks": None,
                "_block_offsets": None,
            }
        )

    @property
    def block_mask(self) -> Any:
        problem = self._device_problem
        with problem.kind.on(problem.device):
            return problem.bring_back(problem.kind.is_true(self._device_starts))

    @property
    def blocks(self) -> Any:
        if self._blocks is None:
            problem = self._device_problem
            with problem.kind.on(problem.device):
                self._assign({"_blocks": problem.kind.bounds(self._device_starts)})
        return self._blocks

    @property
    def weights(self) -> Any:
        if self._weights is None:
            problem = self._device_problem
            with problem.kind.on(problem.device):
                if problem.weights is None:
                    found = problem.kind.differences(self.blocks)
                else:
                    found = problem.kind.device(self._weights_on_host(), problem.values)
            self._assign({"_weights": found})
        return self._weights

    def _weights_on_host(self) -> Any:
        """Exact sums, rounded once: by the host, which has them. NaN for refused rows."""
        problem = self._device_problem
        kind = problem.kind
        starts = kind.host(self._device_starts)
        weights = kind.host(problem.weights).copy()
        if not weights.size:
            return np.zeros(0)
        with np.errstate(invalid="ignore"), _native.DefaultFloatEnvironment():
            bad = ~(np.isfinite(weights) & (weights > 0))
        weights[bad] = 1
        # Blocks are runs between flags, whatever the rows; elements of no row may come before the first.
        first = starts[0] != 0
        flags = np.array(starts)
        flags[0] = 1
        sums = _native.block_weights(np.zeros(weights.size, np.float32), weights, None, None, flags, 0)
        sums[np.logical_or.reduceat(bad, np.flatnonzero(flags))] = np.nan
        return sums if first else sums[1:]

    @property
    def block_offsets(self) -> Any:
        if self._block_offsets is None:
            problem = self._device_problem
            kind = problem.kind
            blocks = self.blocks
            with kind.on(problem.device):
                if problem.offsets is not None:
                    ends = problem.offsets
                else:
                    rows = int(np.prod(problem.shape[:-1], dtype=np.int64))
                    ends = kind.device(np.arange(rows + 1) * problem.shape[-1], blocks)
                dtype = kind.dtype(blocks)
                found = kind.cast(kind.search(blocks[:-1], kind.cast(ends, dtype)), dtype)
            self._assign({"_block_offsets": found})
        return self._block_offsets

    def _gradient(self, grad: Any) -> tuple[Any, Any | None]:
        problem = self._device_problem
        kind = problem.kind
        check_place(kind, problem.device, "the fit", grad, "grad")
        if kind.shape(grad) != kind.shape(self.x):
            raise ValueError(f"grad has shape {kind.shape(grad)}, but the fit has shape {kind.shape(self.x)}")
        with kind.on(problem.device):
            stream = kind.stream(problem.device)
            given = _any_float(kind, grad, "grad")
            flat = kind.reshape(kind.move_axis(given, problem.axis, len(problem.shape) - 1), (-1,))
            arrays = [problem.values] if problem.weights is None else [problem.values, problem.weights]
            if problem.native is None:
                found = [kind.full(array, 0, 0, kind.dtype(array)) for array in arrays]
            else:
                outputs = [
                    kind.output(array, problem.size, kind.dtype(array), False, problem.device, stream)
                    for array in arrays
                ]
                capsules = [output.__dlpack__(stream=stream) for output in outputs]
                problem.native.gradient(
                    self._device_starts.__dlpack__(stream=stream),
                    flat.__dlpack__(stream=stream),
                    capsules[0],
                    capsules[1] if len(capsules) > 1 else None,
                    stream,
                )
                found = [kind.adopt(output, stream) for output in outputs]
            shaped = [problem.bring_back(array) for array in found]
        return shaped[0], shaped[1] if len(shaped) > 1 else None

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a result in device memory cannot be pickled: copy its arrays to the host")

    def __eq__(self, other: object) -> bool:
        # Anything else would wait for the device.
        return self is other

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __repr__(self) -> str:
        problem = self._device_problem
        shape = problem.kind.shape(self.x)
        return f"IsotonicResult({problem.kind.name} of shape {shape} on CUDA device {problem.device})"


def isotonic_regression(
    y: Any,
    weights: Any,
    increasing: bool,
    y_min: float | None,
    y_max: float | None,
    axis: int,
    offsets: Any,
    threads: int | None,
) -> DeviceIsotonicResult:
    """As `isofold.isotonic_regression`, where at least one of the arrays is on a device."""
    kind, device = _place(y, weights=weights, offsets=offsets)
    shape = kind.shape(y)
    along = normalize_axis(axis, len(shape))
    if not isinstance(increasing, (bool, np.bool_)):
        raise TypeError(f"increasing must be True or False, not {increasing!r}")
    lower, upper = fit_bounds(y_min, y_max)
    thread_count(threads)
    with kind.on(device):
        values = _values(kind, y)
        if offsets is not None:
            check_offsets(kind, offsets, shape, "y", "rows")
        rows = kind.move_axis(values, along, len(shape) - 1) if along != len(shape) - 1 else values
        problem = _Problem(
            kind=kind,
            device=device,
            values=kind.reshape(rows, (-1,)),
            weights=None if weights is None else _weights(kind, y, weights, shape, along),
            offsets=offsets,
            shape=kind.shape(rows),
            axis=along,
            native=None,
        )
        return _fit(problem, bool(increasing), lower, upper)


def _fit(problem: _Problem, increasing: bool, lower: float, upper: float) -> DeviceIsotonicResult:
    kind, device, size = problem.kind, problem.device, problem.size
    if not size:
        x = problem.bring_back(kind.full(problem.values, 0, 0, kind.dtype(problem.values)))
        return DeviceIsotonicResult(x, problem, kind.full(problem.values, 0, 0, "uint8"))
    stream = kind.stream(device)
    # Elements that bad offsets leave to no row are NaN too.
    blank = problem.offsets is not None
    fitted = kind.output(problem.values, size, kind.dtype(problem.values), blank, device, stream)
    starts = kind.output(problem.values, size, "uint8", blank, device, stream)
    native = _native.DeviceProblem(
        device,
        problem.values.__dlpack__(stream=stream),
        None if problem.weights is None else problem.weights.__dlpack__(stream=stream),
        None if problem.offsets is None else kind.offsets(problem.offsets).__dlpack__(stream=stream),
        None if len(problem.shape) == 1 else problem.shape[-1],
        increasing,
        lower,
        upper,
    )
    needed = native.scratch_bytes()
    scratch = kind.scratch(problem.values, needed) if needed else None
    native.fit(
        fitted.__dlpack__(stream=stream),
        starts.__dlpack__(stream=stream),
        None if scratch is None else scratch.__dlpack__(stream=stream),
        stream,
    )
    x = problem.bring_back(kind.adopt(fitted, stream))
    return DeviceIsotonicResult(x, problem._replace(native=native), kind.adopt(starts, stream))


def _place(y: Any, **others: Any) -> tuple[Kind, int]:
    """The library and the device of all arrays."""
    check_cuda()
    device = cuda_device(y)
    if device is None:
        name = next(name for name, other in others.items() if cuda_device(other) is not None)
        raise TypeError(f"y is in host memory, but {name} is on a CUDA device: move one of them to the other")
    kind = kind_of(y, "y")
    for name, other in others.items():
        if other is not None and not (name == "weights" and _is_number(other)):
            check_place(kind, device, "y", other, name)
    return kind, device


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def _values(kind: Kind, y: Any) -> Any:
    dtype = kind.dtype(y)
    if dtype in INTEGERS:
        dtype = kind.default_float()
        if dtype in _FITTED:
            return kind.cast(y, dtype)
    if dtype not in _FITTED:
        raise TypeError(
            f"y has dtype {dtype}; on a GPU float32 and float64 are fitted: convert it to one of them"
        )
    return kind.cast(y, dtype)


def _any_float(kind: Kind, array: Any, name: str) -> Any:
    """Halves become float32, which holds them exactly; integers the widest type of the library."""
    dtype = kind.dtype(array)
    if dtype in _FITTED:
        return kind.cast(array, dtype)
    if dtype in _HALVES:
        return kind.cast(array, "float32")
    if dtype in INTEGERS:
        return kind.cast(array, kind.widest_float())
    raise TypeError(f"{name} must hold real numbers, not dtype {dtype}")


def _weights(kind: Kind, y: Any, weights: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Over y's shape with the fitted axis moved to the end, flat; shapes as for arrays of the host."""
    size = int(np.prod(shape, dtype=np.int64))
    if _is_number(weights):
        if not (np.isfinite(weights) and weights > 0):
            raise ValueError(f"weights must be finite and greater than zero, but is {weights}")
        return kind.full(y, size, float(weights), kind.widest_float())
    array = _any_float(kind, weights, "weights")
    given = kind.shape(array)
    last = len(shape) - 1
    rows = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    if len(given) == 1 and last > 0 and given[0] == shape[axis]:
        return kind.reshape(kind.broadcast(array, rows), (-1,))
    fits = len(given) == 0 or (
        len(given) == len(shape) and all(n in (1, m) for n, m in zip(given, shape, strict=True))
    )
    if not fits:
        raise ValueError(
            f"weights has shape {given}: it must be that of y, {shape}, or ({shape[axis]},) for one weight "
            f"a position along axis {axis}, or broadcast to that of y with as many dimensions"
        )
    spread = kind.broadcast(array, shape)
    return kind.reshape(kind.move_axis(spread, axis, last) if axis != last else spread, (-1,))
