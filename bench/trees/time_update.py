"""One thread: histogram and best split of all rows, beside LightGBM's time for one update of two leaves.

    python bench/trees/time_update.py [--rows 1000000] [--features 28] [--rounds 9] [--json FILE]

LightGBM's update also computes gradients and scores; it stores its bins as it likes, isofold is given them
row-major and column-major. Rounds are interleaved; medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

import isofold


def contenders(rows: int, features: int) -> dict[str, Callable[[], Any]]:
    random = np.random.default_rng(0)
    values = random.normal(size=(rows, features))
    labels = (values[:, 0] + random.normal(size=rows) > 0).astype(np.float32)
    found: dict[str, Callable[[], Any]] = {}
    for way in ("col", "row"):
        settings = {
            "objective": "binary",
            "num_leaves": 2,
            "max_bin": 255,
            "num_threads": 1,
            "verbose": -1,
            "enable_bundle": False,
            "feature_pre_filter": False,
            "deterministic": True,
            f"force_{way}_wise": True,
        }
        data = lightgbm.Dataset(values, labels, params=settings).construct()
        found[f"LightGBM update, {way}-wise"] = lightgbm.Booster(settings, data).update
    bins = np.column_stack(
        [np.searchsorted(np.quantile(c, np.linspace(0, 1, 255)[1:-1]), c) for c in values.T]
    ).astype(np.uint8)
    gradients = (0.5 - labels).astype(np.float32)
    hessians = random.random(rows).astype(np.float32) / 4
    quantized = isofold.quantize_gradients(gradients, hessians, threads=1)
    for name, matrix in (("row-major", bins), ("column-major", np.asfortranarray(bins))):

        def build(matrix: Any = matrix) -> Any:
            return isofold.histogram(matrix, quantized, bin_count=255, threads=1)

        def whole(matrix: Any = matrix) -> Any:
            fresh = isofold.quantize_gradients(gradients, hessians, threads=1)
            histogram = isofold.histogram(matrix, fresh, bin_count=255, threads=1)
            return isofold.best_splits(histogram, threads=1)

        found[f"isofold histogram, {name}"] = build
        found[f"isofold quantize, histogram and split, {name}"] = whole
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    calls = contenders(arguments.rows, arguments.features)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(arguments.rounds + 1):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if round_:
                times[name].append(1e3 * (time.perf_counter() - started))
    medians = {name: statistics.median(found) for name, found in times.items()}
    best = min(value for name, value in medians.items() if name.startswith("LightGBM"))
    for name, value in medians.items():
        print(f"{name:<58} {value:8.1f} ms   {value / best:5.2f} of LightGBM's faster way")
    if arguments.json is not None:
        record = {
            "rows": arguments.rows,
            "features": arguments.features,
            "rounds": arguments.rounds,
            "lightgbm": lightgbm.__version__,
            "milliseconds": medians,
            "ratio": {name: value / best for name, value in medians.items()},
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
