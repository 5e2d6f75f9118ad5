"""Rows that tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def draw(*shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def positive(*shape: int, seed: int = 1, dtype: str = "float64") -> Any:
    return (np.abs(draw(*shape, seed=seed)) + 0.5).astype(dtype)


def same(found: Any, expected: Any) -> bool:
    """Of the same shape, dtype and bits."""
    host = np.asarray(found)
    return (
        host.dtype == expected.dtype
        and host.shape == expected.shape
        and host.tobytes() == np.ascontiguousarray(expected).tobytes()
    )
