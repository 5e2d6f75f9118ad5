"""Isotonic regression in rational arithmetic: slow, short, and independent of isofold.

Rows are scaled to integers by a power of two, solved by pooling adjacent violators, and only the answer is
rounded: once, to nearest, ties to even. Zero results are +0.0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    precision: int  # bits of the significand, the hidden one included
    lowest: int  # the smallest subnormal is 2**lowest
    highest: int  # finite numbers are below 2**highest


FORMATS = {
    "float16": Format(11, -24, 16),
    "bfloat16": Format(8, -133, 128),
    "float32": Format(24, -149, 128),
    "float64": Format(53, -1074, 1024),
}


def round_ratio(numerator: int, denominator: int, dtype: str) -> float:
    """numerator / denominator (positive), rounded once to the dtype, as a Python float."""
    form = FORMATS[dtype]
    magnitude = abs(numerator)
    if magnitude == 0:
        return 0.0
    # 2**(precision - 1) <= magnitude / denominator / 2**exponent < 2**precision, or subnormal.
    exponent = magnitude.bit_length() - denominator.bit_length() - form.precision
    top, bottom = _shift(magnitude, denominator, exponent)
    if top >= bottom << form.precision:
        exponent += 1
    exponent = max(exponent, form.lowest)
    top, bottom = _shift(magnitude, denominator, exponent)
    significand, rest = divmod(top, bottom)
    if 2 * rest > bottom or (2 * rest == bottom and significand % 2 == 1):
        significand += 1
    if significand.bit_length() + exponent > form.highest:
        rounded = math.inf
    else:
        rounded = math.ldexp(significand, exponent)
    return -rounded if numerator < 0 and rounded else rounded


def _shift(numerator: int, denominator: int, exponent: int) -> tuple[int, int]:
    """The two, divided by 2**exponent."""
    if exponent >= 0:
        return numerator, denominator << exponent
    return numerator << -exponent, denominator


def round_fraction(value: Fraction, dtype: str) -> float:
    return round_ratio(value.numerator, value.denominator, dtype)


def to_integers(values: Sequence[float]) -> tuple[list[int], int]:
    """(integers, exponent) with value = integer * 2**exponent exactly."""
    split = [math.frexp(value) for value in values]
    lowest = min((exponent for mantissa, exponent in split if mantissa), default=0) - 53
    return [int(mantissa * 2**53) << max(exponent - 53 - lowest, 0) for mantissa, exponent in split], lowest


def as_floats(array: Array) -> list[float]:
    return array.astype(np.float64).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Block:
    start: int
    weight: int
    total: int


@dataclass(frozen=True)
class Solution:
    """Maximal blocks of equal exact mean; weights are in units of 2**weight_exponent, values of
    2**value_exponent."""

    length: int
    blocks: list[Block]
    sign: int
    weight_exponent: int
    value_exponent: int

    def starts(self) -> list[int]:
        return [block.start for block in self.blocks]

    def flags(self) -> NDArray[np.uint8]:
        flags = np.zeros(self.length, dtype=np.uint8)
        flags[np.array(self.starts(), dtype=np.intp)] = 1
        return flags

    def spans(self) -> list[tuple[int, int, Block]]:
        ends = [block.start for block in self.blocks[1:]] + [self.length] * bool(self.blocks)
        return [(block.start, end, block) for block, end in zip(self.blocks, ends, strict=True)]

    def mean(self, block: Block, dtype: str) -> float:
        up, down = max(self.value_exponent, 0), max(-self.value_exponent, 0)
        return round_ratio(self.sign * block.total << up, block.weight << down, dtype)

    def fit(self, dtype: str, lower: float = -math.inf, upper: float = math.inf) -> Array:
        fitted = np.empty(self.length, dtype=dtype)
        low, high = round_float(lower, dtype), round_float(upper, dtype)
        for start, end, block in self.spans():
            fitted[start:end] = min(max(self.mean(block, dtype), low), high)
        return fitted

    def block_weights(self) -> list[float]:
        up, down = max(self.weight_exponent, 0), max(-self.weight_exponent, 0)
        return [round_ratio(block.weight << up, 1 << down, "float64") for block in self.blocks]


def round_float(value: float, dtype: str) -> float:
    if not math.isfinite(value):
        return value
    return round_ratio(*value.as_integer_ratio(), dtype)


def solve(
    y: Array, w: Array | None = None, *, increasing: bool = True, tie_offsets: Sequence[int] | None = None
) -> Solution:
    """Pools adjacent violators. Elements between two tie offsets share one value."""
    sign = 1 if increasing else -1
    values, value_exponent = to_integers(as_floats(y))
    weights, weight_exponent = ([1] * len(values), 0) if w is None else to_integers(as_floats(w))
    cuts = list(range(len(values) + 1)) if tie_offsets is None else list(tie_offsets)
    blocks: list[Block] = []
    for begin, end in itertools.pairwise(cuts):
        weight = sum(weights[begin:end])
        total = sign * sum(map(int.__mul__, weights[begin:end], values[begin:end]))
        start = begin
        while blocks and blocks[-1].total * weight >= total * blocks[-1].weight:
            last = blocks.pop()
            start, weight, total = last.start, last.weight + weight, last.total + total
        blocks.append(Block(start, weight, total))
    return Solution(len(values), blocks, sign, weight_exponent, value_exponent)


def gradient(
    solution: Solution,
    y: Array,
    w: Array | None,
    grad: Array,
    dtype: str,
    weight_dtype: str,
    lower: float = -math.inf,
    upper: float = math.inf,
) -> tuple[Array, Array]:
    """dL/dy, exact and rounded once; dL/dw by its float64 recipe. The fit's own dtype is that of y."""
    values = as_floats(y)
    incoming = as_floats(grad)
    weights = [Fraction(1)] * len(values) if w is None else [Fraction(weight) for weight in as_floats(w)]
    low, high = round_float(lower, y.dtype.name), round_float(upper, y.dtype.name)
    for_values = np.zeros(len(values), dtype=dtype)
    for_weights = np.zeros(len(values), dtype=weight_dtype)
    for start, end, block in solution.spans():
        if not low <= solution.mean(block, y.dtype.name) <= high:
            continue
        if not all(map(math.isfinite, incoming[start:end])):
            for_values[start:end] = np.nan
            for_weights[start:end] = np.nan
            continue
        share = sum(map(Fraction, incoming[start:end]), Fraction(0)) / sum(weights[start:end])
        mean, quotient = solution.mean(block, "float64"), round_fraction(share, "float64")
        one_value = len(set(values[start:end])) == 1
        for i in range(start, end):
            for_values[i] = round_fraction(weights[i] * share, dtype)
            for_weights[i] = 0.0 if one_value else _weight_gradient(values[i], mean, quotient, weight_dtype)
    return for_values, for_weights


