"""Arrays of unevaluated sums of two doubles: about 32 digits, at the speed of NumPy.

Knuth's two-sum, Dekker's two-product and the pair arithmetic of Hida, Li and Bailey (2001): an addition is
off by at most 2^-104 of its result, a product or a quotient by a few times that. Finite arguments below
2^970.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SPLITTER = 134217729.0  # 2^27 + 1


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def quick_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Of |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    far_a, far_b = SPLITTER * a, SPLITTER * b
    high_a, high_b = far_a - (far_a - a), far_b - (far_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


@dataclass(frozen=True, slots=True)
class Pairs:
    """high + low, elementwise; high is the sum rounded to a double. Doubles themselves, or arrays of them."""

    high: Any
    low: Any

    @classmethod
    def of(cls, doubles: Any) -> Pairs:
        return cls(doubles, 0.0 * doubles)

    def __add__(self, other: Pairs) -> Pairs:
        high, error = two_sum(self.high, other.high)
        low, low_error = two_sum(self.low, other.low)
        high, error = quick_two_sum(high, error + low)
        return Pairs(*quick_two_sum(high, error + low_error))

    def __neg__(self) -> Pairs:
        return Pairs(-self.high, -self.low)

    def __sub__(self, other: Pairs) -> Pairs:
        return self + -other

    def __mul__(self, other: Pairs) -> Pairs:
        high, error = two_product(self.high, other.high)
        return Pairs(*quick_two_sum(high, error + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: Pairs) -> Pairs:
        first = self.high / other.high
        rest = self - other * Pairs.of(first)
        second = rest.high / other.high
        rest = rest - other * Pairs.of(second)
        high, low = quick_two_sum(first, second)
        return Pairs(high, low) + Pairs.of(rest.high / other.high)

    def __getitem__(self, where: Any) -> Pairs:
        return Pairs(self.high[where], self.low[where])

    def __len__(self) -> int:
        return len(self.high)

    def magnitude(self) -> Pairs:
        sign = np.where(self.high < 0, -1.0, 1.0)
        return Pairs(sign * self.high, sign * self.low)


PIECE = 1 << 14  # elements whose intermediate results stay in a cache


def by_pieces(terms: Callable[[slice], Pairs], count: int) -> Pairs:
    """An array of `count` pairs, made a piece at a time."""
    found = Pairs(np.empty(count), np.empty(count))
    for begin in range(0, count, PIECE):
        piece = slice(begin, min(begin + PIECE, count))
        made = terms(piece)
        found.high[piece], found.low[piece] = made.high, made.low
    return found


def total_by_pieces(terms: Callable[[slice], Pairs], count: int) -> Pairs:
    sums = [total(terms(slice(begin, min(begin + PIECE, count)))) for begin in range(0, count, PIECE)]
    return total(Pairs(np.array([s.high for s in sums]), np.array([s.low for s in sums])))


def total(terms: Pairs) -> Pairs:
    """The sum of an array, pair by pair up a tree."""
    while len(terms) > 1:
        odd = terms[-1:] if len(terms) % 2 else None
        even = len(terms) // 2 * 2
        terms = terms[0:even:2] + terms[1:even:2]
        if odd is not None:
            terms = Pairs(np.append(terms.high, odd.high), np.append(terms.low, odd.low))
    return terms[0] if len(terms) else Pairs(0.0, 0.0)


def running_sums(terms: Pairs, starts: NDArray[np.bool_] | None = None) -> Pairs:
    """For every element the sum of it and of those before it, back to the latest start.

    The array is cut into about sqrt(n) stretches that are summed side by side; then each takes over what the
    one before it ends with, up to its first start.
    """
    count = len(terms)
    length = max(1, int(np.sqrt(count)))
    stretches = -(-count // length)

    def columns(array: NDArray[Any]) -> NDArray[Any]:
        padded = np.zeros(stretches * length, array.dtype)
        padded[:count] = array
        return np.ascontiguousarray(padded.reshape(stretches, length).T)

    values = Pairs(columns(terms.high), columns(terms.low))
    begins = np.zeros((length, stretches), bool) if starts is None else columns(starts)
    sums = Pairs(np.empty_like(values.high), np.empty_like(values.low))
    here = Pairs(np.zeros(stretches), np.zeros(stretches))
    for step in range(length):
        if starts is not None:
            here = Pairs(np.where(begins[step], 0.0, here.high), np.where(begins[step], 0.0, here.low))
        here = here + values[step]
        sums.high[step], sums.low[step] = here.high, here.low

    seen = np.logical_or.accumulate(begins, axis=0)
    carries = np.zeros((2, stretches))
    carry = Pairs(0.0, 0.0)
    for stretch in range(1, stretches):
        last = Pairs(float(here.high[stretch - 1]), float(here.low[stretch - 1]))
        carry = last if seen[-1, stretch - 1] else carry + last
        carries[:, stretch] = carry.high, carry.low
    carried = Pairs(np.where(seen, 0.0, carries[0]), np.where(seen, 0.0, carries[1]))
    found = sums + carried
    return Pairs(found.high.T.reshape(-1)[:count], found.low.T.reshape(-1)[:count])
