"""The kinds of rows that are timed; bench/cpu/families.hpp has the same ones for the C++ benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One row of values, and weights or none."""

    values: Floats
    weights: Floats | None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.weights is None else self.weights.nbytes)


def _ramp(n: int) -> Floats:
    return np.arange(n) / n


def _noise(n: int, random: np.random.Generator) -> Floats:
    return 3.0 * _ramp(n) + random.standard_normal(n)


def _sawtooth(period: int) -> Callable[[int, np.random.Generator], Floats]:
    return lambda n, random: 1e-3 * (np.arange(n) % period) + _ramp(n)


def _with_last(values: Floats, last: float) -> Floats:
    values[-1] = last
    return values


def _with_first(values: Floats, first: float) -> Floats:
    values[0] = first
    return values


_Draw = Callable[[int, np.random.Generator], NDArray[np.floating[Any]]]

_VALUES: dict[str, _Draw] = {
    "noise": _noise,
    "binary": lambda n, random: (random.random(n) < 0.1 + 0.5 * _ramp(n)).astype(np.float64),
    "increasing": lambda n, random: _ramp(n),
    "decreasing": lambda n, random: -_ramp(n),
    "constant": lambda n, random: np.full(n, 0.1),
    "cliff": lambda n, random: _with_last(_ramp(n), -float(n)),
    "mirrored_cliff": lambda n, random: _with_first(_ramp(n), float(n)),
    "sawtooth_9": _sawtooth(9),
    "sawtooth_5003": _sawtooth(5003),
    "blocks_of_ten": lambda n, random: 1e-3 * (np.arange(n) // 10 * 10 - np.arange(n) % 10),
    "ninths": lambda n, random: (np.arange(n) % 9) * 0.1,
    "one_decimal_noise": lambda n, random: np.round(_noise(n, random), 1),
}


def _weighted_noise(n: int, random: np.random.Generator) -> Row:
    return Row(_noise(n, random), 0.5 + random.random(n))


def _rates(n: int, random: np.random.Generator) -> Row:
    trials = random.integers(1, 300, n, endpoint=True)
    successes = random.binomial(trials, 0.1 + 0.5 * _ramp(n))
    return Row(successes / trials, trials.astype(np.float64))


_WEIGHTED: dict[str, Callable[[int, np.random.Generator], Row]] = {
    "weighted_noise": _weighted_noise,
    "rates": _rates,
}

FAMILIES = (*_VALUES, *_WEIGHTED)


def make_row(family: str, n: int) -> Row:
    """A float64 row of `n` elements, always the same one."""
    random = np.random.default_rng(20130101)
    if family in _WEIGHTED:
        return _WEIGHTED[family](n, random)
    return Row(_VALUES[family](n, random).astype(np.float64, copy=False), None)
