"""Best splits against their definition, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import TreeProblem, random_problem
from tree_oracle import Node, Rules

import isofold

FIELDS = [
    "feature",
    "bin",
    "gain",
    "margin",
    "default_left",
    "kind",
    "left_gradient",
    "left_hessian",
    "left_count",
    "left_output",
    "right_output",
]


def found(problem: TreeProblem, threads: int = 1) -> tuple[isofold.Histogram, isofold.Splits]:
    histogram = isofold.histogram(
        problem.bins,
        problem.gradients,
        problem.hessians,
        problem.node_ids,
        nodes=problem.nodes,
        bin_count=problem.bin_count,
        threads=threads,
    )
    splits = isofold.best_splits(
        histogram,
        **problem.features,
        **problem.rules,
        parent_outputs=problem.parent_outputs,
        output_bounds=problem.output_bounds,
        top_k=problem.top_k,
        threads=threads,
    )
    return histogram, splits


def expected(problem: TreeProblem, histogram: isofold.Histogram, node: int) -> list[dict]:
    sums = np.stack([histogram.gradients[node], histogram.hessians[node], histogram.counts[node]]).astype(
        np.int64
    )
    features = problem.features
    return Node(
        sums,
        tuple(histogram.grid),
        Rules(**problem.rules),
        [int(x) for x in features["bin_counts"]],
        [bool(x) for x in features["missing"]],
        [bool(x) for x in features["categorical"]],
        [int(x) for x in features["monotone"]],
        [bool(x) for x in features["feature_mask"][node]],
        None if problem.parent_outputs is None else float(problem.parent_outputs[node]),
        None if problem.output_bounds is None else tuple(problem.output_bounds[node]),
    ).best(problem.top_k)


@pytest.mark.parametrize("part", range(10))
def test_agrees_with_the_definition(part: int) -> None:
    valid = 0
    for seed in range(part * 100, part * 100 + 100):
        problem = random_problem(seed)
        histogram, splits = found(problem)
        for node in range(problem.nodes):
            right = expected(problem, histogram, node)
            valid += len(right)
            for k in range(problem.top_k):
                if k >= len(right):
                    assert splits.feature[node, k] == -1, (seed, node, k)
                    continue
                where = (seed, node, k, right[k])
                for name in FIELDS:
                    assert getattr(splits, name)[node, k] == right[k][name], (name, *where)
                assert list(splits.plateau[node, k]) == right[k]["plateau"], where
                if splits.categories is not None:
                    bins = [int(b) for b in np.flatnonzero(splits.categories[node, k])]
                    assert bins == (right[k]["bins"] or []), where
    assert valid > 100


@pytest.mark.parametrize("seed", range(20))
def test_no_bit_depends_on_rows_batches_or_threads(seed: int) -> None:
    problem = random_problem(5000 + seed, most_rows=3000)
    random = np.random.default_rng(seed)
    histogram, splits = found(problem)
    order = random.permutation(len(problem.bins))
    shuffled = problem._replace(
        bins=problem.bins[order],
        gradients=problem.gradients[order],
        hessians=None if problem.hessians is None else problem.hessians[order],
        node_ids=problem.node_ids[order],
    )
    other, again = found(shuffled, threads=3)
    assert other == histogram
    assert again.tobytes() == splits.tobytes()
    for node in range(problem.nodes):  # alone, as in the batch
        alone = isofold.best_splits(
            histogram.select(node),
            **{**problem.features, "feature_mask": problem.features["feature_mask"][[node]]},
            **problem.rules,
            parent_outputs=None if problem.parent_outputs is None else problem.parent_outputs[[node]],
            output_bounds=None if problem.output_bounds is None else problem.output_bounds[[node]],
            top_k=problem.top_k,
        )
        assert alone.records.tobytes() == splits.records[node].tobytes()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e200, 1e300])
def test_gradients_whose_squares_are_beyond_doubles(scale: float) -> None:
    random = np.random.default_rng(3)
    bins = random.integers(0, 16, (500, 4)).astype(np.uint8)
    gradients = random.normal(size=500) + (bins[:, 2] > 7)
    power = 2.0 ** np.round(np.log2(scale))
    plain = isofold.best_splits(isofold.histogram(bins, gradients))
    scaled = isofold.best_splits(isofold.histogram(bins, gradients * power))
    assert scaled.feature[0] == plain.feature[0] == 2
    assert scaled.bin[0] == plain.bin[0]
    assert scaled.left_output[0] == plain.left_output[0] * power
    with np.errstate(over="ignore", under="ignore"):
        assert scaled.gain[0] == plain.gain[0] * power * power  # at the ends 0 or infinity


def test_subsets_of_hessians_of_any_size() -> None:
    random = np.random.default_rng(4)
    bins = random.integers(0, 8, (400, 3)).astype(np.uint8)
    gradients, hessians = random.normal(size=400), random.random(400) + 0.1
    plain = isofold.best_splits(isofold.histogram(bins, gradients, hessians), min_sum_hessian_in_leaf=0)
    small = isofold.best_splits(
        isofold.histogram(bins, gradients, hessians * 2.0**-1000), min_sum_hessian_in_leaf=0
    )
    assert (small.feature[0], small.bin[0]) == (plain.feature[0], plain.bin[0])
    assert small.left_output[0] == plain.left_output[0] * 2.0**1000


def test_plateau_and_policies() -> None:
    # Bins 3 to 6 are empty: the thresholds 2 to 6 cut the rows alike.
    bins = np.repeat([0, 1, 2, 7, 8, 9], 30).astype(np.uint8)[:, None]
    gradients = np.repeat([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 30)
    histogram = isofold.histogram(bins, gradients)
    for ties, bin_ in (("lowest", 2), ("highest", 6), ("middle", 4), ("lightgbm", 6)):
        split = isofold.best_splits(histogram, ties=ties)
        assert split.bin[0] == bin_
        assert list(split.plateau[0]) == [2, 6]
        assert split.gain[0] == 180.0
        assert split.margin[0] == 180.0 - (60.0**2 / 60 + 60.0**2 / 120)


def test_top_k_are_features_in_order() -> None:
    random = np.random.default_rng(5)
    bins = random.integers(0, 16, (2000, 6)).astype(np.uint8)
    gradients = random.normal(size=2000) + 0.3 * (bins[:, 4] > 7) + 0.2 * (bins[:, 1] > 3)
    histogram = isofold.histogram(bins, gradients)
    splits = isofold.best_splits(histogram, top_k=8)
    assert splits.feature.shape == (1, 8)
    assert list(splits.feature[0, :2]) == [4, 1]
    assert list(splits.feature[0, 6:]) == [-1, -1]
    gains = splits.gain[0, :6]
    assert np.all(gains[:-1] >= gains[1:])
    for k in range(6):
        mask = np.arange(6) == splits.feature[0, k]
        alone = isofold.best_splits(histogram, feature_mask=mask)
        assert (alone.gain[0], alone.bin[0]) == (splits.gain[0, k], splits.bin[0, k])


def test_extra_trees_draw_one_candidate_for_each_node_and_feature() -> None:
    random = np.random.default_rng(6)
    bins = random.integers(0, 32, (4000, 3)).astype(np.uint8)
    gradients = random.normal(size=4000)
    nodes = random.integers(0, 4, 4000)
    histogram = isofold.histogram(bins, gradients, node_ids=nodes)
    drawn = set()
    for seed in range(40):
        splits = isofold.best_splits(histogram, extra_trees_seed=seed, top_k=3, min_data_in_leaf=1)
        again = isofold.best_splits(
            histogram.select([2]), extra_trees_seed=seed, top_k=3, min_data_in_leaf=1, node_numbers=[2]
        )
        assert again.records[0].tobytes() == splits.records[2].tobytes()
        drawn |= {(int(n), int(b)) for n, row in enumerate(splits.bin) for b in row}
    assert len({b for _, b in drawn}) > 25
    assert len(drawn) > 80


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"lambda_l2": -1}, ValueError, "lambda_l2 must be finite and not negative, not -1"),
        ({"lambda_l1": float("nan")}, ValueError, "lambda_l1"),
        ({"min_data_in_leaf": 1.5}, TypeError, "min_data_in_leaf must be an integer"),
        ({"ties": "first"}, ValueError, "ties must be lowest, highest, middle or lightgbm, not 'first'"),
        ({"top_k": 0}, ValueError, "top_k must be at least 1"),
        ({"monotone": [0, 2]}, ValueError, r"monotone\[1\] is 2"),
        ({"monotone": [0]}, ValueError, "monotone has shape"),
        ({"monotone": [0, 1], "categorical": [False, True]}, ValueError, "feature 1, a categorical"),
        ({"bin_counts": [4, 9]}, ValueError, r"bin_counts\[1\] is 9, which is not from 0 to 4"),
        ({"bin_counts": [4, 0], "missing": [True, True]}, ValueError, "feature 1, has_missing, but no bins"),
        ({"feature_mask": [1, 0]}, TypeError, "feature_mask must hold booleans"),
        ({"monotone": [1.0, 0.0]}, TypeError, "monotone must hold integers"),
        ({"feature_mask": [True]}, ValueError, "feature_mask has shape"),
        ({"parent_outputs": [1.0, 2.0]}, ValueError, "parent_outputs has shape"),
        ({"output_bounds": [[2.0, 1.0]]}, ValueError, "output_bounds: node 0, the lower one"),
        ({"output_bounds": [[np.nan, 1.0]]}, ValueError, "output_bounds is not a number at position 0"),
        ({"node_numbers": [0.5]}, ValueError, "node_numbers"),
    ],
)
def test_errors_name_the_argument(arguments: dict, error: type[Exception], message: str) -> None:
    bins = np.tile(np.arange(4, dtype=np.uint8), 10)[:, None].repeat(2, axis=1)
    histogram = isofold.histogram(bins, np.ones(40))
    with pytest.raises(error, match=message):
        isofold.best_splits(histogram, **arguments)


def test_a_categorical_feature_has_at_most_1024_bins() -> None:
    histogram = isofold.histogram(np.zeros((3, 1), np.uint16), np.ones(3), bin_count=1025)
    with pytest.raises(ValueError, match="at most 1024 bins, not 1025"):
        isofold.best_splits(histogram, categorical=True)


def test_nothing_to_split() -> None:
    histogram = isofold.histogram(np.zeros((0, 2), np.uint8), np.zeros(0), nodes=2, bin_count=3)
    assert list(isofold.best_splits(histogram).feature) == [-1, -1]
    no_features = isofold.histogram(np.zeros((5, 0), np.uint8), np.zeros(5))
    assert list(isofold.best_splits(no_features).feature) == [-1]
    zeros = isofold.histogram(np.arange(50, dtype=np.uint8)[:, None], np.ones(50), np.zeros(50))
    assert list(isofold.best_splits(zeros, min_data_in_leaf=1, min_sum_hessian_in_leaf=0).feature) == [-1]
