"""Brier score, log loss, calibration error and CORP terms against rational arithmetic and brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration import (
    brier_decomposition,
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability,
    reliability_curve,
)

Row = tuple[float, float, float]  # label, prediction, weight

UNIT = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 5e-324, 0.1, 0.2, 0.3, 0.5, float(np.nextafter(0.3, 0)), 1 - 2**-53]),
    st.floats(0, 1),
    st.integers(0, 20).map(lambda k: k / 20),
)
WEIGHT = st.one_of(st.integers(0, 3).map(float), st.floats(1e-3, 1e3))
rows_strategy = st.lists(st.tuples(UNIT, UNIT, WEIGHT), min_size=1, max_size=25).filter(
    lambda rows: any(row[2] > 0 for row in rows)
)
extreme_rows = st.lists(st.tuples(UNIT, UNIT, st.floats(1e-300, 1.7e308)), min_size=1, max_size=12)

METRICS: list[Callable[..., Any]] = [
    brier_score,
    log_loss,
    brier_decomposition,
    lambda *a, **k: expected_calibration_error(*a, **k, n_bins=7),
    lambda *a, **k: expected_calibration_error(*a, **k, n_bins=7, strategy="quantile"),
    lambda *a, **k: vars(reliability(*a, **k, n_bins=4)),
    lambda *a, **k: vars(reliability(*a, **k, n_bins=4, strategy="quantile")),
    reliability_curve,
]


def call(metric: Callable[..., Any], rows: list[Row]) -> Any:
    labels, predictions, weights = zip(*rows, strict=True)
    return metric(labels, predictions, sample_weight=weights)


def bits(result: Any) -> list[bytes]:
    if isinstance(result, dict):
        result = tuple(result.values())
    if not isinstance(result, tuple):
        result = (result,)
    return [np.asarray(part).tobytes() for part in result]


def exact(rows: list[Row]) -> list[tuple[Fraction, Fraction, Fraction]]:
    return [(Fraction(y), Fraction(p), Fraction(w)) for y, p, w in rows if w > 0]


def exact_brier(rows: list[Row]) -> Fraction:
    kept = exact(rows)
    return sum((w * (y - p) ** 2 for y, p, w in kept), Fraction(0)) / sum(w for *_, w in kept)


@given(rows_strategy)
def test_brier_score(rows: list[Row]) -> None:
    expected = exact_brier(rows)
    assert abs(Fraction(call(brier_score, rows)) - expected) <= expected * 8 / 2**53 + Fraction(5e-324)


@given(extreme_rows)
def test_weights_of_any_size(rows: list[Row]) -> None:
    expected = float(exact_brier(rows))
    assert call(brier_score, rows) == pytest.approx(expected, rel=1e-14, abs=1e-300)
    assert call(brier_decomposition, rows).score == pytest.approx(expected, rel=1e-14, abs=1e-300)
    assert 0 <= call(expected_calibration_error, rows) <= 1
    assert math.isfinite(call(log_loss, rows).value)


@given(rows_strategy)
def test_log_loss(rows: list[Row]) -> None:
    result = call(log_loss, rows)
    kept = [row for row in rows if row[2] > 0]
    epsilon = 2.0**-52
    total = infinite = 0.0
    for y, p, w in kept:
        infinite += (p == 0 and y > 0) or (p == 1 and y < 1)
        clipped = min(max(p, epsilon), 1 - epsilon)
        total -= w * (y * math.log(clipped) + (1 - y) * math.log1p(-clipped))
    assert result.infinite_terms == infinite
    assert result.epsilon == epsilon
    assert result.value == pytest.approx(total / sum(row[2] for row in kept), rel=1e-13, abs=1e-18)


def test_log_loss_counts_infinite_terms_beside_the_clipped_value() -> None:
    result = log_loss([1, 0, 1, 0.5, 0.5], [0.0, 1.0, 1.0, 0.0, 0.5], epsilon=0.25)
    assert result.infinite_terms == 3
    assert result.epsilon == 0.25
    low, high = -math.log(0.25), -math.log(0.75)
    assert result.value == pytest.approx((low + low + high + (low + high) / 2 + math.log(2)) / 5, rel=1e-15)
    assert log_loss([1, 0], np.array([0.5, 0.5], np.float32)).epsilon == float(np.finfo(np.float32).eps)
    assert log_loss([1, 0], [1.0, 0.0]).value < 1e-15


def uniform_bin(p: float, n_bins: int) -> int:
    """(lower, upper], edges rounded to float64, 0 in the first."""
    return next(k for k in range(n_bins) if p <= (k + 1) / n_bins)


def quantile_bins(rows: list[Row], n_bins: int) -> dict[float, int]:
    """Each distinct prediction goes, whole, where the middle of its weight falls."""
    kept = exact(rows)
    total = sum(w for *_, w in kept)
    bins, before = {}, Fraction(0)
    for prediction in sorted({row[1] for row in rows if row[2] > 0}):
        weight = sum(w for _, p, w in kept if p == prediction)
        bins[prediction] = min(int((before + weight / 2) * n_bins / total), n_bins - 1)
        before += weight
    return bins


def exact_error(rows: list[Row], bins: dict[float, int]) -> Fraction:
    kept = exact(rows)
    gaps: dict[int, Fraction] = {}
    for y, p, w in kept:
        index = bins[float(p)]
        gaps[index] = gaps.get(index, Fraction(0)) + w * (y - p)
    return sum(map(abs, gaps.values()), Fraction(0)) / sum(w for *_, w in kept)


@given(rows_strategy, st.integers(1, 20))
def test_calibration_error_in_bins_of_equal_width(rows: list[Row], n_bins: int) -> None:
    expected = exact_error(rows, {row[1]: uniform_bin(row[1], n_bins) for row in rows})
    found = call(lambda *a, **k: expected_calibration_error(*a, **k, n_bins=n_bins), rows)
    assert abs(Fraction(found) - expected) <= Fraction(1, 2**50)


@given(
    st.lists(st.tuples(UNIT, UNIT, st.integers(1, 3).map(float)), min_size=1, max_size=25), st.integers(1, 20)
)
def test_calibration_error_in_bins_of_equal_mass(rows: list[Row], n_bins: int) -> None:
    expected = exact_error(rows, quantile_bins(rows, n_bins))

    def metric(*args: Any, **keywords: Any) -> float:
        return expected_calibration_error(*args, **keywords, n_bins=n_bins, strategy="quantile")

    assert abs(Fraction(call(metric, rows)) - expected) <= Fraction(1, 2**50)
    # Whole weights are repetitions.
    repeated = [row for row in rows for _ in range(int(row[2]))]
    labels, predictions, _ = zip(*repeated, strict=True)
    assert abs(Fraction(metric(labels, predictions)) - expected) <= Fraction(1, 2**50)


def test_equal_mass_without_ties_cuts_into_equal_parts() -> None:
    predictions = np.linspace(0, 1, 100)
    table = reliability(np.zeros(100), predictions, n_bins=10, strategy="quantile")
    assert table.count.tolist() == [10] * 10
    assert table.lower.tolist() == predictions[::10].tolist()
    assert table.upper.tolist() == predictions[9::10].tolist()


def test_reliability_table() -> None:
    labels = [0, 1, 1, 0, 1, 1]
    predictions = [0.0, 0.2, 0.2, 0.5, 0.9, 1.0]
    table = reliability(labels, predictions, sample_weight=[1, 1, 2, 1, 2, 1], n_bins=5)
    assert table.lower.tolist() == [0.0, 0.4, 0.8]
    assert table.upper.tolist() == [0.2, 0.6, 1.0]
    assert table.count.tolist() == [3, 1, 2]
    assert table.weight.tolist() == [0.5, 0.125, 0.375]
    np.testing.assert_allclose(table.mean_prediction, [0.15, 0.5, 2.8 / 3], rtol=1e-15)
    assert table.observed_rate.tolist() == [0.75, 0.0, 1.0]


@given(rows_strategy)
def test_table_and_error_agree(rows: list[Row]) -> None:
    table = call(lambda *a, **k: reliability(*a, **k, n_bins=6), rows)
    error = call(lambda *a, **k: expected_calibration_error(*a, **k, n_bins=6), rows)
    assert error == pytest.approx(
        float(np.sum(table.weight * abs(table.observed_rate - table.mean_prediction))), abs=1e-14
    )


def exact_corp(rows: list[Row]) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """By the definition: scores of the predictions, of their isotonic recalibration, of the constant rate."""
    kept = exact(rows)
    total = sum(w for *_, w in kept)
    blocks: list[list[Any]] = []  # [weight, weighted labels, predictions]
    for prediction in sorted({p for _, p, _ in kept}):
        tied = [(y, w) for y, p, w in kept if p == prediction]
        blocks.append([sum(w for _, w in tied), sum(w * y for y, w in tied), {prediction}])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1], blocks[-1][2] | last[2]]
    recalibrated = {p: labels / weight for weight, labels, predictions in blocks for p in predictions}
    rate = sum(w * y for y, _, w in kept) / total

    def score(predict: Callable[[Fraction], Fraction]) -> Fraction:
        return sum((w * (y - predict(p)) ** 2 for y, p, w in kept), Fraction(0)) / total

    mean, best, constant = score(lambda p: p), score(recalibrated.__getitem__), score(lambda p: rate)
    return mean, mean - best, constant - best, constant


@given(rows_strategy)
def test_corp_decomposition(rows: list[Row]) -> None:
    found = call(brier_decomposition, rows)
    for term, expected in zip(found, exact_corp(rows), strict=True):
        assert abs(Fraction(term) - expected) <= Fraction(1, 2**49)
        assert term >= 0


@given(rows_strategy)
def test_corp_curve(rows: list[Row]) -> None:
    curve = call(reliability_curve, rows)
    kept = sorted((row for row in rows if row[2] > 0), key=lambda row: row[1])
    predictions = sorted({row[1] for row in kept})
    offsets = [sum(row[1] < p for row in kept) for p in predictions] + [len(kept)]
    weights = [row[2] for row in kept]
    solution = oracle.solve(np.array([row[0] for row in kept]), np.array(weights), tie_offsets=offsets)
    assert oracle.same_bits(curve.predictions, np.array(predictions) + 0.0)
    assert oracle.same_bits(curve.recalibrated, solution.fit("float64")[offsets[:-1]])
    totals = [float(sum(map(Fraction, weights[a:b]))) for a, b in itertools.pairwise(offsets)]
    assert curve.weight.tolist() == totals


def test_calibrated_predictions_have_no_miscalibration() -> None:
    labels = [0, 1, 1, 0, 1, 1]
    terms = brier_decomposition(labels, [0.0, 2 / 3, 2 / 3, 2 / 3, 1.0, 1.0])
    assert terms.miscalibration == 0.0
    assert brier_decomposition(labels, [0.5] * 6).discrimination == 0.0
    assert brier_decomposition([0.1] * 3, [0.3, 0.2, 0.1]).uncertainty == 0.0


@given(rows_strategy, st.randoms(use_true_random=False), st.sampled_from(range(len(METRICS))))
def test_order_of_rows_changes_no_bit(rows: list[Row], random: Any, which: int) -> None:
    shuffled = random.sample(rows, len(rows))
    assert bits(call(METRICS[which], rows)) == bits(call(METRICS[which], shuffled))


@pytest.mark.parametrize("which", range(len(METRICS)))
@pytest.mark.parametrize("weighted", [False, True])
def test_order_of_many_rows_changes_no_bit(which: int, weighted: bool) -> None:
    random = np.random.default_rng(8)
    predictions = random.random(10_007).round(3)
    labels = random.random(10_007) < predictions**2
    weights = random.random(10_007) if weighted else None
    order = random.permutation(10_007)
    one = METRICS[which](labels, predictions, sample_weight=weights)
    other = METRICS[which](
        labels[order], predictions[order], sample_weight=None if weights is None else weights[order]
    )
    assert bits(one) == bits(other)


@given(rows_strategy, st.sampled_from(range(len(METRICS))))
def test_zero_weight_is_removal(rows: list[Row], which: int) -> None:
    kept = [row for row in rows if row[2] > 0]
    assert bits(call(METRICS[which], rows)) == bits(call(METRICS[which], kept))


def test_scikit_learn_agrees() -> None:
    from sklearn import metrics as peer

    random = np.random.default_rng(4)
    predictions, weights = random.random(5000), random.random(5000)
    labels = (random.random(5000) < predictions).astype(int)
    assert brier_score(labels, predictions, sample_weight=weights) == pytest.approx(
        peer.brier_score_loss(labels, predictions, sample_weight=weights), rel=1e-13
    )
    assert log_loss(labels, predictions, sample_weight=weights).value == pytest.approx(
        peer.log_loss(labels, predictions, sample_weight=weights), rel=1e-13
    )
    from sklearn.calibration import calibration_curve

    rate, mean = calibration_curve(labels, predictions, n_bins=10)
    table = reliability(labels, predictions, n_bins=10)
    np.testing.assert_allclose(table.observed_rate, rate, rtol=1e-13)
    np.testing.assert_allclose(table.mean_prediction, mean, rtol=1e-13)


def test_running_weights_that_round_differently_in_another_order() -> None:
    """Summed in the rows' order, these weights put the middle score left or right of the cut."""
    predictions = np.repeat([0.2, 0.5, 0.8], [3, 1, 2])
    weights, order = np.array([0.3, 0.4, 0.1, 0.6, 0.2, 0.6]), np.array([3, 2, 5, 4, 0, 1])
    one, other = (
        reliability(
            np.zeros(6), predictions[rows], sample_weight=weights[rows], n_bins=2, strategy="quantile"
        )
        for rows in (np.arange(6), order)
    )
    assert one.count.tolist() == other.count.tolist()


def test_rounding_gives_no_negative_term() -> None:
    """The unclipped miscalibration is -7e-33 here."""
    terms = brier_decomposition(
        [1.0, 0.0], [0.5278179636099126] * 2, sample_weight=[0.24263189269323926, 0.21705669204874944]
    )
    assert terms.miscalibration == 0.0


def test_log_loss_of_a_tiny_prediction_is_not_lost() -> None:
    assert log_loss([0], [1e-20], epsilon=1e-30).value == pytest.approx(1e-20, rel=1e-15, abs=0)
