"""The example trainer: it learns, in all its modes, and the same model from rows in any order."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[3] / "examples" / "trees"))

from binning import bin_data
from boosting import Settings, train
from growing import Grower, Limits

import isofold


def data(seed: int, rows: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, 4))
    values[:, 3] = random.integers(0, 8, rows)
    values[random.random(values.shape) < 0.05] = np.nan
    clean = np.nan_to_num(values)
    signal = clean[:, 0] + np.sin(3 * clean[:, 1]) + np.isin(values[:, 3], [1, 4, 6])
    return values, signal + 0.3 * random.normal(size=rows)


SMALL = Limits(num_leaves=12, rules={"min_data_in_leaf": 10, "min_data_per_group": 10})


@pytest.mark.parametrize(
    "settings",
    [
        Settings(rounds=30, limits=SMALL),
        Settings(rounds=30, bagging_fraction=0.5, limits=SMALL),
        Settings(rounds=30, goss=True, limits=SMALL),
        Settings(rounds=30, limits=Limits(12, max_depth=3, rules={"lambda_l2": 5.0, "path_smooth": 2.0})),
        Settings(rounds=30, limits=Limits(12, monotone=[1, 0, 0, 0])),
    ],
    ids=["plain", "bagging", "goss", "depth", "monotone"],
)
def test_regression(settings: Settings) -> None:
    values, labels = data(0)
    unseen, truth = data(1)
    model = train(values, labels, settings, categorical=[3])
    error = np.mean((model.predict(unseen) - truth) ** 2)
    assert error < 0.45 * np.var(truth)
    if settings.limits.monotone is not None:
        steps = np.tile(unseen[:1], (200, 1))
        steps[:, 0] = np.linspace(-3, 3, 200)
        assert np.all(np.diff(model.predict(steps)) >= 0)
    if settings.limits.max_depth == 3:
        assert max(len(tree.leaf_values) for trees in model.trees for tree in trees) <= 8


def test_binary_and_multiclass() -> None:
    values, signal = data(2)
    unseen, truth = data(3)
    binary = train(
        values, (signal > 0.5).astype(float), Settings("binary", rounds=30, limits=SMALL), categorical=[3]
    )
    assert np.mean((binary.predict(unseen) > 0.5) == (truth > 0.5)) > 0.8
    edges = np.quantile(signal, [1 / 3, 2 / 3])
    model = train(
        values,
        np.digitize(signal, edges).astype(float),
        Settings("multiclass", classes=3, rounds=20, limits=SMALL),
        categorical=[3],
    )
    rates = model.predict(unseen)
    assert rates.shape == (len(unseen), 3)
    assert np.allclose(rates.sum(axis=1), 1)
    assert np.mean(rates.argmax(axis=1) == np.digitize(truth, edges)) > 0.65


def test_the_order_of_rows_changes_nothing() -> None:
    values, labels = data(4)
    weights = np.random.default_rng(4).random(len(values))
    order = np.random.default_rng(5).permutation(len(values))
    settings = Settings(rounds=10, limits=SMALL)
    model = train(values, labels, settings, weights=weights, categorical=[3])
    other = train(values[order], labels[order], settings, weights=weights[order], categorical=[3])
    assert np.array_equal(model.predict(values), other.predict(values))
    for trees, others in zip(model.trees, other.trees, strict=True):
        assert trees[0].leaf_values == others[0].leaf_values
        assert [d.gain for d in trees[0].decisions] == [d.gain for d in others[0].decisions]


def test_subtracted_histograms_are_those_of_the_rows() -> None:
    values, labels = data(6)
    binned = bin_data(values, [3])
    quantized = isofold.quantize_gradients(labels)
    seen = []

    class Checked(Grower):
        def _leaf(self, rows, histogram, *rest):  # type: ignore[no-untyped-def]
            assert histogram == self._histogram(quantized, rows)
            seen.append(len(rows))
            return super()._leaf(rows, histogram, *rest)

    Checked(binned, SMALL).grow(quantized, np.arange(len(values)))
    assert len(seen) > 15
