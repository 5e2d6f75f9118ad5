"""One regression tree, leaf by leaf, from two calls: histogram and best_splits.

The leaf with the largest gain is split next; of the two children the one with fewer rows gets its histogram
from its rows, and the other what that leaves of the parent's, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from binning import BinnedData
from numpy.typing import NDArray

import isofold

Rows = NDArray[np.int64]

_FIELDS = ("feature", "bin", "default_left", "gain", "kind", "left_output", "right_output")


@dataclass
class Limits:
    num_leaves: int = 31
    max_depth: int = -1
    monotone: list[int] | None = None
    # As in LightGBM, a feature that has no valid split in a node is not looked at below it.
    drop_unsplittable: bool = False
    rules: dict[str, Any] = field(default_factory=dict)  # arguments of best_splits


@dataclass
class Decision:
    """An inner node. Children are inner nodes by their number, or leaves as ~number."""

    feature: int
    bin: int
    default_left: bool
    categories: NDArray[np.bool_] | None  # which bins go left
    gain: float
    left: int = 0
    right: int = 0

    def goes_left(self, bins: NDArray[Any], missing_bin: int) -> NDArray[np.bool_]:
        if self.categories is not None:
            return self.categories[np.minimum(bins, len(self.categories) - 1)] & (bins < len(self.categories))
        return np.where(bins >= missing_bin, self.default_left, bins <= self.bin)


@dataclass
class Tree:
    decisions: list[Decision] = field(default_factory=list)
    leaf_values: list[float] = field(default_factory=lambda: [0.0])
    leaf_counts: list[int] = field(default_factory=lambda: [0])

    def leaves(self, data: BinnedData) -> NDArray[np.int64]:
        """The leaf of each row."""
        place = np.full(len(data.bins), 0 if self.decisions else ~0)
        for number, decision in enumerate(self.decisions):  # children come after their parents
            rows = np.flatnonzero(place == number)
            bins = data.bins[rows, decision.feature]
            left = decision.goes_left(bins, data.features[decision.feature].values)
            place[rows] = np.where(left, decision.left, decision.right)
        return ~place

    def predict(self, data: BinnedData) -> NDArray[np.float64]:
        return np.array(self.leaf_values)[self.leaves(data)]


@dataclass
class _Leaf:
    rows: Rows
    histogram: Any
    split: dict[str, Any]  # the fields of best_splits for this leaf; none where there is no split
    usable: NDArray[np.bool_]  # features that may be used
    depth: int
    parent: tuple[int, bool] | None  # the decision above, and whether this is its left child
    output: float
    bounds: tuple[float, float]

    @property
    def gain(self) -> float:
        return float(self.split["gain"]) if self.split else 0.0

    @property
    def rank(self) -> tuple[float, int]:
        """Of equal gains the lower feature, as in LightGBM."""
        return (self.gain, -int(self.split["feature"]) if self.split else 0)


class Grower:
    """Grows trees on one data set. `library` has isofold's histogram and best_splits."""

    def __init__(self, data: BinnedData, limits: Limits, library: Any = isofold) -> None:
        self.data = data
        self.limits = limits
        self.library = library
        self.rules = {
            "bin_counts": [feature.bins for feature in data.features],
            "missing": [feature.missing for feature in data.features],
            "categorical": [feature.categorical for feature in data.features],
            "monotone": limits.monotone,
            **limits.rules,
        }

    def grow(self, gradients: Any, rows: Rows) -> Tree:
        """`gradients`: what quantize_gradients made of those of all rows; only `rows` are learnt from."""
        tree = Tree()
        unbounded = (-np.inf, np.inf)
        usable = np.ones(len(self.data.features), np.bool_)
        root = self._leaf(rows, self._histogram(gradients, rows), usable, 0, None, 0.0, unbounded)
        leaves = [root]
        while len(leaves) < self.limits.num_leaves:
            number = max(range(len(leaves)), key=lambda i: leaves[i].rank)  # the first of the largest
            if leaves[number].gain <= 0:
                break
            left, right = self._split(tree, gradients, leaves[number])
            leaves[number] = left
            leaves.append(right)
        for number, leaf in enumerate(leaves):
            if leaf.parent is not None:
                decision, is_left = leaf.parent
                setattr(tree.decisions[decision], "left" if is_left else "right", ~number)
        tree.leaf_values = [leaf.output for leaf in leaves]
        tree.leaf_counts = [len(leaf.rows) for leaf in leaves]
        return tree

    def _histogram(self, gradients: Any, rows: Rows) -> Any:
        return self.library.histogram(self.data.bins, gradients, rows=rows, bin_count=self.data.bin_count)

    def _leaf(
        self,
        rows: Rows,
        histogram: Any,
        usable: NDArray[np.bool_],
        depth: int,
        parent: tuple[int, bool] | None,
        output: float,
        bounds: tuple[float, float],
    ) -> _Leaf:
        split: dict[str, Any] = {}
        if self.limits.max_depth <= 0 or depth < self.limits.max_depth:
            rules = {**self.rules, "feature_mask": usable}
            if self.limits.monotone is not None:
                rules["output_bounds"] = [bounds]
            if self.rules.get("path_smooth", 0) > 0 and parent is not None:
                rules["parent_outputs"] = [output]
            wanted = len(usable) if self.limits.drop_unsplittable else 1
            found = self.library.best_splits(histogram, top_k=max(1, wanted), **rules)
            features = np.asarray(found.feature[0])
            if self.limits.drop_unsplittable:
                usable = np.isin(np.arange(len(usable)), features)
            if features[0] >= 0:
                split = {name: np.asarray(getattr(found, name)[0, 0]) for name in _FIELDS}
                split["categories"] = np.asarray(found.categories[0, 0]) if split["kind"] else None
        return _Leaf(rows, histogram, split, usable, depth, parent, output, bounds)

    def _split(self, tree: Tree, gradients: Any, leaf: _Leaf) -> tuple[_Leaf, _Leaf]:
        split = leaf.split
        feature = int(split["feature"])
        decision = Decision(
            feature, int(split["bin"]), bool(split["default_left"]), split["categories"], leaf.gain
        )
        number = len(tree.decisions)
        tree.decisions.append(decision)
        if leaf.parent is not None:
            above, is_left = leaf.parent
            setattr(tree.decisions[above], "left" if is_left else "right", number)
        goes_left = decision.goes_left(self.data.bins[leaf.rows, feature], self.data.features[feature].values)
        parts = [leaf.rows[goes_left], leaf.rows[~goes_left]]
        outputs = [float(split["left_output"]), float(split["right_output"])]
        smaller = int(len(parts[1]) < len(parts[0]))
        histograms = [leaf.histogram, leaf.histogram]
        histograms[smaller] = self._histogram(gradients, parts[smaller])
        histograms[1 - smaller] = leaf.histogram - histograms[smaller]
        bounds = self._bounds(leaf, feature, outputs)
        left, right = (
            self._leaf(
                parts[i], histograms[i], leaf.usable, leaf.depth + 1, (number, i == 0), outputs[i], bounds[i]
            )
            for i in (0, 1)
        )
        return left, right

    def _bounds(self, leaf: _Leaf, feature: int, outputs: list[float]) -> list[tuple[float, float]]:
        """Below a monotone split each side keeps to its half of the range: LightGBM's basic method."""
        monotone = 0 if self.limits.monotone is None else self.limits.monotone[feature]
        if monotone == 0:
            return [leaf.bounds, leaf.bounds]
        middle = (outputs[0] + outputs[1]) / 2
        low = (leaf.bounds[0], min(middle, leaf.bounds[1]))
        high = (max(middle, leaf.bounds[0]), leaf.bounds[1])
        return [low, high] if monotone > 0 else [high, low]
