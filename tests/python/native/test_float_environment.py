"""A caller that flushes subnormals to zero, or rounds another way, gets the same bits, and its mode back."""

from __future__ import annotations

import ctypes
import math
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from random_rows import Row, random_row

import isofold
from isofold import _native
from isofold.compat import scipy as compat
from isofold.sklearn import IsotonicRegression

# Control registers by architecture: flush to zero with denormals read as zero, and rounding up, down, to
# zero.
_MODES = {
    "x86_64": {"flush": 0x8040, "up": 0x4000, "down": 0x2000, "zero": 0x6000, "flush and up": 0xC040},
    "aarch64": {"flush": 1 << 24, "up": 1 << 22, "down": 2 << 22, "zero": 3 << 22, "flush and up": 5 << 22},
}
_CODE = {
    "x86_64": """
        #include <immintrin.h>
        unsigned get(void) { return _mm_getcsr() & ~0x3fu; }
        void set(unsigned bits) { _mm_setcsr((_mm_getcsr() & ~0xe040u) | bits); }
    """,
    "aarch64": """
        unsigned get(void) { unsigned long r; __asm__ volatile("mrs %0, fpcr" : "=r"(r)); return (unsigned)r;
        } void set(unsigned bits) {
          unsigned long r; __asm__ volatile("mrs %0, fpcr" : "=r"(r));
          r = (r & ~(7ul << 22)) | bits; __asm__ volatile("msr fpcr, %0" :: "r"(r));
        }
    """,
}
MACHINE = platform.machine()
MODES = _MODES[MACHINE]

Mode = Callable[[str], Any]


@pytest.fixture(scope="module")
def mode(tmp_path_factory: pytest.TempPathFactory) -> Mode:
    """A context manager that sets this thread's mode and checks on leaving that it is still set."""
    folder: Path = tmp_path_factory.mktemp("mode")
    source, library = folder / "mode.c", folder / "mode.so"
    source.write_text(_CODE[MACHINE])
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None, "these tests compile two lines of C"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    control = ctypes.CDLL(str(library))

    @contextmanager
    def within(name: str) -> Iterator[None]:
        default = control.get()
        control.set(MODES[name])
        expected = control.get()
        try:
            assert expected != default
            yield
            assert control.get() == expected, "the caller's mode was not restored"
        finally:
            control.set(0)
        assert control.get() == default

    return within


def test_the_mode_is_really_set(mode: Mode) -> None:
    tiny = np.array([5e-324, 1.0])
    with mode("flush"):
        flushed = tiny * np.array([1.0, 1.0])
    assert flushed.tolist() == [0, 1]
    third = np.array([1.0]) / np.array([3.0])
    with mode("up"):
        up = np.array([1.0]) / np.array([3.0])
    assert up[0] > third[0]


def _solve(row: Row) -> list[Any]:
    fitted, starts = _native.fit(
        row.y, row.w, None, None, row.increasing, row.lower, row.upper, row.tie_offsets, row.out_dtype, 2
    )
    weights = _native.block_weights(row.y, row.w, None, None, starts, 2)
    gradients = _native.gradient(
        row.y, row.w, None, None, row.increasing, row.lower, row.upper, starts, row.grad, True, None, 2
    )
    return [fitted, starts, weights, *gradients]


@pytest.mark.parametrize("name", MODES)
def test_random_rows(mode: Mode, name: str) -> None:
    rows = [random_row(np.random.default_rng([77, i])) for i in range(400)]
    expected = [_solve(row) for row in rows]
    with mode(name):
        found = [_solve(row) for row in rows]
    for arrays, others in zip(found, expected, strict=True):
        for array, other in zip(arrays, others, strict=True):
            assert oracle.same_bits(array, other)


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_long_rows(mode: Mode, name: str, dtype: str) -> None:
    smallest = np.finfo(dtype).smallest_subnormal
    y = np.random.default_rng(1).integers(-50, 51, 30_000).astype(dtype) * smallest
    expected = _native.fit(y, None, None, None, True, -math.inf, math.inf, None, None, 2, 1024)
    with mode(name):
        found = _native.fit(y, None, None, None, True, -math.inf, math.inf, None, None, 2, 1024)
    assert oracle.same_bits(found[0], expected[0])
    assert oracle.same_bits(found[1], expected[1])


def _front_ends(y: Any, x: Any, small32: Any) -> list[Any]:
    result = isofold.isotonic_regression(y, weights=y)
    scipy_like = compat.isotonic_regression(small32, weights=y[:3])
    clipping = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=y)
    merging = IsotonicRegression(merge_tolerance=1e-323).fit(x, x)
    return [
        result.x,
        result.weights,
        *isofold.isotonic_gradient(result, y),
        scipy_like.x,
        scipy_like.weights,
        clipping.X_thresholds_,
        clipping.y_thresholds_,
        clipping.predict(y),
        merging.X_thresholds_,
        merging.predict(x),
        merging.predict(y),
    ]


def test_every_front_end_keeps_subnormals(mode: Mode) -> None:
    # Made here: under the mode NumPy's own products would be zero.
    x = np.array([0.0, 1.0, 2.0, 3.0]) * 5e-324
    y = np.array([9.0, 3.0, 5.0, 7.0]) * 5e-324
    small32 = np.array([3, 1, 2], dtype=np.float32) * np.float32(1e-45)
    expected = _front_ends(y, x, small32)
    with mode("flush"):
        found = _front_ends(y, x, small32)
    for array, other in zip(found, expected, strict=True):
        assert oracle.same_bits(array, other)
    assert all(np.any(array != 0) for array in expected[:10])