def _weight_gradient(value: float, mean: float, share: float, dtype: str) -> float:
    gap = value - mean
    # Halves where the gap is beyond float64: the product need not be.
    product = gap * share if math.isfinite(gap) else 2.0 * ((0.5 * value - 0.5 * mean) * share)
    if math.isnan(product):
        return math.nan
    return round_float(product, dtype) + 0.0


def interpolate(knots_x: Sequence[float], knots_y: Sequence[float], point: float, dtype: str) -> float:
    """The piecewise linear curve through the knots at a point, rounded once; constant outside."""
    if math.isnan(point):
        return math.nan
    if point <= knots_x[0]:
        return round_float(knots_y[0], dtype)
    if point >= knots_x[-1]:
        return round_float(knots_y[-1], dtype)
    right = next(i for i, knot in enumerate(knots_x) if knot > point)
    x0, x1 = Fraction(knots_x[right - 1]), Fraction(knots_x[right])
    y0, y1 = Fraction(knots_y[right - 1]), Fraction(knots_y[right])
    return round_fraction(y0 + (y1 - y0) * (Fraction(point) - x0) / (x1 - x0), dtype)


def same_bits(a: Array, b: Array) -> bool:
    """Equal dtype, shape and every bit, so that -0.0 is not 0.0 and a NaN equals itself."""
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )
