"""CORP against the package model-diagnostics, and the ten rows whose terms are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_diagnostics.calibration import compute_bias
from model_diagnostics.scoring import SquaredError, decompose

from isofold.calibration import brier_decomposition
from isofold.calibration.report import report_data


def theirs(labels: Any, predictions: Any, weights: Any = None) -> tuple[float, ...]:
    row = decompose(labels, predictions, weights=weights, scoring_function=SquaredError()).row(0, named=True)
    return tuple(row[name] for name in ("score", "miscalibration", "discrimination", "uncertainty"))


@pytest.mark.parametrize("decimals", [2, 16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [0.3, 0.002])
def test_corp_terms_agree(decimals: int, weighted: bool, rate: float) -> None:
    random = np.random.default_rng(decimals)
    rows = 20_000
    truth = random.beta(0.5, 0.5 / rate, rows)
    predictions = (truth / (truth + (1 - truth) * 0.3)).round(decimals)
    labels = (random.random(rows) < truth).astype(float)
    weights = random.uniform(0.1, 3.0, rows) if weighted else None
    found = brier_decomposition(labels, predictions, sample_weight=weights)
    np.testing.assert_allclose(found, theirs(labels, predictions, weights), rtol=0, atol=1e-12)


def test_segments_agree() -> None:
    random = np.random.default_rng(3)
    rows = 6000
    scores, calibrated, weights = (
        random.random(rows).round(2),
        random.random(rows),
        random.uniform(0.5, 2, rows),
    )
    labels = (random.random(rows) < calibrated**2).astype(float)
    segments = random.integers(0, 7, rows)
    table = report_data(scores, labels, calibrated, sample_weight=weights, segments=segments)["segments"]
    bias = compute_bias(labels, calibrated, feature=segments.astype(str), weights=weights)
    mean_bias = dict(zip(bias[bias.columns[0]], bias["bias_mean"], strict=True))
    for k, (name,) in enumerate(table["names"]):
        own = segments == int(name)
        for side, predictions in (("before", scores), ("after", calibrated)):
            terms = theirs(labels[own], predictions[own], weights[own])
            assert table[side]["mcb"][k] == pytest.approx(terms[1], rel=0, abs=1e-12)
        gap = table["after"]["mean_prediction"][k] - table["observed_rate"][k]
        assert gap == pytest.approx(mean_bias[name], rel=0, abs=1e-12)


def test_ten_rows() -> None:
    """Mean .185, MCB .068333, DSC .123333, UNC .24."""
    predictions, labels = np.arange(1, 11) / 10, np.array([0, 0, 0, 1, 0, 0, 1, 0, 1, 1.0])
    expected = (0.185, 0.41 / 6, 0.74 / 6, 0.24)
    np.testing.assert_allclose(theirs(labels, predictions), expected, rtol=0, atol=1e-15)
    found = report_data(predictions, labels, predictions)["metrics"]["after"]
    terms = [found[name] for name in ("brier", "mcb", "dsc", "unc")]
    np.testing.assert_allclose(terms, expected, rtol=0, atol=1e-15)
