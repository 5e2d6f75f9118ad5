"""The first split of LightGBM's CPU learner and ours under ties="lightgbm": the same feature and bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lightgbm_cpu import threshold_bin, train

import isofold


def data(seed: int) -> tuple[np.ndarray, list[int], np.ndarray, dict[str, Any]]:
    random = np.random.default_rng(seed)
    rows = int(random.integers(32, 500))
    features = int(random.integers(1, 7))
    counts = [int(x) for x in random.integers(2, 40, features)]
    # Few of the bins hold rows: plateaus of equal sums.
    used = [max(1, int(c * random.choice([0.2, 0.6, 1.0]))) for c in counts]
    bins = np.column_stack(
        [random.choice(random.permutation(c)[:u], rows) for c, u in zip(counts, used, strict=True)]
    )
    if features > 1 and random.random() < 0.3:
        bins[:, -1], counts[-1] = bins[:, 0], counts[0]
    gradients = random.integers(-4, 5, rows).astype(float)
    if random.random() < 0.5:
        gradients += bins[:, 0] > counts[0] // 2
    rules: dict[str, Any] = {
        "lambda_l1": float(random.choice([0, 0, 1])),
        "lambda_l2": float(random.choice([0, 0, 1, 0.3])),
        "min_data_in_leaf": int(random.choice([16, 20, 40])),
        "min_gain_to_split": float(random.choice([0, 0, 0.5])),
        "max_delta_step": float(random.choice([0, 0, 0.1])),
        "path_smooth": float(random.choice([0, 0, 0, 5])),
    }
    return bins, counts, gradients, rules


def ours(
    bins: np.ndarray, counts: list[int], gradients: np.ndarray, rules: dict[str, Any], **more: Any
) -> Any:
    histogram = isofold.histogram(bins.astype(np.uint8), gradients, bin_count=max(counts))
    return isofold.best_splits(
        histogram, **{"bin_counts": counts, **more}, **rules, min_sum_hessian_in_leaf=0, ties="lightgbm"
    )


@pytest.mark.parametrize("part", range(20))
def test_same_feature_and_bin(part: int) -> None:
    splits = plateaus = 0
    for seed in range(100 * part, 100 * part + 100):
        bins, counts, gradients, rules = data(seed)
        split = ours(bins, counts, gradients, rules)
        theirs = train(bins, counts, gradients, np.ones(len(bins)), num_leaves=2, **rules)
        if "split_feature" not in theirs:
            assert split.feature[0] == -1, seed
            continue
        assert (split.feature[0], split.bin[0]) == (
            theirs["split_feature"],
            threshold_bin(theirs["threshold"]),
        ), seed
        assert split.left_count[0] == theirs["left_child"]["leaf_count"], seed
        # LightGBM writes gains in float32, with min_gain_to_split added back.
        gain = split.gain[0] + rules["min_gain_to_split"]
        assert gain == pytest.approx(theirs["split_gain"], rel=1e-5), seed
        assert split.left_output[0] == pytest.approx(
            theirs["left_child"]["leaf_value"], rel=1e-12, abs=1e-300
        )
        splits += 1
        plateaus += int(split.plateau[0, 0] < split.plateau[0, 1])
    assert splits > 60
    assert plateaus > 20


@pytest.mark.parametrize("part", range(4))
def test_missing_values(part: int) -> None:
    left = right = 0
    for seed in range(100 * part, 100 * part + 100):
        bins, counts, gradients, rules = data(10_000 + seed)
        random = np.random.default_rng(seed)
        missing = random.random(bins.shape) < random.choice([0.0, 0.1, 0.4])
        gradients = gradients + 2 * missing[:, 0] * random.choice([-1, 0, 1])
        theirs = train(bins, counts, gradients, np.ones(len(bins)), num_leaves=2, missing=missing, **rules)
        with_bin = np.where(missing, np.array(counts)[None, :], bins)
        split = ours(with_bin, [c + 1 for c in counts], gradients, rules, missing=True)
        if "split_feature" not in theirs:
            assert split.feature[0] == -1, seed
            continue
        feature = theirs["split_feature"]
        # All values left and the missing ones right: LightGBM writes a threshold of the largest double.
        bin_ = min(threshold_bin(min(theirs["threshold"], 1e6)), counts[feature] - 1)
        assert (split.feature[0], split.bin[0]) == (feature, bin_), (seed, theirs)
        assert split.left_count[0] == theirs["left_child"]["leaf_count"], seed
        if missing[:, feature].any():
            assert split.default_left[0] == theirs["default_left"], seed
            left += int(split.default_left[0])
            right += int(not split.default_left[0])
    assert min(left, right) > 5


@pytest.mark.parametrize("monotone", [1, -1])
def test_monotone(monotone: int) -> None:
    for seed in range(100):
        bins, counts, gradients, rules = data(20_000 + seed)
        theirs = train(
            bins,
            counts,
            gradients,
            np.ones(len(bins)),
            num_leaves=2,
            monotone_constraints=[monotone] * len(counts),
            **rules,
        )
        split = ours(bins, counts, gradients, rules, monotone=monotone)
        if "split_feature" not in theirs:
            assert split.feature[0] == -1, seed
            continue
        assert (split.feature[0], split.bin[0]) == (
            theirs["split_feature"],
            threshold_bin(theirs["threshold"]),
        ), seed


@pytest.mark.parametrize("one_hot", [True, False])
def test_categories(one_hot: bool) -> None:
    """The same set of categories goes left. LightGBM's subsets tie by its own order of the categories, so in
    these data no two have the same mean gradient."""
    splits = 0
    for seed in range(300):
        random = np.random.default_rng(30_000 + seed)
        rows, features = int(random.integers(100, 800)), 3
        counts = [int(x) for x in random.integers(*((3, 4) if one_hot else (5, 30)), features)]
        bins = np.column_stack([random.integers(0, c, rows) for c in counts])
        gradients = random.integers(-1000, 1001, rows).astype(float)
        gradients += 100 * random.integers(-4, 5, counts[0])[bins[:, 0]]
        rules: dict[str, Any] = {
            "lambda_l2": float(random.choice([0, 1])),
            "min_data_in_leaf": int(random.choice([16, 40])),
            "max_cat_to_onehot": 4,
            "max_cat_threshold": int(random.choice([3, 32])),
            "min_data_per_group": int(random.choice([1, 30, 100])),
            "cat_smooth": float(random.choice([1, 10])),
            "cat_l2": float(random.choice([0, 10])),
        }
        theirs = train(bins, counts, gradients, np.ones(rows), num_leaves=2, categorical=[0, 1, 2], **rules)
        split = ours(bins, counts, gradients, rules, categorical=True)
        if "split_feature" not in theirs:
            assert split.feature[0] == -1, seed
            continue
        assert split.feature[0] == theirs["split_feature"], seed
        assert split.kind[0] == (1 if one_hot else 2)
        left = [int(x) for x in theirs["threshold"].split("||")]
        assert list(np.flatnonzero(split.categories[0])) == sorted(left), (seed, theirs)
        assert split.gain[0] == pytest.approx(theirs["split_gain"], rel=1e-5), seed
        splits += 1
    assert splits > 200
