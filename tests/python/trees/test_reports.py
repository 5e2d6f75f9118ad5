"""What users of other libraries reported, and what must hold here instead."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import isofold


def rows_for(sums: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """One feature whose bin b holds rows with this sum of gradients, and this many of them."""
    bins, gradients = [], []
    for bin_, (gradient, rows) in enumerate(sums):
        bins += [bin_] * rows
        gradients += [float(gradient)] + [0.0] * (rows - 1)
    return np.array(bins, np.uint8)[:, None], np.array(gradients)


FREE = {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}


def test_different_sums_of_equal_real_gain_have_one_winner() -> None:
    # G = -12, H = 4 split as (-5, 1 | -7, 3) and (-1, 1 | -11, 3): both gain 124/3 in the reals.
    first, second = rows_for([(-5, 1), (-7, 3)]), rows_for([(-1, 1), (-11, 3)])
    winners = set()
    gains = []
    for bins, gradients in (first, second):
        split = isofold.best_splits(isofold.histogram(bins, gradients), **FREE)
        gains.append(float(split.gain[0]))
    assert gains == pytest.approx([124 / 3 - 36] * 2, rel=1e-15)
    # Both as features of the same rows: whichever wins, it does so for any order of the rows.
    bins = np.array([[0, 1], [1, 0], [1, 1], [1, 1]], np.uint8)
    gradients = np.array([-5.0, -1.0, -3.0, -3.0])
    for order in itertools.permutations(range(4)):
        rows = list(order)
        for threads in (1, 2):
            histogram = isofold.histogram(bins[rows], gradients[rows], threads=threads)
            split = isofold.best_splits(histogram, threads=threads, **FREE)
            winners.add((int(split.feature[0]), int(split.bin[0]), float(split.gain[0])))
    assert len(winners) == 1


def test_same_histogram_run_after_run() -> None:
    # LightGBM 559, 2659: results drift from run to run; 6203, 6055: CPU and GPU differ on many rows.
    random = np.random.default_rng(0)
    bins = random.integers(0, 64, (50_000, 6)).astype(np.uint8)
    gradients = random.normal(size=50_000) * 10.0 ** random.uniform(-8, 8, 50_000)
    hessians = random.random(50_000)
    first = isofold.histogram(bins, gradients, hessians, threads=1)
    for run in range(4):
        order = random.permutation(50_000)
        again = isofold.histogram(bins[order], gradients[order], hessians[order], threads=1 + run)
        assert again == first
    # Float64 sums do drift.
    drifting = {float(np.sum(gradients[random.permutation(50_000)])) for _ in range(8)}
    assert len(drifting) > 1


def test_order_of_columns() -> None:
    # LightGBM 6671, 6069: the order of columns changes the model.
    random = np.random.default_rng(1)
    for seed in range(30):
        bins = random.integers(0, 12, (400, 5)).astype(np.uint8)
        gradients = random.normal(size=400)
        split = isofold.best_splits(isofold.histogram(bins, gradients), top_k=5)
        order = random.permutation(5)
        other = isofold.best_splits(isofold.histogram(bins[:, order], gradients), top_k=5)
        assert list(order[other.feature[0]]) == list(split.feature[0]), seed
        assert np.array_equal(other.gain, split.gain)
        assert np.array_equal(other.bin, split.bin)


def test_counts_are_rows() -> None:
    # LightGBM 3634, 5935: counts derived from hessians let leaves be smaller than min_data_in_leaf.
    bins = np.repeat([0, 1], [5, 95]).astype(np.uint8)[:, None]
    gradients = np.where(bins[:, 0] == 0, 10.0, -1.0)
    hessians = np.where(bins[:, 0] == 0, 20.0, 0.01)  # by hessian, bin 0 is nearly all rows
    histogram = isofold.histogram(bins, gradients, hessians)
    assert list(histogram.counts[0, 0]) == [5, 95]
    rules = {"min_sum_hessian_in_leaf": 0.0}
    assert isofold.best_splits(histogram, min_data_in_leaf=6, **rules).feature[0] == -1
    assert isofold.best_splits(histogram, min_data_in_leaf=5, **rules).left_count[0] == 5


def test_an_empty_bin_is_empty() -> None:
    # LightGBM 1564: a bin of no rows was left with a hessian of -1.8e-15 by subtraction.
    random = np.random.default_rng(2)
    bins = random.integers(0, 8, (600, 2)).astype(np.uint8)
    quantized = isofold.quantize_gradients(random.normal(size=600), random.random(600) * 0.1)
    upper = np.flatnonzero(bins[:, 0] > 3)
    parent = isofold.histogram(bins, quantized)
    rest = parent - isofold.histogram(bins, quantized, rows=upper, bin_count=8)
    assert np.all(rest.hessians[0, 0, 4:] == 0)
    assert np.all(rest.gradients[0, 0, 4:] == 0)
    split = isofold.best_splits(rest, **{**FREE, "min_sum_hessian_in_leaf": 0.0})
    assert split.bin[0] <= 3 or split.feature[0] == 1


def test_default_direction_without_missing_values() -> None:
    # XGBoost 10637: the direction differed between machines where nothing is missing.
    random = np.random.default_rng(3)
    for seed in range(50):
        bins = random.integers(0, 9, (200, 3)).astype(np.uint8)
        gradients = random.integers(-3, 4, 200).astype(float)
        for ties in ("lowest", "highest", "middle", "lightgbm"):
            with_bin = isofold.histogram(bins, gradients, bin_count=10)
            split = isofold.best_splits(with_bin, missing=True, ties=ties)
            plain = isofold.best_splits(isofold.histogram(bins, gradients), ties=ties)
            assert split.tobytes() == plain.tobytes(), seed
            assert split.feature[0] == -1 or split.default_left[0]


def test_missing_values_alone_on_a_side() -> None:
    bins = np.repeat([0, 1, 2, 3], 30).astype(np.uint8)[:, None]
    gradients = np.where(bins[:, 0] == 3, 1.0, -1.0)
    split = isofold.best_splits(isofold.histogram(bins, gradients), missing=True)
    assert (split.bin[0], bool(split.default_left[0])) == (2, False)
    assert split.left_count[0] == 90
    left_too = isofold.best_splits(
        isofold.histogram(bins, np.where(bins[:, 0] == 2, 1.0, -1.0)), missing=True
    )
    assert (left_too.bin[0], bool(left_too.default_left[0])) == (1, True)


def test_runner_up_splits() -> None:
    # LightGBM 6667: the splits after the best one.
    random = np.random.default_rng(4)
    bins = random.integers(0, 16, (3000, 4)).astype(np.uint8)
    gradients = random.normal(size=3000) + 0.5 * (bins[:, 3] > 7) + 0.3 * (bins[:, 0] > 2)
    split = isofold.best_splits(isofold.histogram(bins, gradients), top_k=4)
    assert list(split.feature[0, :2]) == [3, 0]
    assert np.all(split.margin > 0)
    assert np.all(split.margin[0, :3] <= split.gain[0, :3] - split.gain[0, 1:])


def test_a_small_hessian_never_vanishes() -> None:
    # XGBoost 12265: a hessian that is quantised to zero.
    hessians = np.array([1e-30, 1.0, 0.0, 1e-300])
    found = isofold.quantize_gradients(np.ones(4), hessians)
    assert list(found.values[:, 1] > 0) == [True, True, False, True]
