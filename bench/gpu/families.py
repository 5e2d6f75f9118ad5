"""Rows of the kinds that decide how a hull is found, made by torch where they are needed.

The formulas and the counter-based generator are those of tests/cuda/shapes.cpp, so that a program in Python
and time_gpu see the same rows (but for the last bit of a logarithm or a cosine). `cancellation_1eK` is the
paper's (Section 7.6): sums rise and fall back within every 64 elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

PIECE = 1 << 25  # elements made at once


def signed(bits: int) -> int:
    """The 64-bit integer with these bits."""
    return bits - (1 << 64) if bits >> 63 else bits


def shifted(x: Tensor, count: int) -> Tensor:
    """To the right, zeros coming in: torch's own shift copies the sign."""
    return (x >> count) & ((1 << (64 - count)) - 1)


def mixed(x: Tensor) -> Tensor:
    """SplitMix64's finish; integers wrap around."""
    x = x + signed(0x9E3779B97F4A7C15)
    x = (x ^ shifted(x, 30)) * signed(0xBF58476D1CE4E5B9)
    x = (x ^ shifted(x, 27)) * signed(0x94D049BB133111EB)
    return x ^ shifted(x, 31)


@dataclass(frozen=True)
class At:
    """Elements: their position in the row, the row's length and its seed."""

    i: Tensor
    count: Tensor | int
    seed: Tensor
    single: bool

    @property
    def x(self) -> Tensor:
        return self.i.double()

    @property
    def t(self) -> Tensor:
        return self.i.double() / self.count

    def uniform(self, stream: int) -> Tensor:
        bits = shifted(mixed(mixed(self.seed * 64 + stream) + self.i), 11)
        return (bits.double() + 0.5) * 2.0**-53

    def normal(self) -> Tensor:
        return torch.sqrt(-2 * torch.log(self.uniform(0))) * torch.cos(6.283185307179586 * self.uniform(1))


def noise(a: At) -> Tensor:
    return 3 * a.t + a.normal()


def consecutive(a: At) -> Tensor:
    """Floats one after another, from 1 on."""
    if a.single:
        return (0x3F800000 + (a.i & 0x3FFFFFFF)).int().view(torch.float32).double()
    return (0x3FF0000000000000 + a.i).view(torch.float64)


def cancellation(size: float) -> Callable[[At], Tensor]:
    def value(a: At) -> Tensor:
        place = a.i % 64
        small = a.t + 1e-6 * a.normal()
        return torch.where(place < 32, size, torch.where(place == 32, -32 * size, small))

    return value


def integral_weights(a: At) -> Tensor:
    return 1 + torch.floor(a.uniform(2) * 999)


VALUES: dict[str, Callable[[At], Tensor]] = {
    "noise": noise,
    "labels": lambda a: (a.uniform(0) < 1 / (1 + torch.exp(3 - 6 * a.t))).double(),
    "labels_straight": lambda a: (a.uniform(0) < 0.02 + 0.96 * a.t).double(),
    "decreasing": lambda a: -3 * a.t + 0.1 * a.normal(),
    "constant": lambda a: torch.full_like(a.x, 0.7),
    "increasing": lambda a: torch.sqrt(a.x + 1),
    "consecutive": consecutive,
    "steep_noise": lambda a: 0.1 * a.x + a.normal(),
    "rising_then_noise": lambda a: torch.where(a.i < a.count // 2, 0.125 * a.t - 10, noise(a)),
    "tens": lambda a: torch.floor(a.x / 10) - 0.01 * (a.i % 10).double(),
    "half": lambda a: torch.where(a.i * 2 < a.count, a.normal(), 10 + a.x * 1e-6),
    "sawtooth9": lambda a: (a.i % 9).double(),
    "sawtooth5003": lambda a: (a.i % 5003).double() * 1e-3 + a.t,
    "sawtooth1e5": lambda a: (a.i % 100000).double() * 1e-3,
    "ninths": lambda a: (a.i % 9).double() * 0.1,
    "decimals": lambda a: torch.round(10 * noise(a)) / 10,
    "cliff": lambda a: torch.where(a.i == a.count - 1, -1e7, a.x * 0.125),
    "mirrored_cliff": lambda a: torch.where(a.i == 0, 1e7, a.x * 0.125),
    "rates": lambda a: torch.floor(a.uniform(0) * (integral_weights(a) + 1)) / integral_weights(a),
    **{f"cancellation_1e{k}": cancellation(10.0**k) for k in (3, 6, 9, 12)},
}
# Weights: `digits` are time_gpu's, 1 to 9 in turn; `extreme` the paper's, from e^-8 to e^8.
WEIGHTS: dict[str, Callable[[At], Tensor]] = {
    "digits": lambda a: 1 + (a.i % 9).double(),
    "ordinary": lambda a: 0.5 + a.uniform(3),
    "extreme": lambda a: torch.exp(16 * a.uniform(3) - 8),
    "trials": integral_weights,
}


def ragged_lengths(rows: int, longest: int) -> Tensor:
    """Log-uniform from 1 to the longest."""
    draw = torch.rand(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    return torch.exp(draw * math.log(longest + 1)).long().clamp(1, longest)


def fill(
    formula: Callable[[At], Tensor],
    out: Tensor,
    row_length: int,
    offsets: Tensor | None = None,
    seed: int = 1,
) -> Tensor:
    """Fills a flat tensor with rows of one length, or with those that the offsets cut."""
    single = out.dtype == torch.float32
    for begin in range(0, out.numel(), PIECE):
        end = min(begin + PIECE, out.numel())
        index = torch.arange(begin, end, device=out.device)
        if offsets is not None:
            row = torch.searchsorted(offsets, index, right=True) - 1
            at = At(index - offsets[row], offsets[row + 1] - offsets[row], seed + row, single)
        elif row_length == out.numel():
            at = At(index, row_length, torch.tensor(seed, device=out.device), single)
        else:
            row = index // row_length
            at = At(index - row * row_length, row_length, seed + row, single)
        out[begin:end] = formula(at).to(out.dtype)
    return out
