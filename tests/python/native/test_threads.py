"""Many Python threads at once, each with a call of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest

import isofold
from isofold.sklearn import IsotonicRegression


def test_calls_from_a_thread_pool() -> None:
    rng = np.random.default_rng(6)
    jobs = [
        (
            rng.standard_normal(int(rng.integers(0, 20_000))).astype(rng.choice(["float32", "float64"])),
            bool(i % 2),
        )
        for i in range(60)
    ]

    def solve(job: tuple[np.ndarray, bool]) -> tuple[isofold.IsotonicResult, np.ndarray]:
        y, increasing = job
        result = isofold.isotonic_regression(y, increasing=increasing, threads=1 + y.size % 3)
        return result, isofold.isotonic_gradient(result, y)[0]

    expected = [solve(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(solve, jobs))
    for (result, grad), (one_result, one_grad) in zip(found, expected, strict=True):
        assert result == one_result
        assert oracle.same_bits(grad, one_grad)


def test_one_result_and_one_estimator_shared_by_threads() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.random(5000), rng.random(5000)
    result = isofold.isotonic_regression(y)
    estimator = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    points = rng.random(1000)
    expected = estimator.predict(points)
    with ThreadPoolExecutor(8) as pool:
        blocks = list(pool.map(lambda _: result.blocks, range(40)))
        predictions = list(pool.map(lambda _: estimator.predict(points), range(40)))
    assert all((one == blocks[0]).all() for one in blocks)
    assert all(oracle.same_bits(one, expected) for one in predictions)


def test_errors_in_one_thread_do_not_reach_another() -> None:
    good, bad = np.arange(1000.0)[::-1].copy(), np.full(1000, np.nan)

    def solve(i: int) -> float:
        if i % 2:
            with pytest.raises(ValueError, match="y must be finite"):
                isofold.isotonic_regression(bad)
            return 499.5
        return float(isofold.isotonic_regression(good).x[0])

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(solve, range(200))) == {499.5}
