"""A model in LightGBM's text format: for its predictions and its SHAP values (``pred_contrib``).

    booster = lightgbm.Booster(model_str=lightgbm_text(model))
    booster.predict(values, pred_contrib=True)

Categories must be whole numbers from 0 on, as LightGBM has them.
"""

from __future__ import annotations

import numpy as np
from binning import Feature
from boosting import Model
from growing import Tree

_CATEGORICAL, _DEFAULT_LEFT, _NAN_IS_MISSING = 1, 2, 8
_ALL_VALUES = 1.7976931348623157e308


def lightgbm_text(model: Model) -> str:
    features = model.data.features
    classes = len(model.base)
    objective = {
        "regression": "regression",
        "binary": "binary sigmoid:1",
        "multiclass": f"multiclass num_class:{classes}",
    }[model.settings.objective]
    parts = [
        "tree",
        "version=v4",
        f"num_class={classes}",
        f"num_tree_per_iteration={classes}",
        "label_index=0",
        f"max_feature_idx={len(features) - 1}",
        f"objective={objective}",
        "feature_names=" + " ".join(f"f{k}" for k in range(len(features))),
        "feature_infos=" + " ".join(map(_info, features)),
        "",
    ]
    trees = [tree for trees in model.trees for tree in trees]
    for number, tree in enumerate(trees):
        parts += [f"Tree={number}", *_tree_lines(tree, features), "", ""]
    return "\n".join([*parts, "end of trees", ""])


def _info(feature: Feature) -> str:
    if feature.categorical:
        return ":".join(str(int(level)) for level in feature.bounds)
    return "[-1e300:1e300]"


def _tree_lines(tree: Tree, features: list[Feature]) -> list[str]:
    thresholds, kinds, boundaries, words = [], [], [0], list[int]()
    for decision in tree.decisions:
        feature = features[decision.feature]
        if decision.categories is None:
            last = decision.bin >= feature.values - 1
            thresholds.append(_ALL_VALUES if last else float(feature.bounds[decision.bin]))
            kinds.append(_NAN_IS_MISSING | (_DEFAULT_LEFT if decision.default_left else 0))
            continue
        thresholds.append(float(len(boundaries) - 1))
        kinds.append(_NAN_IS_MISSING | _CATEGORICAL)
        levels = [int(feature.bounds[bin_]) for bin_ in np.flatnonzero(decision.categories[: feature.values])]
        found = [0] * (max(levels) // 32 + 1)
        for level in levels:
            found[level // 32] |= 1 << (level % 32)
        words += found
        boundaries.append(len(words))
    counts = _inner_counts(tree)
    zeros = [0] * len(tree.decisions)
    lines = {
        "num_leaves": [len(tree.leaf_values)],
        "num_cat": [len(boundaries) - 1],
        "split_feature": [decision.feature for decision in tree.decisions],
        "split_gain": [decision.gain for decision in tree.decisions],
        "threshold": thresholds,
        "decision_type": kinds,
        "left_child": [decision.left for decision in tree.decisions],
        "right_child": [decision.right for decision in tree.decisions],
        "leaf_value": tree.leaf_values,
        "leaf_weight": tree.leaf_counts,
        "leaf_count": tree.leaf_counts,
        "internal_value": zeros,
        "internal_weight": counts,
        "internal_count": counts,
    }
    if len(boundaries) > 1:
        lines |= {"cat_boundaries": boundaries, "cat_threshold": words}
    lines |= {"is_linear": [0], "shrinkage": [1]}
    return [f"{name}=" + " ".join(repr(value) for value in values) for name, values in lines.items()]


def _inner_counts(tree: Tree) -> list[int]:
    counts = [0] * len(tree.decisions)
    for number in reversed(range(len(tree.decisions))):  # children come after their parents
        decision = tree.decisions[number]
        counts[number] = sum(
            counts[child] if child >= 0 else tree.leaf_counts[~child]
            for child in (decision.left, decision.right)
        )
    return counts
