"""isofold on JAX arrays: differentiable isotonic regression, soft ranks, soft sorting and soft top-k.

Fits and their first gradient are the exact real value, rounded once, on a CPU and on CUDA.
"""

from __future__ import annotations

import importlib

try:
    importlib.import_module("jax.ffi")
except ImportError as error:
    raise ImportError(f"isofold.jax takes JAX 0.5 or newer (pip install 'isofold[jax]'): {error}") from error

from isofold.jax.isotonic import blocks, isotonic_regression
from isofold.jax.soft import soft_rank, soft_sort, soft_topk

__all__ = ["blocks", "isotonic_regression", "soft_rank", "soft_sort", "soft_topk"]
