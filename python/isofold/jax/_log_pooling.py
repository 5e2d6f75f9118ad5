"""Blocks of isotonic regression in the Kullback-Leibler divergence in log space, for any range of the input:
the merges of isofold.torch's `_log_pooling`, whose module says why they are right, on arrays of JAX."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from isofold.jax._logarithms import exp_of_negative, log


class _Sums(NamedTuple):
    """Of e^x over ends of segments, relative to e^x of the first element that is summed."""

    x: Array  # falling in every row, shape (segments, elements)
    first: Array  # the largest x of the element's row within its segment
    prefix: Array  # from there to the element
    suffix: Array  # from the element to the end of its row within the segment

    def halves(self, length: int) -> tuple[_Sums, _Sums]:
        parts = [array.reshape(-1, 2, length) for array in self]
        return _Sums(*(p[:, 0] for p in parts)), _Sums(*(p[:, 1] for p in parts))


def _take(array: Array, index: Array) -> Array:
    """The elements of every row at the index, where there are some."""
    return jnp.take_along_axis(array, jnp.clip(index, 0, array.shape[1] - 1), axis=1)


def _search(keys: Array, values: Array, side: str) -> Array:
    return jax.vmap(lambda k, v: jnp.searchsorted(k, v, side=side))(keys, values)


class _Merge:
    """Two solved halves of every segment, of which the row in the middle goes on from left to right."""

    def __init__(self, a: _Sums, b: _Sums, value: Array, row: Array, length: int) -> None:
        self.length = length
        self.a, self.b = a.halves(length), b.halves(length)
        self.value = value.reshape(-1, 2, length)
        rows = row.reshape(-1, 2, length)
        middle = rows[:, 0, -1:]
        self.joined = middle == rows[:, 1, :1]
        self.mine = (rows[:, 0] == middle, (rows[:, 1] == middle) & self.joined)
        # e^(the middle's first x - x) for the elements left of it: what sums on the right count for there.
        self.scales = tuple(
            jnp.where(self.mine[0], exp_of_negative(right.x[:, :1] - left.x), 0.0)
            for left, right in (self.a, self.b)
        )
        # Rising, for searches; other rows lie beyond everything.
        self.keys = (
            jnp.where(self.mine[0], -self.value[:, 0], -jnp.inf),
            jnp.where(self.mine[1], -self.value[:, 1], jnp.inf),
        )

    def _sum(
        self, sums: tuple[_Sums, _Sums], scale: Array, start: Array, count: Array
    ) -> tuple[Array, Array]:
        """(the first x, the sum relative to it) of the elements from start on the left to count on the
        right"""
        left, right = sums
        on_right = jnp.where(count > 0, _take(right.prefix, count - 1), 0.0)
        alone = start == self.length
        first = jnp.where(alone, right.x[:, :1], _take(left.x, start))
        total = _take(left.suffix, start) + _take(scale, start) * on_right
        return first, jnp.where(alone, on_right, total)

    def pooled(self, start: Array, count: Array) -> Array:
        """v of the elements from start on the left to count on the right."""
        first_a, sum_a = self._sum(self.a, self.scales[0], start, count)
        first_b, sum_b = self._sum(self.b, self.scales[1], start, count)
        return (first_a - first_b) + log(sum_a / sum_b)

    def _belongs(self, value: Array, side: str) -> tuple[Array, Array]:
        """Where a block of that value starts on the left, and how many elements it has on the right, if it is
        the last to join."""
        start, count = (_search(keys, -value, side) for keys in self.keys)
        return start, count

    def values(self) -> Array:
        left, right = self.value[:, 0], self.value[:, 1]
        met = self.joined & (left[:, -1:] <= right[:, :1])
        on_left = self.mine[0] & (
            (self.pooled(*self._belongs(left, "right")) >= left) | (left == left[:, -1:])
        )
        on_right = self.mine[1] & (
            (self.pooled(*self._belongs(right, "left")) <= right) | (right == right[:, :1])
        )
        start = jnp.argmax(on_left, axis=1, keepdims=True)
        count = self.length - jnp.argmax(on_right[:, ::-1], axis=1, keepdims=True)
        pooled = self.pooled(start, count)
        # Rounding may carry it past a neighbour.
        above = jnp.where((start > 0) & _take(self.mine[0], start - 1), _take(left, start - 1), jnp.inf)
        below = jnp.where((count < self.length) & _take(self.mine[1], count), _take(right, count), -jnp.inf)
        pooled = jnp.maximum(jnp.minimum(pooled, above), below)
        place = jnp.arange(self.length)
        left = jnp.where(met & (place >= start), pooled, left)
        right = jnp.where(met & (place < count), pooled, right)
        return jnp.concatenate([left, right], axis=1)

    def sums(self, halves: tuple[_Sums, _Sums], scale: Array) -> _Sums:
        """Of the segments that the halves make up."""
        left, right = halves
        goes_on, came_on = self.mine[0] & self.joined, self.mine[1]
        suffix = jnp.where(goes_on, left.suffix + scale * right.suffix[:, :1], left.suffix)
        shrunk = exp_of_negative(right.first[:, :1] - left.first[:, -1:])
        prefix = jnp.where(came_on, left.prefix[:, -1:] + shrunk * right.prefix, right.prefix)
        first = jnp.where(came_on, left.first[:, -1:], right.first)
        return _Sums(
            jnp.concatenate([left.x, right.x], axis=1),
            jnp.concatenate([left.first, first], axis=1),
            jnp.concatenate([left.prefix, prefix], axis=1),
            jnp.concatenate([suffix, right.suffix], axis=1),
        )


def block_starts(a: Array, b: Array, row: Array) -> Array:
    """True where a block starts, of falling rows; `row` numbers each element's row.

    Shape (batch, elements): rows do not reach over from one entry of the batch to the next.
    """
    batch, elements = a.shape
    padded = 1 << max(elements - 1, 0).bit_length()
    fill = ((0, 0), (0, padded - elements))
    a, b = (jnp.pad(x, fill) for x in (a, b))
    row = jnp.pad(row, fill, constant_values=-1).reshape(-1, 1)
    value = (a - b).reshape(-1, 1)
    one = jnp.ones_like(value)
    sum_a, sum_b = (_Sums(x.reshape(-1, 1), x.reshape(-1, 1), one, one) for x in (a, b))
    length = 1
    while length < padded:
        merge = _Merge(sum_a, sum_b, value, row, length)
        value = merge.values()
        sum_a, sum_b = (
            merge.sums(half, scale) for half, scale in zip((merge.a, merge.b), merge.scales, strict=True)
        )
        length *= 2
        row = row.reshape(-1, length)
    value, row = value.reshape(batch, padded)[:, :elements], row.reshape(batch, padded)[:, :elements]
    other = (value[:, 1:] != value[:, :-1]) | (row[:, 1:] != row[:, :-1])
    return jnp.concatenate([jnp.ones((batch, 1), bool), other], axis=1)
