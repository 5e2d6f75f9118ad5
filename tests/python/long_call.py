"""A call that takes a good while whatever the machine: sums whose exponents spread over the whole range."""

from __future__ import annotations

import functools
import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_rows import random_bits

from isofold import _native

SECONDS = 1.5


def run(arrays: tuple[NDArray[Any], NDArray[Any]]) -> None:
    _native.fit(*arrays, None, None, True, -math.inf, math.inf, None, None, 1)


@functools.cache
def long_row() -> tuple[tuple[NDArray[Any], NDArray[Any]], float]:
    """(values and weights, how many seconds of a processor the fit takes), at least SECONDS."""
    rng = np.random.default_rng(1)
    n = 10_000
    while True:
        y, w = random_bits(rng, n, "float64"), np.abs(random_bits(rng, n, "float64"))
        w[w == 0] = 1
        start = time.thread_time()  # a busy machine does not make it shorter next time
        run((y, w))
        took = time.thread_time() - start
        if took >= SECONDS:
            return (y, w), took
        n = int(n * min(4, 1.5 * SECONDS / took + 0.5))
