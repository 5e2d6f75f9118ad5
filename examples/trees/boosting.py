"""Gradient boosting on exact histograms: regression, binary and multiclass, with bagging or GOSS.

python examples/trees/boosting.py     # trains on made-up rows, prints the loss on unseen ones
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from binning import BinnedData, bin_data
from growing import Grower, Limits, Tree
from numpy.typing import NDArray

import isofold

Floats = NDArray[np.float64]


@dataclass
class Settings:
    objective: str = "regression"  # or binary, multiclass
    classes: int = 1
    rounds: int = 100
    learning_rate: float = 0.1
    bagging_fraction: float = 1.0  # rows drawn anew for each round
    goss: bool = False  # all rows of large gradients, a sample of the others
    top_rate: float = 0.2
    other_rate: float = 0.1
    seed: int = 0
    limits: Limits = field(default_factory=Limits)


@dataclass
class Model:
    settings: Settings
    data: BinnedData  # its bins are those of the features; rows are binned anew
    base: Floats  # one score a class
    trees: list[list[Tree]] = field(default_factory=list)  # by round, then class

    def scores(self, values: Floats) -> Floats:
        """Raw scores, (rows, classes)."""
        binned = rebin(self.data, values)
        result = np.tile(self.base, (len(values), 1))
        for trees in self.trees:
            for k, tree in enumerate(trees):
                result[:, k] += tree.predict(binned)
        return result

    def predict(self, values: Floats) -> Floats:
        scores = self.scores(values)
        if self.settings.objective == "regression":
            return scores[:, 0]
        if self.settings.objective == "binary":
            return sigmoid(scores[:, 0])
        return softmax(scores)


def rebin(data: BinnedData, values: Floats) -> BinnedData:
    columns = [feature.bin(column) for feature, column in zip(data.features, values.T, strict=True)]
    return BinnedData(data.features, np.column_stack(columns).astype(np.uint16))


def sigmoid(scores: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-scores))


def softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def derivatives(settings: Settings, labels: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Gradients and hessians of the loss, (rows, classes)."""
    if settings.objective == "regression":
        return scores - labels[:, None], np.ones_like(scores)
    if settings.objective == "binary":
        rates = sigmoid(scores)
        return rates - labels[:, None], rates * (1 - rates)
    rates = softmax(scores)
    hits = labels[:, None] == np.arange(settings.classes)
    return rates - hits, settings.classes / (settings.classes - 1) * rates * (1 - rates)


def sampled(
    settings: Settings, random: np.random.Generator, gradients: Floats, hessians: Floats
) -> tuple[NDArray[np.int64], Floats | None]:
    """The rows of a round, in rising order, and how much each counts."""
    rows = len(gradients)
    if settings.goss:
        size = np.abs(gradients * hessians).sum(axis=1)
        order = np.argsort(-size, kind="stable")
        top = max(1, int(rows * settings.top_rate))
        others = min(max(1, int(rows * settings.other_rate)), rows - top)
        drawn = random.choice(order[top:], others, replace=False)
        factors = np.ones(rows)
        factors[drawn] = (rows - top) / max(1, others)
        return np.sort(np.concatenate([order[:top], drawn])), factors
    if settings.bagging_fraction < 1:
        count = max(1, int(rows * settings.bagging_fraction))
        return np.sort(random.choice(rows, count, replace=False)), None
    return np.arange(rows), None


def train(
    values: Floats,
    labels: Floats,
    settings: Settings,
    *,
    weights: Floats | None = None,
    categorical: list[int] | None = None,
    most_bins: int = 255,
    library: Any = isofold,
) -> Model:
    data = bin_data(values, categorical, most_bins)
    classes = settings.classes if settings.objective == "multiclass" else 1
    model = Model(settings, data, np.zeros(classes))
    grower = Grower(data, settings.limits, library)
    random = np.random.default_rng(settings.seed)
    scores = np.tile(model.base, (len(values), 1))
    for _ in range(settings.rounds):
        gradients, hessians = derivatives(settings, labels, scores)
        if weights is not None:
            gradients, hessians = gradients * weights[:, None], hessians * weights[:, None]
        rows, factors = sampled(settings, random, gradients, hessians)
        if factors is not None:
            gradients, hessians = gradients * factors[:, None], hessians * factors[:, None]
        trees = []
        for k in range(classes):
            quantized = library.quantize_gradients(gradients[:, k], hessians[:, k])
            tree = grower.grow(quantized, rows)
            tree.leaf_values = [settings.learning_rate * value for value in tree.leaf_values]
            scores[:, k] += tree.predict(data)
            trees.append(tree)
        model.trees.append(trees)
    return model


def main() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(20_000, 10))
    signal = values[:, 0] * values[:, 1] + np.sin(3 * values[:, 2])
    labels = (signal + random.normal(size=len(values)) > 0).astype(float)
    half = len(values) // 2
    settings = Settings(objective="binary", rounds=50, bagging_fraction=0.8)
    model = train(values[:half], labels[:half], settings)
    rates = model.predict(values[half:])
    unseen = labels[half:]
    loss = -np.mean(unseen * np.log(rates) + (1 - unseen) * np.log1p(-rates))
    base = np.mean(labels[:half])
    chance = -np.mean(unseen * np.log(base) + (1 - unseen) * np.log1p(-base))
    print(f"log loss on {half:,} unseen rows: {loss:.4f} (of the base rate: {chance:.4f})")


if __name__ == "__main__":
    main()
