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

def segment_reductions(
    reductions: list[tuple[str, _Floats, _Floats | None, str]],
    offsets: NDArray[np.int64] | None,
    row_length: int | None,
    total: int,
    threads: int,
    backend: Literal["cpu", "reference"] = "cpu",
) -> list[_Floats]:
    """The values of each reduction (sum, dot or norm; a; b or None; dtype), one a segment."""

def segment_reductions_on_device(
    device: int,
    reductions: list[tuple[str, object, object | None, object]],
    offsets: object | None,
    row_length: int | None,
    total: int,
    scratch: object | None,
    stream: int,
) -> None:
    """Enqueues reductions (sum, dot or norm; a; b or None; out) of capsules on the stream."""

def segment_scratch_bytes(count: int, total: int, rows: int, ragged: bool) -> int:
    """What segment_reductions_on_device takes as scratch."""

class LinearMap:
    """A built-in linear map; it keeps the arrays that it reads."""

    @property
    def rows(self) -> int:
        """The elements of A x."""

def compressed_map(
    device: int, dtype: str, offsets: object, indices: object, values: object, columns: int
) -> LinearMap:
    """Compressed rows. device -1: host memory."""

def banded_map(
    device: int,
    dtype: str,
    width: int,
    values: object,
    total: int,
    offsets: object | None,
    row_length: int | None,
) -> LinearMap:
    """2 width + 1 diagonals."""

def block_map(device: int, dtype: str, size: int, values: object, rows: int) -> LinearMap:
    """Blocks of size times size along the diagonal."""

def normal_map(
    device: int,
    dtype: str,
    offsets: object,
    indices: object,
    values: object,
    offsets_t: object,
    indices_t: object,
    values_t: object,
    damping: float,
    between: object,
) -> LinearMap:
    """J^T J + damping, from J and its transpose; between holds J x."""

def conjugate_gradient(
    device: int,
    b: object,
    x: object,
    r: object,
    z: object,
    p: object,
    q: object,
    matrix: object,
    preconditioner: object | None,
    offsets: object | None,
    row_length: int | None,
    rtol: object | None,
    rtol_of_all: float,
    atol: object | None,
    atol_of_all: float,
    maxiter: object | None,
    maxiter_of_all: int,
    replace_every: int,
    iteration_limit: int,
    check_every: int,
    callback: object | None,
    iterations: object,
    status: object,
    residual_norm: object,
    true_residual_norm: object,
    scratch: object | None,
    threads: int,
    stream: int,
) -> None:
    """Solves all systems; x holds the first guess and the solution."""

def conjugate_gradient_scratch(total: int, rows: int, ragged: bool, on_device: bool) -> int:
    """What conjugate_gradient takes as scratch."""

def quantize_gradients(
    gradients: _Floats, hessians: _Floats | None, grid: tuple[int, int] | None, threads: int
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """(pairs of int32 as bytes, exponents of the grid's gradients and hessians)."""

def histogram(
    bins: NDArray[np.uint8] | NDArray[np.uint16],
    gradients: NDArray[np.int32],
    bin_count: int,
    node_ids: NDArray[np.int32] | None,
    nodes: int,
    rows: NDArray[np.int64] | None,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """(sums of gradients, of hessians, counts: int32 as bytes), flat."""

def best_splits(
    gradients: NDArray[np.int64],
    hessians: NDArray[np.int64],
    counts: NDArray[np.int32],
    grid: tuple[int, ...],
    nodes: int,
    features: int,
    bin_count: int,
    feature_rules: NDArray[np.uint8] | None,
    feature_mask: NDArray[np.uint8] | None,
    parent_outputs: NDArray[np.float64] | None,
    output_bounds: NDArray[np.float64] | None,
    node_numbers: NDArray[np.int64] | None,
    rules: dict[str, Any],
    top_k: int,
    want_bins: bool,
    threads: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
    """(records of splits, sets of left bins or None), as bytes."""

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

def device_quantize_gradients(
    device: int,
    gradients: object,
    hessians: object | None,
    given: object | None,
    out: object,
    grid: object,
    stream: int,
) -> None:
    """As quantize_gradients, into the outputs."""

def device_histogram(
    device: int,
    bins: object,
    quantized: object,
    bin_count: int,
    node_ids: object | None,
    nodes: int,
    rows: object | None,
    gradients: object,
    hessians: object,
    counts: object,
    fault: object,
    stream: int,
) -> None:
    """As histogram, into the outputs."""

def device_best_splits(
    device: int,
    gradients: object,
    hessians: object,
    counts: object,
    grid: object,
    nodes: int,
    features: int,
    bin_count: int,
    feature_rules: object | None,
    feature_mask: object | None,
    parent_outputs: object | None,
    output_bounds: object | None,
    node_numbers: object | None,
    rules: dict[str, Any],
    top_k: int,
    out: object,
    left_bins: object | None,
    stream: int,
) -> None:
    """As best_splits, into the outputs."""

class DeviceMemory:
    """A flat array in device memory; blank: of NaN, or of zeros where it holds uint8."""

    def __init__(self, device: int, size: int, dtype: str, blank: bool, stream: int) -> None: ...
    def __dlpack__(self, *, stream: int | None = None, **options: object) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class TensorLibrary:
    """A library's tensors, by its type's __dlpack_c_exchange_api__. Methods write to tensors given for it;
    where they answer False, what those hold is void."""

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
