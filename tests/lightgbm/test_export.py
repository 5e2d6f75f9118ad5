"""Models in LightGBM's text format: it predicts what the trainer does, and its SHAP values add up."""

from __future__ import annotations

import sys
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from boosting import Settings, train
from growing import Limits
from lightgbm_text import lightgbm_text

sys.path.append(str(Path(__file__).parents[2] / "bench" / "trees"))

from parity_sweep import configurations, fit, make_data, shap_values

import isofold


@pytest.mark.parametrize("number", [0, 6, 7, 14, 16, 17, 23, 33, 34, 41, 50, 51])
def test_predictions_and_shap_values(number: int) -> None:
    configuration = configurations(5)[number]
    data = make_data(configuration, number)
    model = fit(configuration, data, isofold)
    scores = model.scores(data.unseen)
    booster = lightgbm.Booster(model_str=lightgbm_text(model))
    assert np.array_equal(np.reshape(booster.predict(data.unseen, raw_score=True), scores.shape), scores)
    contributions = shap_values(model, data.unseen)
    assert contributions is not None
    classes = scores.shape[1]
    parts = contributions.reshape(200, classes, -1)
    assert np.allclose(parts.sum(axis=2), scores[:200], rtol=1e-6, atol=1e-9)


def test_a_tree_of_one_leaf() -> None:
    model = train(np.zeros((30, 1)), np.ones(30), Settings(rounds=1, limits=Limits(4)))
    booster = lightgbm.Booster(model_str=lightgbm_text(model))
    assert list(booster.predict(np.zeros((2, 1)))) == [0.0, 0.0]
