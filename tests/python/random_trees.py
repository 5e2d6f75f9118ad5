"""Random histograms and rules: plateaus, missing values, categories, extreme gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class TreeProblem(NamedTuple):
    bins: np.ndarray
    gradients: np.ndarray
    hessians: np.ndarray | None
    node_ids: np.ndarray
    nodes: int
    bin_count: int
    features: dict[str, Any]  # bin_counts, missing, categorical, monotone, feature_mask
    rules: dict[str, Any]
    parent_outputs: np.ndarray | None
    output_bounds: np.ndarray | None
    top_k: int


def random_gradients(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    family = random.integers(6)
    if family == 0:
        gradients = random.integers(-3, 4, rows).astype(np.float64)
    elif family == 1:
        gradients = random.normal(size=rows)
    elif family == 2:
        gradients = random.integers(0, 2, rows) - random.random(rows)
    elif family == 3:
        gradients = np.where(random.random(rows) < 0.9, 0.0, random.integers(-1, 2, rows).astype(float))
    elif family == 4:
        gradients = random.normal(size=rows) * 10.0 ** random.integers(-12, 12)
    else:
        gradients = random.normal(size=rows) * 10.0 ** random.uniform(-6, 6, rows)
    hessians: np.ndarray | None = None
    kind = random.integers(4)
    if kind == 1:
        hessians = random.integers(0, 3, rows).astype(np.float64)
    elif kind == 2:
        hessians = random.random(rows)
    elif kind == 3:
        hessians = random.random(rows) * 10.0 ** random.uniform(-9, 3, rows)
    if random.random() < 0.3:
        gradients = gradients.astype(np.float32)
        hessians = None if hessians is None else hessians.astype(np.float32)
    return gradients, hessians


def random_problem(seed: int, most_rows: int = 300) -> TreeProblem:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, most_rows))
    features = int(random.integers(1, 6))
    nodes = int(random.integers(1, 4))
    bin_count = int(random.integers(1, 30))
    counts = random.integers(1, bin_count + 1, features)
    counts[random.integers(features)] = bin_count
    missing = random.random(features) < 0.3
    categorical = random.random(features) < 0.3
    used = np.where(random.random(features) < 0.3, np.minimum(counts, 3), counts)  # many empty bins
    bins = (random.random((rows, features)) * used).astype(np.uint8 if random.random() < 0.7 else np.uint16)
    gone = (random.random((rows, features)) < random.choice([0, 0.1, 0.5])) & missing
    bins[gone] = np.broadcast_to(counts - 1, bins.shape)[gone]
    if features > 1 and random.random() < 0.3:  # a feature twice: ties of features
        bins[:, -1] = bins[:, 0]
        counts[-1], missing[-1], categorical[-1] = counts[0], missing[0], categorical[0]
    gradients, hessians = random_gradients(random, rows)
    if random.random() < 0.5:
        bins = np.asfortranarray(bins)
    monotone = np.where(categorical, 0, random.choice([0, 0, 1, -1], features))
    rules: dict[str, Any] = {
        "lambda_l1": float(random.choice([0, 0, 0.5])),
        "lambda_l2": float(random.choice([0, 1, 0.1])),
        "min_data_in_leaf": int(random.choice([0, 1, 5, 20])),
        "min_sum_hessian_in_leaf": float(random.choice([0, 1e-3, 1])),
        "min_gain_to_split": float(random.choice([0, 0, 0.1])),
        "max_delta_step": float(random.choice([0, 0, 0.3])),
        "path_smooth": float(random.choice([0, 0, 2])),
        "max_cat_to_onehot": int(random.choice([0, 4, 40])),
        "max_cat_threshold": int(random.choice([1, 4, 32])),
        "min_data_per_group": int(random.choice([0, 1, 10])),
        "cat_smooth": float(random.choice([0, 1, 2.5])),
        "cat_l2": float(random.choice([0, 10])),
        "ties": str(random.choice(["lowest", "highest", "middle", "lightgbm"])),
    }
    bounds = None
    if random.random() < 0.2:
        bounds = np.sort(random.normal(size=(nodes, 2)), axis=1)
    return TreeProblem(
        bins,
        gradients,
        hessians,
        random.integers(-1, nodes, rows).astype(np.int32),
        nodes,
        bin_count,
        {
            "bin_counts": counts,
            "missing": missing,
            "categorical": categorical,
            "monotone": monotone if random.random() < 0.5 else np.zeros(features, np.int64),
            "feature_mask": random.random((nodes, features)) < 0.9,
        },
        rules,
        random.normal(size=nodes) if random.random() < 0.3 else None,
        bounds,
        int(random.integers(1, 4)),
    )
