"""The C++ library behind isofold. Private: call the functions of isofold instead.

Arrays are one-dimensional, contiguous, aligned and native-endian; values, weights, points and gradients are
float16, float32 or float64, each free of the others, or bfloat16 from who exports it by DLPack: outputs of
that type are its bits as uint16. Bad input raises ValueError, running out of memory
MemoryError. The GIL is released; on the main thread signal handlers run about every 50 ms and what they raise
ends the call.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.floating[Any]]

def fit(
    values: _Floats,
    weights: _Floats | None,
    offsets: NDArray[np.int64] | None,
    row_length: int | None,
    increasing: bool,
    lower: float,
    upper: float,
    tie_offsets: NDArray[np.int64] | None,
    out_dtype: str | None,
    threads: int,
    chunk_size: int = 0,
    backend: Literal["cpu", "reference"] = "cpu",
) -> tuple[_Floats, NDArray[np.uint8]]:
    """(fit, flags that are 1 where a maximal block starts) of every row, in the values' type or out_dtype."""

def gradient(
    values: _Floats,
    weights: _Floats | None,
    offsets: NDArray[np.int64] | None,
    row_length: int | None,
    increasing: bool,
    lower: float,
    upper: float,
    block_starts: NDArray[np.uint8],
    gradient: _Floats,
    want_weights: bool,
    out_dtype: str | None,
    threads: int,
    backend: Literal["cpu", "reference"] = "cpu",
) -> tuple[_Floats, _Floats | None]:
    """(gradient in the values, gradient in the weights or None); the latter in the weights' type."""

def block_weights(
    values: _Floats,
    weights: _Floats | None,
    offsets: NDArray[np.int64] | None,
    row_length: int | None,
    block_starts: NDArray[np.uint8],
    threads: int,
) -> NDArray[np.float64]:
    """The weight of every block, the exact sum rounded once to float64."""

def block_bounds(block_starts: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where the flags are set, and after that their number, as int64."""

def block_lengths(bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The differences of the bounds, as float64."""

def interpolate(
    knots_x: NDArray[np.float64],
    knots_y: NDArray[np.float64],
    points: _Floats,
    out_dtype: str | None = None,
    threads: int = 0,
) -> _Floats:
    """The piecewise linear curve through the knots at the points, rounded once; constant outside."""

def interpolate_curves(
    knots_x: NDArray[np.float64],
    knots_y: NDArray[np.float64],
    knot_offsets: NDArray[np.int64],
    curve_of_point: NDArray[np.int64],
    points: _Floats,
    out_dtype: str | None = None,
    threads: int = 0,
) -> _Floats:
    """Curves end to end, each point on the one it names; otherwise as interpolate."""

class DefaultFloatEnvironment:
    """Within it this thread rounds to nearest and keeps subnormals."""

    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...

def fit_row(y: object, increasing: bool, fit: object, block_starts: object) -> bool:
    """Fits one row of float32 or float64, where all are plain NumPy arrays; else answers False."""

def xla_ffi_version() -> str:
    """The version of XLA's interface that the custom calls speak; empty in a build without them."""

def xla_handlers(platform: Literal["cpu", "CUDA"]) -> dict[str, object]:
    """The custom calls for XLA's platform cpu or CUDA: capsules by name."""

def xla_scratch_bytes(
    call: Literal["fit", "gradient"],
    values: str,
    weights: str | None,
    total: int,
    rows: int,
    ragged: bool,
) -> int:
    """The bytes of scratch that the CUDA custom call fit or gradient takes as its last result."""

def cuda_fault() -> str:
    """Why no device array can be served, in words that say how to mend it; empty where it can."""

class DeviceProblem:
    """A batch of rows in device memory, as capsules; it keeps them."""

    def __init__(
        self,
        device: int,
        values: object,
        weights: object | None,
        offsets: object | None,
        row_length: int | None,
        increasing: bool,
        lower: float,
        upper: float,
    ) -> None: ...
    def scratch_bytes(self) -> int:
        """What fit takes as scratch."""

    def fit(self, fit: object, block_starts: object, scratch: object | None, stream: int) -> None:
        """Enqueues the fit on the stream."""

    def gradient(
        self,
        block_starts: object,
        gradient: object,
        for_values: object,
        for_weights: object | None,
        stream: int,
    ) -> None:
        """Enqueues the gradient on the stream."""

class DeviceMemory:
    """A flat array in device memory; blank: of NaN, or of zeros where it holds uint8."""

    def __init__(self, device: int, size: int, dtype: str, blank: bool, stream: int) -> None: ...
    def __dlpack__(self, *, stream: int | None = None, **options: object) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class TensorLibrary:
    """A library's tensors, by its type's __dlpack_c_exchange_api__. Methods write to tensors given for it,
    and answer False where they have not."""

    def __init__(self, table: object) -> None: ...
    def fit(
        self,
        values: object,
        weights: object | None,
        offsets: object | None,
        row_length: int | None,
        increasing: bool,
        lower: float,
        upper: float,
        fit: object,
        block_starts: object | None,
    ) -> bool: ...
    def gradient(
        self,
        values: object,
        weights: object | None,
        offsets: object | None,
        row_length: int | None,
        increasing: bool,
        lower: float,
        upper: float,
        block_starts: object,
        gradient: object,
        for_values: object,
        for_weights: object | None,
    ) -> bool: ...
    def project(
        self,
        sorted: object,
        order: object,
        kind: Literal["rank", "sort", "topk"],
        sign: float,
        strength: float,
        k: int,
        out: object,
        block_starts: object,
    ) -> bool: ...
    def project_gradient(
        self,
        result: object,
        order: object,
        kind: Literal["rank", "sort", "topk"],
        sign: float,
        strength: float,
        block_starts: object,
        gradient: object,
        out: object,
    ) -> bool: ...
