"""The library's custom calls, as functions of JAX arrays that are traced for one platform.

Nothing here is known to differentiation or vmap: that is _primitives. Rows run along the last axis, leading
axes are batches. These functions run where 64-bit types are on (see _define).
"""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isofold import _native

FLOATS = ("float16", "bfloat16", "float32", "float64")


def register() -> None:
    """Makes the calls known to XLA."""
    version = _native.xla_ffi_version()
    if not version:
        raise ImportError(
            "this build of isofold has no custom calls for JAX: install its source with "
            "pip install . -C cmake.define.ISOFOLD_XLA_FFI=AUTO"
        )
    for platform in ("cpu", "CUDA"):
        for name, handler in _native.xla_handlers(platform).items():
            try:
                jax.ffi.register_ffi_target(name, handler, platform=platform)
            except Exception as error:
                raise ImportError(
                    f"jaxlib does not take version {version} of XLA's interface, with which this isofold was "
                    "built: install its source with pip install . -C cmake.define.ISOFOLD_XLA_FFI="
                    f"{jax.ffi.include_dir()} ({error})"
                ) from error


def _scratch(
    platform: str,
    call: Literal["fit", "gradient"],
    values: Array,
    weights: Array | None,
    rows: int,
    ragged: bool,
) -> list[jax.ShapeDtypeStruct]:
    """A result more, on CUDA: memory that XLA plans for, so that a call may be recorded and replayed."""
    if platform != "cuda":
        return []
    weight_type = None if weights is None else str(weights.dtype)
    try:
        size = _native.xla_scratch_bytes(call, str(values.dtype), weight_type, values.size, rows, ragged)
    except RuntimeError as error:
        raise RuntimeError("; ".join(filter(None, [str(error), _native.cuda_fault()]))) from None
    return [jax.ShapeDtypeStruct((size,), np.uint8)]


def _flat_cuts(cuts: Array, length: int) -> Array:
    """Offsets of a batch of flat arrays as those of one flat array."""
    rows = cuts.astype(jnp.int64).reshape(-1, cuts.shape[-1])
    shifted = rows[:, 1:] + length * jnp.arange(rows.shape[0], dtype=jnp.int64)[:, None]
    return jnp.concatenate([jnp.zeros(1, jnp.int64), shifted.reshape(-1)])


def fit(
    platform: str, values: Array, weights: Array | None, cuts: Array | None, increasing: bool
) -> tuple[Array, Array]:
    """(the fit, uint8 flags that are 1 where a block starts). Cuts rise from 0 to the last axis's length."""
    if values.size == 0:
        return jnp.zeros_like(values), jnp.zeros(values.shape, jnp.uint8)
    arguments = [values] if weights is None else [values, weights]
    if cuts is None:
        rows = math.prod(values.shape[:-1])
    else:
        flat_cuts = _flat_cuts(cuts, values.shape[-1])
        rows = flat_cuts.size - 1
        arguments.append(flat_cuts)
    results = [jax.ShapeDtypeStruct(values.shape, values.dtype), jax.ShapeDtypeStruct(values.shape, np.uint8)]
    results += _scratch(platform, "fit", values, weights, rows, cuts is not None)
    found = jax.ffi.ffi_call("isofold_fit", results)(
        *arguments,
        row_length=np.int64(values.shape[-1]),
        weighted=weights is not None,
        ragged=cuts is not None,
        increasing=increasing,
    )
    return found[0], found[1]


def gradient(
    platform: str,
    incoming: Array,
    values: Array,
    weights: Array | None,
    starts: Array,
    for_values: bool,
    for_weights: bool,
) -> list[Array]:
    """Of a fit with these block starts: for the values, of incoming's type, and for the weights, of theirs;
    what is asked for. A block with a value or a weight that is refused is NaN."""
    of_values = [jax.ShapeDtypeStruct(incoming.shape, incoming.dtype)] if for_values else []
    of_weights = (
        [jax.ShapeDtypeStruct(weights.shape, weights.dtype)] if for_weights and weights is not None else []
    )
    results = of_values + of_weights
    if incoming.size == 0:
        return [jnp.zeros(result.shape, result.dtype) for result in results]
    arguments = [incoming, values, starts] if weights is None else [incoming, values, starts, weights]
    found = jax.ffi.ffi_call(
        "isofold_gradient", results + _scratch(platform, "gradient", values, weights, 1, False)
    )(*arguments, weighted=weights is not None, for_values=for_values, for_weights=for_weights)
    return list(found[: len(results)])
