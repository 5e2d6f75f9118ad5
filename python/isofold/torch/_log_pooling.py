"""Blocks of isotonic regression in the Kullback-Leibler divergence, in log space, for any range of the input.

Blondel, Teboul, Berthet and Djolonga 2020, section 4: for rows a and b in falling order, the non-increasing v
that minimises sum e^(a_i - v_i) + e^(b_i) v_i; on a block v = log sum e^a - log sum e^b. Those sums may span
any range, so the row cannot be handed to a solver that adds: a block's sums are kept relative to its first,
largest term.

Halves are solved, then merged, level by level (divide and conquer, all pairs of a level side by side): one
block at most joins two solved halves, and its value v is the only one for which just the blocks up to v on
the left and from v on the right belong to it. Whether a given block belongs is one comparison, so a level
costs a search for every element: O(n log^2 n) in all, in a sequence of operations that no value changes and
no device either.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isofold.torch._logarithms import exp_of_negative, log


@dataclass
class _Sums:
    """Of e^x over ends of segments, relative to e^x of the first element that is summed."""

    x: Tensor  # falling in every row, shape (segments, elements)
    first: Tensor  # the largest x of the element's row within its segment
    prefix: Tensor  # from there to the element
    suffix: Tensor  # from the element to the end of its row within the segment

    def halves(self, length: int) -> tuple[_Sums, _Sums]:
        parts = [t.view(-1, 2, length) for t in (self.x, self.first, self.prefix, self.suffix)]
        return _Sums(*(t[:, 0] for t in parts)), _Sums(*(t[:, 1] for t in parts))


def _take(tensor: Tensor, index: Tensor) -> Tensor:
    """The elements of every row at the index, where there are some."""
    return tensor.gather(1, index.clamp(0, tensor.shape[1] - 1))


class _Merge:
    """Two solved halves of every segment, of which the row in the middle goes on from left to right."""

    def __init__(self, a: _Sums, b: _Sums, value: Tensor, row: Tensor, length: int) -> None:
        self.length = length
        self.a, self.b = a.halves(length), b.halves(length)
        self.value = value.view(-1, 2, length)
        rows = row.view(-1, 2, length)
        middle = rows[:, 0, -1:]
        self.joined = middle == rows[:, 1, :1]
        self.mine = (rows[:, 0] == middle, (rows[:, 1] == middle) & self.joined)
        # e^(the middle's first x - x) for the elements left of it: what sums on the right count for there.
        self.scales = tuple(
            torch.where(self.mine[0], exp_of_negative(right.x[:, :1] - left.x), 0.0)
            for left, right in (self.a, self.b)
        )
        # Rising, for searches; other rows lie beyond everything.
        self.keys = (
            torch.where(self.mine[0], -self.value[:, 0], -torch.inf).contiguous(),
            torch.where(self.mine[1], -self.value[:, 1], torch.inf).contiguous(),
        )

    def _sum(
        self, sums: tuple[_Sums, _Sums], scale: Tensor, start: Tensor, count: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(the first x, the sum relative to it) of the elements from start on the left to count on the
        right"""
        left, right = sums
        on_right = torch.where(count > 0, _take(right.prefix, count - 1), 0.0)
        alone = start == self.length
        first = torch.where(alone, right.x[:, :1], _take(left.x, start))
        total = _take(left.suffix, start) + _take(scale, start) * on_right
        return first, torch.where(alone, on_right, total)

    def pooled(self, start: Tensor, count: Tensor) -> Tensor:
        """v of the elements from start on the left to count on the right."""
        first_a, sum_a = self._sum(self.a, self.scales[0], start, count)
        first_b, sum_b = self._sum(self.b, self.scales[1], start, count)
        return (first_a - first_b) + log(sum_a / sum_b)

    def _belongs(self, value: Tensor, right: bool) -> tuple[Tensor, Tensor]:
        """What a block of that value would join if it is the last to do so: (where that starts on the left,
        how many elements of it lie on the right). Without the block itself, whose sum could be all that a
        float holds."""
        key = (-value).contiguous()
        start, count = (torch.searchsorted(keys, key, right=right) for keys in self.keys)
        return start, count

    def values(self) -> Tensor:
        left, right = self.value[:, 0], self.value[:, 1]
        met = self.joined & (left[:, -1:] <= right[:, :1])
        on_left = self.mine[0] & ((self.pooled(*self._belongs(left, True)) >= left) | (left == left[:, -1:]))
        on_right = self.mine[1] & (
            (self.pooled(*self._belongs(right, False)) <= right) | (right == right[:, :1])
        )
        start = on_left.to(torch.int8).argmax(1, keepdim=True)
        count = self.length - on_right.flip(1).to(torch.int8).argmax(1, keepdim=True)
        pooled = self.pooled(start, count)
        # Rounding may carry it past a neighbour.
        above = torch.where((start > 0) & _take(self.mine[0], start - 1), _take(left, start - 1), torch.inf)
        below = torch.where(
            (count < self.length) & _take(self.mine[1], count), _take(right, count), -torch.inf
        )
        pooled = torch.maximum(torch.minimum(pooled, above), below)
        place = torch.arange(self.length, device=left.device)
        left = torch.where(met & (place >= start), pooled, left)
        right = torch.where(met & (place < count), pooled, right)
        return torch.cat([left, right], 1)

    def sums(self, halves: tuple[_Sums, _Sums], scale: Tensor) -> _Sums:
        """Of the segments that the halves make up."""
        left, right = halves
        goes_on, came_on = self.mine[0] & self.joined, self.mine[1]
        suffix = torch.where(goes_on, left.suffix + scale * right.suffix[:, :1], left.suffix)
        shrunk = exp_of_negative(right.first[:, :1] - left.first[:, -1:])
        prefix = torch.where(came_on, left.prefix[:, -1:] + shrunk * right.prefix, right.prefix)
        first = torch.where(came_on, left.first[:, -1:], right.first)
        return _Sums(
            torch.cat([left.x, right.x], 1),
            torch.cat([left.first, first], 1),
            torch.cat([left.prefix, prefix], 1),
            torch.cat([suffix, right.suffix], 1),
        )


def block_starts(a: Tensor, b: Tensor, row: Tensor) -> Tensor:
    """uint8 flags, 1 where a block starts, of flat rows that are falling; `row` numbers each element's row.

    Shape (batch, elements): rows do not reach over from one entry of the batch to the next.
    """
    batch, elements = a.shape
    padded = 1 << max(elements - 1, 0).bit_length()
    if padded > elements:
        fill = (0, padded - elements)
        a, b = (torch.nn.functional.pad(x, fill) for x in (a, b))
        row = torch.nn.functional.pad(row, fill, value=-1)
    value = (a - b).view(-1, 1)
    row = row.reshape(-1, 1)
    one = torch.ones_like(value)
    sum_a, sum_b = (_Sums(x.reshape(-1, 1), x.reshape(-1, 1), one, one) for x in (a, b))
    length = 1
    while length < padded:
        merge = _Merge(sum_a, sum_b, value, row, length)
        value = merge.values()
        sum_a, sum_b = (merge.sums(*half) for half in zip((merge.a, merge.b), merge.scales, strict=True))
        length *= 2
        row = row.view(-1, length)
    value, row = value.view(batch, padded)[:, :elements], row.view(batch, padded)[:, :elements]
    starts = torch.ones_like(row, dtype=torch.uint8)
    if elements > 1:
        starts[:, 1:] = (value[:, 1:] != value[:, :-1]) | (row[:, 1:] != row[:, :-1])
    return starts
