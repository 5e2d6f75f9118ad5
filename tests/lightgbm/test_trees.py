"""Trees of 31 leaves: the example trainer's and those of LightGBM's CPU learner, node by node."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
from binning import BinnedData, bin_data
from growing import Grower, Limits, Tree
from lightgbm_cpu import EXACT

import isofold


def theirs(
    values: np.ndarray, gradients: np.ndarray, parameters: dict[str, Any]
) -> tuple[dict[str, Any], lightgbm.Booster]:
    settings = {**EXACT, "num_leaves": 31, "use_missing": bool(np.isnan(values).any()), **parameters}
    data = lightgbm.Dataset(values, np.zeros(len(values)), params=settings).construct()
    booster = lightgbm.Booster(settings, data)
    ones = np.ones(len(values), np.float32)
    booster.update(fobj=lambda predictions, dataset: (gradients.astype(np.float32), ones))
    return booster.dump_model()["tree_info"][0]["tree_structure"], booster


def compare(
    node: dict[str, Any], tree: Tree, data: BinnedData, place: int, rows: np.ndarray, gain_added: float
) -> int:
    """How many inner nodes agree: all, or an assertion fails. `rows` are those that come here."""
    if "split_feature" not in node:
        assert place < 0
        assert tree.leaf_counts[~place] == node["leaf_count"]
        assert tree.leaf_values[~place] == pytest.approx(node["leaf_value"], rel=1e-12, abs=1e-300)
        return 0
    assert place >= 0, node
    decision = tree.decisions[place]
    feature = data.features[decision.feature]
    assert decision.feature == node["split_feature"], node
    if decision.bin < feature.values - 1:
        # Right above zero LightGBM's threshold is 1e-35, not halfway to the next value.
        if decision.bin > 0:
            assert node["threshold"] == pytest.approx(feature.bounds[decision.bin], rel=1e-6)
        else:
            assert 0 < node["threshold"] <= feature.bounds[0] * (1 + 1e-6)
    bins = data.bins[rows, decision.feature]
    # Where no row of the node misses the feature, both directions are one split; LightGBM then compares its
    # gain with itself less and plus the node's own, which rounding may have made smaller, and takes either.
    if np.any(bins == feature.values):
        assert decision.default_left == node["default_left"]
    assert decision.gain + gain_added == pytest.approx(node["split_gain"], rel=1e-5)
    left = decision.goes_left(bins, feature.values)
    return (
        1
        + compare(node["left_child"], tree, data, decision.left, rows[left], gain_added)
        + compare(node["right_child"], tree, data, decision.right, rows[~left], gain_added)
    )


@pytest.mark.parametrize("seed", range(50))
def test_the_same_tree(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, features = int(random.integers(1500, 4000)), int(random.integers(2, 12))
    values = np.round(random.normal(size=(rows, features)) + 5, int(random.integers(0, 3)))
    if seed % 3 == 0:
        values[random.random(values.shape) < 0.1] = np.nan
    # LightGBM gives zero a bin even where no value is zero or less: an empty one, from which it can write
    # 'missing or not' the other way round. With zero as the least value that bin is a bin like any other.
    values = np.round(values - np.nanmin(values, axis=0), 2)
    filled = np.nan_to_num(values, nan=2.0)
    signal = 3 * np.sin(filled[:, 0]) + filled[:, 1] * (filled[:, -1] > 3)
    gradients = np.round(signal + random.normal(size=rows) * 2)
    rules: dict[str, Any] = {
        "lambda_l2": float(random.choice([0, 1])),
        "lambda_l1": float(random.choice([0, 0, 2])),
        "min_data_in_leaf": int(random.choice([16, 30])),
        "min_gain_to_split": float(random.choice([0, 1])),
    }
    depth = int(random.choice([-1, -1, 6]))
    node, _ = theirs(values, gradients, {**rules, "max_depth": depth})
    data = bin_data(values, most=60_000)
    limits = Limits(31, depth, None, True, {**rules, "min_sum_hessian_in_leaf": 0, "ties": "lightgbm"})
    tree = Grower(data, limits).grow(isofold.quantize_gradients(gradients), np.arange(rows))
    agreed = compare(node, tree, data, 0, np.arange(rows), rules["min_gain_to_split"])
    assert agreed == len(tree.decisions) > 3
