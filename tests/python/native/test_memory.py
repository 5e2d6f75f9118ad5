"""Memory does not grow over a thousand calls, failed ones included."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

import numpy as np
import pytest

import isofold
from isofold.compat import scipy as compat
from isofold.sklearn import IsotonicRegression

N = 16_384
Y = np.random.default_rng(0).standard_normal(N)
X = np.random.default_rng(1).random(N)
BAD = np.append(Y, np.nan)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def _fit_and_differentiate() -> None:
    result = isofold.isotonic_regression(Y, weights=X + 1)
    isofold.isotonic_gradient(result, Y)
    _ = result.blocks, result.weights


def _estimate() -> None:
    IsotonicRegression(out_of_bounds="clip").fit(X, Y).predict(X)


def _as_scipy() -> None:
    compat.isotonic_regression(Y)


def _fail() -> None:
    with pytest.raises(ValueError, match="y must be finite"):
        isofold.isotonic_regression(BAD)


@pytest.mark.parametrize("call", [_fit_and_differentiate, _estimate, _as_scipy, _fail])
def test_a_thousand_calls(call: Callable[[], None]) -> None:
    for _ in range(100):
        call()
    gc.collect()
    before = _resident_bytes()
    for _ in range(1000):
        call()
    gc.collect()
    # One array leaked a call would be 128 MiB.
    assert _resident_bytes() - before < 8 * 2**20
