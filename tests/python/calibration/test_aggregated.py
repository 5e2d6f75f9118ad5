"""Aggregated rows mean the rows that they stand for, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration import Calibrator, Counts, Fallback
from isofold.calibration._aggregated import expand

SCORES = st.sampled_from([-0.0, 0.0, 1e-7, 0.1, 0.5, 3.0])
whole = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
real = st.tuples(
    *[st.one_of(st.floats(0, 1.7e308), st.floats(0, 1), st.sampled_from([0.1, 1e-300, 3.0]))] * 2
)
KEYS = st.sampled_from([None, "a", "b"])


@given(st.lists(st.tuples(SCORES, whole, KEYS), min_size=1, max_size=15), st.booleans(), st.integers(1, 9))
def test_equals_the_rows_spelled_out(drawn: list[Any], increasing: bool, min_rows: int) -> None:
    spelled = [
        (score, label, key)
        for score, (positives, total), key in drawn
        for label in [1] * positives + [0] * (total - positives)
    ]
    if not spelled:
        return
    scores, labels, keys = zip(*spelled, strict=True)
    plain = Calibrator(increasing=increasing, min_rows=min_rows).fit(scores, labels, segments=list(keys))
    aggregated = Calibrator(increasing=increasing, min_rows=min_rows).fit_aggregated(
        [row[0] for row in drawn],
        [row[1][0] for row in drawn],
        [row[1][1] for row in drawn],
        segments=[row[2] for row in drawn],
    )
    assert aggregated.to_json() == plain.to_json()


@given(
    st.lists(real.map(sorted), min_size=1, max_size=30).filter(lambda rows: any(row[1] > 0 for row in rows))
)
def test_weights_are_split_exactly(drawn: list[list[float]]) -> None:
    positives, totals = zip(*drawn, strict=True)
    rows, source = expand(np.arange(len(drawn)), positives, totals)
    assert rows.weights is not None
    assert (rows.weights > 0).all()
    found = {(index, label): Fraction(0) for index in range(len(drawn)) for label in (0.0, 1.0)}
    for index, label, weight, score in zip(
        source.tolist(), rows.labels.tolist(), rows.weights.tolist(), rows.scores.tolist(), strict=True
    ):
        found[index, label] += Fraction(weight)
        assert score == index
    for index, (positive, total) in enumerate(drawn):
        assert found[index, 1.0] == Fraction(positive)
        assert found[index, 0.0] == Fraction(total) - Fraction(positive)


def test_rates_are_exact_where_differences_round() -> None:
    """0.3 - 0.1 is not a float64."""
    curve = Calibrator().fit_aggregated([1.0, 1.0], [0.1, 0.1], [0.3, 0.7])
    rate = Fraction(0.1) * 2 / (Fraction(0.3) + Fraction(0.7))
    assert curve.knots_y_.tolist() == [float(oracle.round_fraction(rate, "float64"))]


def test_counts_and_min_rows_speak_of_totals() -> None:
    curves = Calibrator(min_rows=100).fit_aggregated(
        [0.1, 0.2, 0.1, 0.1], [10, 20, 5, 0], [50, 50, 60, 999], segments=["a", "a", "b", "c"]
    )
    assert [(segment.key, segment.served_by) for segment in curves.segments_] == [
        (("a",), "own_curve"),
        (("b",), "under_min_rows"),
        (("c",), "single_class"),
    ]
    assert curves.segments_[0].counts == Counts(100.0, 100.0, 30.0)
    assert curves.fallbacks_["single_class"] == Fallback(1, 999.0)
    assert curves.predict([0.1, 0.2], ["a", "a"]).tolist() == [0.2, 0.4]


def test_totals_of_zero_are_dropped() -> None:
    curve = Calibrator().fit_aggregated([0.1, 0.2, 0.3], [1, 0, 1], [2, 0, 1])
    assert curve.knots_x_.tolist() == [0.1, 0.3]


@pytest.mark.parametrize(
    ("scores", "positives", "totals", "message"),
    [
        ([0, 1], [0, 3], [1, 2], r"positives\[1\] is 3\.0: positives must not exceed totals"),
        ([0, 1], [-1, 0], [1, 2], r"positives\[0\] is -1\.0: positives must not be negative"),
        ([0, 1], [0, 0], [1, -2], r"totals\[1\] is -2\.0: totals must not be negative"),
        ([0, np.nan], [0, 0], [1, 2], r"scores\[1\] is nan: scores must be finite"),
        ([0, 1], [np.nan, 0], [1, 2], r"positives\[0\] is nan: positives must be finite"),
        ([0, 1], [0, 0], [np.inf, 2], r"totals\[0\] is inf: totals must be finite"),
        ([0, 1], [0], [1, 2], "positives has 1 entries, scores has 2"),
        ([0, 1], [0, 0], [1], "totals has 1 entries, scores has 2"),
        ([], [], [], "scores is empty"),
        ([0, 1], [0, 0], [0, 0], "totals has no entry above 0"),
    ],
)
def test_wrong_input(scores: Any, positives: Any, totals: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Calibrator().fit_aggregated(scores, positives, totals)
