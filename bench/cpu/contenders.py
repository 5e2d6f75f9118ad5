"""What is compared: each contender solves a row and hands over every field of its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from families import Floats, Row
from numpy.typing import NDArray


@dataclass(frozen=True)
class Answer:
    """A fit, and the blocks where the contender has them. `others` keeps the result itself alive."""

    fit: Floats
    blocks: NDArray[np.int64] | None = None
    weights: Floats | None = None
    others: Any = field(default=None, repr=False)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.fit, self.blocks, self.weights) if a is not None)


@dataclass(frozen=True)
class Contender:
    """`solve` returns the library's result, whose fit is there; `fields` reads all of it, lazy parts too."""

    name: str
    solve: Callable[[Row], Any]
    fields: Callable[[Any], Answer]


@dataclass(frozen=True)
class Lap:
    """Seconds of one call: wall until the fit is there, wall and CPU (all threads) until all fields are."""

    fit: float
    all: float
    cpu: float


def time_call(contender: Contender, row: Row) -> Lap:
    """One call. The result is freed outside of what is timed, for every contender alike."""
    cpu = time.process_time()
    start = time.perf_counter()
    result = contender.solve(row)
    fit = time.perf_counter()
    answer = contender.fields(result)
    end = time.perf_counter()
    cpu = time.process_time() - cpu
    del result, answer
    return Lap(fit - start, end - start, cpu)


def isofold(threads: int) -> Contender:
    from isofold import isotonic_regression

    return Contender(
        f"isofold, {threads} thread{'s' if threads > 1 else ''}",
        lambda row: isotonic_regression(row.values, weights=row.weights, threads=threads),
        lambda result: Answer(result.x, result.blocks, result.weights, result),
    )


def scipy() -> Contender:
    from scipy.optimize import isotonic_regression

    return Contender(
        "SciPy",
        lambda row: isotonic_regression(row.values, weights=row.weights),
        lambda result: Answer(result.x, result.blocks, result.weights, result),
    )


def sklearn() -> Contender:
    from sklearn.isotonic import isotonic_regression

    return Contender(
        "scikit-learn",
        lambda row: isotonic_regression(row.values, sample_weight=row.weights),
        lambda fit: Answer(fit),
    )


def memcpy(longest: int) -> Contender:
    """The yardstick: the values into memory that has been written before."""
    target = np.zeros(longest)

    def copy(row: Row) -> Floats:
        here = target[: len(row.values)]
        np.copyto(here, row.values)
        return here

    return Contender("memcpy", copy, lambda fit: Answer(fit))


MAKERS: dict[str, Callable[[], Contender]] = {
    "scipy": scipy,
    "sklearn": sklearn,
    "isofold_1": lambda: isofold(1),
    "isofold_2": lambda: isofold(2),
}
