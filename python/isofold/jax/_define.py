"""How the primitives of this package are made.

Each is a function of arrays whose last axis holds rows and whose leading axes are batches, so that vmap
only adds a leading axis. It is computed with 64-bit types whether or not jax_enable_x64 is set: only what
goes in and comes out has the caller's types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

try:
    from jax import enable_x64
except ImportError:  # JAX before 0.8
    from jax.experimental import enable_x64

type_of = getattr(jax, "typeof", None) or jax.core.get_aval  # the first from JAX 0.6 on


def zero_like(array: Any) -> ad.Zero:
    """The tangent of an array that has none to give."""
    return ad.Zero(type_of(array).to_tangent_aval())


def is_zero(tangent: Any) -> bool:
    return isinstance(tangent, ad.Zero)


def _varying(array: Any) -> frozenset[str]:
    """The mesh axes over which an array differs within shard_map."""
    kind = type_of(array)
    return frozenset(getattr(getattr(kind, "manual_axis_type", kind), "varying", getattr(kind, "vma", ())))


def bind(primitive: Primitive, *arrays: Any, **parameters: Any) -> list[Any]:
    """Binds arrays that within shard_map may vary over different axes: all are made to vary over all of them,
    so that their cotangents are summed where they have to be."""
    axes: frozenset[str] = frozenset().union(*map(_varying, arrays))
    if axes:
        arrays = tuple(_vary(array, axes) for array in arrays)
    return list(primitive.bind(*arrays, **parameters))


def _vary(array: Any, axes: frozenset[str]) -> Any:
    missing = tuple(axes - _varying(array))
    if not missing:
        return array
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, missing, to="varying")
    return jax.lax.pvary(array, missing)  # JAX before 0.9


def primitive(
    name: str, dtypes: Callable[..., Sequence[Any]], compute: Callable[..., Sequence[Any]]
) -> Primitive:
    """A primitive whose results have the shape of its first array and the dtypes that
    ``dtypes(*arrays, **parameters)`` gives, computed by ``compute(platform, *arrays, **parameters)``."""
    made = Primitive(name)
    made.multiple_results = True

    @made.def_abstract_eval
    def _(*arrays: Any, **parameters: Any) -> list[Any]:
        found = dtypes(*arrays, **parameters)
        return [arrays[0].update(dtype=np.dtype(dtype), weak_type=False) for dtype in found]

    compiled: dict[tuple[Any, ...], Any] = {}

    @made.def_impl
    def _(*arrays: Any, **parameters: Any) -> Any:
        key = tuple(sorted(parameters.items()))
        if key not in compiled:
            compiled[key] = jax.jit(partial(made.bind, **parameters))
        return compiled[key](*arrays)

    def lower(platform: str) -> Callable[..., Any]:
        def rule(context: Any, *values: Any, **parameters: Any) -> Any:
            with enable_x64(True):
                traced = mlir.lower_fun(partial(compute, platform), multiple_results=True)
                return traced(context, *values, **parameters)

        return rule

    for platform in ("cpu", "cuda"):
        mlir.register_lowering(made, lower(platform), platform=platform)

    def batch(arrays: Sequence[Any], dims: Sequence[Any], **parameters: Any) -> tuple[Any, list[int]]:
        size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
        moved = [
            jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0)
            for a, d in zip(arrays, dims, strict=True)
        ]
        found = made.bind(*moved, **parameters)
        return found, [0] * len(found)

    batching.primitive_batchers[made] = batch
    return made
