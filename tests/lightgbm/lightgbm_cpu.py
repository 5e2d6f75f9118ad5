"""LightGBM's CPU learner with the settings under which both sides sum exactly, on bins of our choice."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

# Integers as gradients and hessians of one sum exactly in its doubles too, whatever the order; its kEpsilon
# and its counts by hessians then change nothing once a leaf has 16 rows.
EXACT: dict[str, Any] = {
    "objective": "none",
    "boost_from_average": False,
    "enable_bundle": False,
    "feature_pre_filter": False,
    "force_col_wise": True,
    "deterministic": True,
    "num_threads": 1,
    "min_data_in_bin": 1,
    "max_bin": 65535,
    "bin_construct_sample_cnt": 10_000_000,
    "learning_rate": 1.0,
    "min_data_in_leaf": 16,
    "min_sum_hessian_in_leaf": 0.0,
    "verbose": -1,
}


def train(
    bins: np.ndarray,
    bin_counts: list[int],
    gradients: np.ndarray,
    hessians: np.ndarray,
    *,
    missing: np.ndarray | None = None,
    categorical: list[int] | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    """The structure of the one tree. Bin b of a feature stands for the value b: LightGBM gives zero a bin.

    The bins are those of a data set in which each of them occurs, so that in this one some may be empty.
    """
    settings = {**EXACT, "use_missing": missing is not None, **parameters}
    if categorical:
        settings["categorical_feature"] = ",".join(map(str, categorical))
    every = np.column_stack([np.arange(max(bin_counts)) % count for count in bin_counts]).astype(float)
    values = bins.astype(float)
    if missing is not None:
        values = np.where(missing, np.nan, values)
        every = np.vstack([every, np.full((1, every.shape[1]), np.nan)])
    reference = lightgbm.Dataset(
        every, np.zeros(len(every)), params=settings, free_raw_data=False
    ).construct()
    data = lightgbm.Dataset(values, np.zeros(len(bins)), params=settings, reference=reference).construct()
    booster = lightgbm.Booster(settings, data)
    booster.update(
        fobj=lambda predictions, dataset: (gradients.astype(np.float32), hessians.astype(np.float32))
    )
    tree: dict[str, Any] = booster.dump_model()["tree_info"][0]["tree_structure"]
    return tree


def threshold_bin(threshold: float) -> int:
    """The bin whose values, and those below, a threshold sends left."""
    return int(np.floor(threshold))
