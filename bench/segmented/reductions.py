"""Dot products as other programs add them up, written anew in NumPy: how they round, not how fast they are.

A lane's step is a fused multiply-add, as compilers for GPUs make it of ``acc += a * b``: the product of two
float32 is exact in float64, and the sum rounded from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Dot = Callable[[Vector, Vector], np.float32]

LANES = 512  # of a block, and elements of a tile
ONE_PROBLEM_SERIAL = 128 * LANES  # up to this length one problem alone is added serially too


def _tree(values: NDArray[Any]) -> NDArray[Any]:
    """The sum over the last axis, a power of two long, by halves."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def _padded(values: NDArray[Any]) -> NDArray[Any]:
    rest = -len(values) % LANES
    return np.concatenate([values, np.zeros(rest, values.dtype)]) if rest else values


def serial_lanes(a: Vector, b: Vector) -> np.float32:
    """512 lanes, each adding its strided share one after the other in float32; then one tile sum."""
    products = _padded(a.astype(np.float64) * b).reshape(-1, LANES)
    lanes = np.zeros(LANES, np.float32)
    for row in products:
        lanes = (lanes + row).astype(np.float32)
    return np.float32(_tree(lanes))


def float64_lanes(a: Vector, b: Vector) -> np.float32:
    """The same with lanes of float64, rounded to float32 at the end: the report's micro-fix."""
    products = _padded(a.astype(np.float64) * b).reshape(-1, LANES)
    lanes = np.zeros(LANES)
    for row in products:
        lanes = lanes + row
    return np.float32(_tree(lanes))


def tile_tree(a: Vector, b: Vector) -> np.float32:
    """Tiles of 512 products, each summed by halves in float32, and so their sums, round after round."""
    values = a * b
    while len(values) > 1:
        values = _tree(_padded(values).reshape(-1, LANES))
    return np.float32(values[0]) if len(values) else np.float32(0)


def one_problem(a: Vector, b: Vector) -> np.float32:
    """What a problem gets that is alone: serial lanes up to 65,536 elements, then the tree."""
    return serial_lanes(a, b) if len(a) <= ONE_PROBLEM_SERIAL else tile_tree(a, b)


def exact(a: Vector, b: Vector) -> int:
    """The dot product times 2**340, in integers.

    Products of float32 are exact in float64. Their mantissas, in two halves, are summed by exponent, which
    float64 does exactly for up to 2**26 of them.
    """
    products = a.astype(np.float64) * b
    mantissa, exponent = np.frexp(products)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = int(exponent.min(initial=0))
    place = exponent - lowest
    total = 0
    for part, shift in ((whole >> 27, 27), (whole & (2**27 - 1), 0)):
        sums = np.bincount(place, weights=part.astype(np.float64))
        for at in np.flatnonzero(sums):
            total += int(sums[at]) << (int(at) + shift + lowest - 53 + 440)
    assert total % 2**100 == 0
    return total >> 100


SCALE = 340
