"""53 configurations of 20 rounds, each trained twice: are the two models the same, to the bit?

    python bench/trees/parity_sweep.py [--device cuda] [--json FILE] [--rounds 20] [--only NAME]

isofold: on the CPU, and on the CPU with every histogram's rows in another order and on three threads, and
with --device cuda on the GPU. Compared are trees (features, bins, directions, sets, leaf values), predictions
of rows not trained on, and, where LightGBM is installed, SHAP values by it from the exported model.

Controls: float64 sums with a scan, against the same with sums and comparisons in the order of a parallel
machine, by plain > and by the tolerance rule.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "trees"))
sys.path.append(str(Path(__file__).resolve().parent))

from boosting import Model, Settings, train
from growing import Limits
from libraries import FloatSums, OnDevice, Shuffled
from lightgbm_text import lightgbm_text

import isofold

ROWS, FEATURES = 1000, 6


class Configuration(NamedTuple):
    name: str
    settings: Settings
    weights: bool = False
    missing: bool = False
    categories: bool = False


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bagging": {"bagging_fraction": 0.7},
    "max_depth": {"max_depth": 4},
    "lambda_l2": {"rules": {"lambda_l2": 3.0}},
    "goss": {"goss": True},
    "weights": {"weights": True},
    "missing": {"missing": True},
    "categories": {"categories": True},
    "bagging, lambda_l2": {"bagging_fraction": 0.5, "rules": {"lambda_l2": 1.0}},
    "goss, missing": {"goss": True, "missing": True},
    "max_depth, categories": {"max_depth": 3, "categories": True},
    "weights, bagging": {"weights": True, "bagging_fraction": 0.8},
    "small leaves": {"rules": {"min_data_in_leaf": 2}},
    "few leaves": {"num_leaves": 4},
    "missing, categories, weights": {"missing": True, "categories": True, "weights": True},
    "learning_rate": {"learning_rate": 0.5},
    "all of it": {
        "missing": True,
        "categories": True,
        "weights": True,
        "bagging_fraction": 0.8,
        "max_depth": 5,
        "rules": {"lambda_l2": 1.0},
    },
}


def configurations(rounds: int) -> list[Configuration]:
    found = []
    for objective, classes in (("regression", 1), ("binary", 1), ("multiclass", 3)):
        for name, wanted in VARIANTS.items():
            given = dict(wanted)
            data = {key: given.pop(key) for key in ("weights", "missing", "categories") if key in given}
            limits = Limits(
                num_leaves=given.pop("num_leaves", 15),
                max_depth=given.pop("max_depth", -1),
                rules=given.pop("rules", {}),
            )
            settings = Settings(objective, classes, rounds, limits=limits, **given)
            found.append(Configuration(f"{objective}: {name}", settings, **data))
    for objective in ("regression", "binary"):
        limits = Limits(15, rules={"lambda_l2": 0.5, "min_data_in_leaf": 5})
        settings = Settings(objective, 1, rounds, goss=True, limits=limits)
        found.append(Configuration(f"{objective}: goss, weights, lambda_l2", settings, weights=True))
    return found


class Data(NamedTuple):
    values: NDArray[np.float64]
    labels: NDArray[np.float64]
    unseen: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    categorical: list[int] | None


def make_data(configuration: Configuration, seed: int) -> Data:
    """Few distinct values, so that nodes have empty bins and plateaus."""
    random = np.random.default_rng(seed)
    rows = 2 * ROWS
    values = np.round(random.normal(size=(rows, FEATURES)) * 8) / 4
    values[:, 5] = random.integers(0, 12, rows)
    signal = values[:, 0] + np.sin(2 * values[:, 1]) + (values[:, 2] > 0.5) * values[:, 3]
    signal += np.isin(values[:, 5], [1, 4, 7])
    signal += 0.5 * random.normal(size=rows)
    if configuration.missing:
        gone = random.random(values.shape) < 0.15
        gone[:, 5] = False
        values[gone] = np.nan
    labels = signal
    if configuration.settings.objective == "binary":
        labels = (signal > 0.5).astype(float)
    elif configuration.settings.objective == "multiclass":
        labels = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])).astype(float)
    return Data(
        values[:ROWS],
        labels[:ROWS],
        values[ROWS:],
        random.random(ROWS) if configuration.weights else None,
        [5] if configuration.categories else None,
    )


def fit(configuration: Configuration, data: Data, library: Any) -> Model:
    return train(
        data.values,
        data.labels,
        configuration.settings,
        weights=data.weights,
        categorical=data.categorical,
        library=library,
    )


def same_trees(one: Model, other: Model) -> bool:
    for trees, others in zip(one.trees, other.trees, strict=True):
        for a, b in zip(trees, others, strict=True):
            if len(a.decisions) != len(b.decisions) or a.leaf_values != b.leaf_values:
                return False
            for x, y in zip(a.decisions, b.decisions, strict=True):
                fields = ("feature", "bin", "default_left", "left", "right", "gain")
                if any(getattr(x, name) != getattr(y, name) for name in fields):
                    return False
                if (x.categories is None) != (y.categories is None):
                    return False
                if x.categories is not None and not np.array_equal(x.categories, y.categories):
                    return False
    return True


def close_trees(one: Model, other: Model) -> bool:
    """The pull request's measure: thresholds within 1e-6, leaf values within 1e-5."""
    for trees, others in zip(one.trees, other.trees, strict=True):
        for a, b in zip(trees, others, strict=True):
            if len(a.decisions) != len(b.decisions):
                return False
            if not np.allclose(a.leaf_values, b.leaf_values, rtol=0, atol=1e-5):
                return False
            for x, y in zip(a.decisions, b.decisions, strict=True):
                if (x.feature, x.bin, x.left, x.right) != (y.feature, y.bin, y.left, y.right):
                    return False
    return True


