"""A shallow tree whose splits part rows that are predicted too high from those predicted too low.

With the gradient y - p and the hessian p (1 - p) a node's G^2 / H is the square of its z score, which has one
degree of freedom where the predictions are right. A split's gain is what the two sides' squares are more than
the node's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold._histogram import Histogram, QuantizedGradients, histogram
from isofold._splits import best_splits
from isofold.calibration._audit_features import AuditFeature

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Condition:
    """What rows of a segment have in common in one feature: one side of a split."""

    feature: int
    bins: NDArray[np.bool_]  # those that belong, missing values last


@dataclass(frozen=True)
class Leaf:
    conditions: tuple[Condition, ...]
    rows: Rows


@dataclass
class _Node:
    conditions: tuple[Condition, ...]
    rows: Rows
    sums: Histogram
    gain: float = 0.0
    feature: int = -1
    left: NDArray[np.bool_] | None = None


def find_leaves(
    features: list[AuditFeature],
    bins: NDArray[np.uint16],
    gradients: QuantizedGradients,
    rows: Rows,
    *,
    most: int,
    max_depth: int,
    min_rows: int,
    min_gain: float,
    threads: int | None,
) -> list[Leaf]:
    """Splits the leaf of the largest gain until there are `most` or no gain is left."""
    bin_count = max(feature.values for feature in features) + 1
    rules: dict[str, Any] = {
        "bin_counts": [feature.values + 1 for feature in features],
        "missing": True,
        "categorical": [feature.levels is not None for feature in features],
        "min_data_in_leaf": min_rows,
        "min_data_per_group": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "min_gain_to_split": min_gain,
        "cat_smooth": 0.0,
        "cat_l2": 0.0,
        "max_cat_threshold": 8,  # a longer list tells nobody anything
        "threads": threads,
    }

    def sums_of(part: Rows) -> Histogram:
        return histogram(bins, gradients, rows=part, bin_count=bin_count, threads=threads)

    def node(conditions: tuple[Condition, ...], part: Rows, sums: Histogram) -> _Node:
        made = _Node(conditions, part, sums)
        if len(conditions) >= max_depth or len(part) < 2 * min_rows:
            return made
        split = best_splits(sums, **rules)
        if split.feature[0] < 0:
            return made
        made.gain, made.feature = float(split.gain[0]), int(split.feature[0])
        values = features[made.feature].values
        made.left = np.zeros(values + 1, np.bool_)
        if split.kind[0]:
            assert split.categories is not None
            made.left[:] = split.categories[0, : values + 1]
        else:
            made.left[: split.bin[0] + 1] = True
            made.left[values] = split.default_left[0]
        return made

    everything = sums_of(rows)
    leaves = [node((), rows, everything)]
    while len(leaves) < most:
        place = max(range(len(leaves)), key=lambda k: leaves[k].gain)
        parent = leaves[place]
        if parent.left is None:
            break
        goes_left = parent.left[bins[parent.rows, parent.feature]]
        parts = [parent.rows[goes_left], parent.rows[~goes_left]]
        smaller = int(len(parts[1]) < len(parts[0]))
        sums = [parent.sums, parent.sums]
        sums[smaller] = sums_of(parts[smaller])
        sums[1 - smaller] = parent.sums - sums[smaller]
        children = [
            node(
                (*parent.conditions, Condition(parent.feature, parent.left if k == 0 else ~parent.left)),
                parts[k],
                sums[k],
            )
            for k in (0, 1)
        ]
        leaves[place : place + 1] = children
    return [Leaf(leaf.conditions, leaf.rows) for leaf in leaves]


def merged(conditions: tuple[Condition, ...]) -> dict[int, NDArray[np.bool_]]:
    """Conditions by feature: the bins that satisfy all of them."""
    found: dict[int, NDArray[np.bool_]] = {}
    for condition in conditions:
        before = found.get(condition.feature)
        found[condition.feature] = condition.bins if before is None else before & condition.bins
    return found


def locate(leaves: list[Leaf], bins: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Which leaf each row belongs to: they part all rows."""
    place = np.zeros(len(bins), np.int64)
    for number, leaf in enumerate(leaves):
        inside = np.ones(len(bins), np.bool_)
        for feature, allowed in merged(leaf.conditions).items():
            inside &= allowed[bins[:, feature]]
        place[inside] = number
    return place


def describe(feature: AuditFeature, allowed: NDArray[np.bool_]) -> str:
    """In words, which values of a feature belong."""
    values, missing = allowed[:-1], bool(allowed[-1])
    if not values.any():
        return f"{feature.name} missing"
    if values.all():
        return f"{feature.name} not missing"
    text, counts_missing = _values_in_words(feature, values)
    if not feature.has_missing or missing == counts_missing:
        return text
    return f"{text} or missing" if missing else f"{text}, nor missing"


def _values_in_words(feature: AuditFeature, values: NDArray[np.bool_]) -> tuple[str, bool]:
    """And whether the words hold for a missing value, too."""
    if feature.levels is not None:
        named = list(zip(feature.levels, values, strict=True))
        inside = [str(level) for level, there in named if there]
        outside = [str(level) for level, there in named if not there]
        if len(inside) <= len(outside):
            return f"{feature.name} {'=' if len(inside) == 1 else 'in'} {_listed(inside)}", False
        return f"{feature.name} {'!=' if len(outside) == 1 else 'not in'} {_listed(outside)}", True
    assert feature.bounds is not None
    # Splits of numbers leave one run of bins.
    first, last = int(np.argmax(values)), len(values) - 1 - int(np.argmax(values[::-1]))
    bounds = _numbers_in_words(feature.bounds)
    if first == 0:
        return f"{feature.name} <= {bounds[last]}", False
    if last == len(values) - 1:
        return f"{feature.name} > {bounds[first - 1]}", False
    return f"{bounds[first - 1]} < {feature.name} <= {bounds[last]}", False


def _numbers_in_words(numbers: NDArray[np.float64]) -> list[str]:
    """Six digits, or as many as tell them all apart: times in seconds, account numbers."""
    for digits in range(6, 17):
        words = [f"{number:.{digits}g}" for number in numbers]
        if len(set(words)) == len(words):
            return words
    return [f"{number:.17g}" for number in numbers]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
