"""Bad input: every error names the argument and the position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration import (
    Calibrator,
    PlattScaling,
    brier_decomposition,
    brier_score,
    downsampling_correction,
    expected_calibration_error,
    log_loss,
    reliability,
    reliability_curve,
)
from isofold.calibration._inputs import collect

METRICS = [
    brier_score,
    log_loss,
    expected_calibration_error,
    reliability,
    brier_decomposition,
    reliability_curve,
]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_fit_names_a_score_that_is_not_finite(bad: float) -> None:
    with pytest.raises(ValueError, match=r"scores\[1\] is -?(nan|inf): scores must be finite"):
        Calibrator().fit([0.1, bad, bad], [0, 1, 1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5, 2])
def test_fit_names_a_label_outside_the_unit_interval(bad: float) -> None:
    with pytest.raises(ValueError, match=r"labels\[2\] is .*: labels must lie in \[0, 1\]"):
        Calibrator().fit([0.1, 0.2, 0.3], [0, 1, bad])


def test_fit_names_a_bad_weight() -> None:
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1\.0: sample_weight must not be negative"):
        Calibrator().fit([0.1, 0.2], [0, 1], [-1, 1])
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is nan: sample_weight must be finite"):
        Calibrator().fit([0.1, 0.2], [0, 1], [1, np.nan])
    with pytest.raises(ValueError, match="scores has no entry of positive weight"):
        Calibrator().fit([0.1, 0.2], [0, 1], [0, 0])


def test_fit_checks_rows_of_weight_zero_too() -> None:
    with pytest.raises(ValueError, match=r"scores\[0\] is nan"):
        Calibrator().fit([np.nan, 0.2], [0, 1], [0, 1])


def test_fit_compares_lengths() -> None:
    with pytest.raises(ValueError, match="labels has 3 entries, scores has 2"):
        Calibrator().fit([0.1, 0.2], [0, 1, 1])
    with pytest.raises(ValueError, match="sample_weight has 1 entries, scores has 2"):
        Calibrator().fit([0.1, 0.2], [0, 1], [1])
    with pytest.raises(ValueError, match="scores is empty"):
        Calibrator().fit([], [])


@pytest.mark.parametrize(
    "bad", [["a", "b"], [1j, 2j], [None, 1], np.array(["2020-01-01"] * 2, "datetime64[D]")]
)
def test_fit_refuses_what_is_not_a_number(bad: Any) -> None:
    with pytest.raises(TypeError, match="scores must hold real numbers"):
        Calibrator().fit(bad, [0, 1])
    with pytest.raises(TypeError, match="labels must hold real numbers"):
        Calibrator().fit([0, 1], bad)
    with pytest.raises(TypeError, match="sample_weight must hold real numbers"):
        Calibrator().fit([0, 1], [0, 1], bad)


def test_constructor_checks() -> None:
    with pytest.raises(TypeError, match="increasing must be True or False, got 'auto'"):
        Calibrator(increasing="auto")  # type: ignore[arg-type]
    for name, value in (("floor", -0.1), ("ceiling", 1.1), ("floor", float("nan"))):
        with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\], got {value}"):
            Calibrator(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"floor must not be above ceiling, got 0\.5 and 0\.4"):
        Calibrator(floor=0.5, ceiling=0.4)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        Calibrator(threads=0)


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_name_what_is_wrong(metric: Any) -> None:
    with pytest.raises(ValueError, match=r"predictions\[1\] is 1\.5: predictions must lie in \[0, 1\]"):
        metric([0, 1], [0.1, 1.5])
    with pytest.raises(ValueError, match=r"predictions\[0\] is nan"):
        metric([0, 1], [np.nan, 0.5])
    with pytest.raises(ValueError, match=r"labels\[1\] is 2\.0"):
        metric([0, 2], [0.1, 0.5])
    with pytest.raises(ValueError, match="labels has 1 entries, predictions has 2"):
        metric([0], [0.1, 0.5])
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -1\.0"):
        metric([0, 1], [0.1, 0.5], sample_weight=[1, -1])
    with pytest.raises(ValueError, match="predictions is empty"):
        metric([], [])


@pytest.mark.parametrize("metric", [expected_calibration_error, reliability])
def test_binned_metrics_check_their_options(metric: Any) -> None:
    with pytest.raises(ValueError, match="n_bins must be at least 1, got 0"):
        metric([0, 1], [0.1, 0.5], n_bins=0)
    with pytest.raises(TypeError, match=r"n_bins must be a whole number, got 2\.5"):
        metric([0, 1], [0.1, 0.5], n_bins=2.5)
    with pytest.raises(ValueError, match="strategy must be 'uniform' or 'quantile', got 'mass'"):
        metric([0, 1], [0.1, 0.5], strategy="mass")


@pytest.mark.parametrize("epsilon", [0.0, 0.5, -1.0, float("nan")])
def test_log_loss_checks_epsilon(epsilon: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon must lie in \(0, 0\.5\)"):
        log_loss([0, 1], [0.1, 0.5], epsilon=epsilon)


def test_baselines_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"scores\[0\] is 2\.0: scores must lie in \[0, 1\]"):
        PlattScaling().fit([2, 0.5], [0, 1])
    with pytest.raises(ValueError, match=r"scores\[0\] is inf: scores must be finite"):
        PlattScaling(on_logit=False).fit([np.inf, 0.5], [0, 1])
    with pytest.raises(RuntimeError, match="call fit first"):
        PlattScaling().predict([0.5])
    with pytest.raises(ValueError, match=r"predictions\[1\] is -1\.0: predictions must lie in \[0, 1\]"):
        downsampling_correction([0.5, -1], 0.1)
    for share in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"keep_share must lie in \(0, 1\]"):
            downsampling_correction([0.5], share)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 2)), min_size=1, max_size=8),
    st.booleans(),
)
def test_rows_in_order_are_seen_to_be(rows: list[tuple[int, int, int]], weighted: bool) -> None:
    scores, labels, weights = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    given_rows = collect(scores, labels / 2, weights if weighted else None)
    ordered = given_rows.in_canonical_order()
    keys = [(row[0], -row[1], row[2] if weighted else 0) for row in rows]
    assert (ordered is given_rows) == (keys == sorted(keys))
    assert ordered.in_canonical_order() is ordered
    order = sorted(range(len(rows)), key=keys.__getitem__)
    assert ordered.scores.tolist() == scores[order].tolist()
    assert ordered.labels.tolist() == (labels / 2)[order].tolist()
    assert not weighted or ordered.weight_of_rows().tolist() == weights[order].tolist()