def shap_values(model: Model, values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    try:
        import lightgbm
    except ImportError:
        return None
    booster = lightgbm.Booster(model_str=lightgbm_text(model))
    raw = booster.predict(values, raw_score=True)
    ours = model.scores(values)
    if not np.array_equal(np.reshape(raw, ours.shape), ours):
        raise SystemExit("the exported model predicts something else")
    return np.asarray(booster.predict(values[:200], pred_contrib=True))


def compare(one: Model, other: Model, data: Data) -> dict[str, bool]:
    first, second = shap_values(one, data.unseen), shap_values(other, data.unseen)
    return {
        "trees": same_trees(one, other),
        "predictions": bool(np.array_equal(one.predict(data.unseen), other.predict(data.unseen))),
        "shap": first is not None and second is not None and bool(np.array_equal(first, second)),
    }


def compare_control(one: Model, other: Model, data: Data) -> dict[str, bool]:
    gap = np.max(np.abs(one.predict(data.unseen) - other.predict(data.unseen)))
    return {
        "trees": close_trees(one, other),
        "predictions": bool(gap <= 1e-5),
        "predictions to the bit": bool(gap == 0),
    }


def sweep(rounds: int, device: str | None, only: str | None) -> dict[str, Any]:
    results: dict[str, dict[str, dict[str, bool]]] = {}
    for number, configuration in enumerate(configurations(rounds)):
        if only is not None and only not in configuration.name:
            continue
        started = time.perf_counter()
        data = make_data(configuration, number)
        ours = fit(configuration, data, isofold)
        found = {
            "isofold, rows in another order": compare(ours, fit(configuration, data, Shuffled(number)), data)
        }
        if device is not None:
            found[f"isofold, {device}"] = compare(ours, fit(configuration, data, OnDevice(device)), data)
        scan = fit(configuration, data, FloatSums())
        for rule in ("strict", "tolerance"):
            other = fit(configuration, data, FloatSums(rule, True, number))
            found[f"control, {rule}"] = compare_control(scan, other, data)
        results[configuration.name] = found
        print(f"{configuration.name:<44} {time.perf_counter() - started:5.1f} s", file=sys.stderr)
    totals: dict[str, dict[str, str]] = {}
    for kind in next(iter(results.values())):
        checks = [result[kind] for result in results.values()]
        totals[kind] = {name: f"{sum(check[name] for check in checks)}/{len(checks)}" for name in checks[0]}
    return {"rounds": rounds, "totals": totals, "configurations": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    found = sweep(arguments.rounds, arguments.device, arguments.only)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["totals"], indent=2))


if __name__ == "__main__":
    main()
