"""The fitted curve against rational arithmetic, and what must not change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
from exact_curve import exact_curve
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from isofold.calibration import Calibrator

Array = NDArray[Any]

# Few distinct scores, so that ties are the rule; neighbours, zeros of both signs and extremes among them.
SCORES = [
    -1.7e308,
    -1.0,
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    1e-7,
    5e-7,
    0.1,
    float(np.nextafter(0.1, 1)),
    3.0,
    1.7e308,
]
LABELS = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.integers(0, 10).map(lambda k: k / 10))
WEIGHTS = st.one_of(
    st.integers(0, 3).map(float), st.floats(5e-324, 1.7e308), st.floats(0.125, 128.0, width=32)
)

rows_without_weights = st.lists(st.tuples(st.sampled_from(SCORES), LABELS), min_size=1, max_size=30)
rows_with_weights = st.lists(
    st.tuples(st.sampled_from(SCORES), LABELS, WEIGHTS), min_size=1, max_size=30
).filter(lambda rows: any(row[2] > 0 for row in rows))


def columns(rows: list[tuple[float, ...]]) -> list[Array]:
    return [np.array(column) for column in zip(*rows, strict=True)]


def check_curve(curve: Calibrator, expected: dict[float, float]) -> None:
    scores, values = np.array(list(expected)), np.array(list(expected.values()))
    assert oracle.same_bits(curve.predict(scores), values)
    # Knots are the ends of the runs of equal value, and nothing else.
    ends = [
        i
        for i in range(len(values))
        if i in (0, len(values) - 1) or values[i - 1] != values[i] or values[i + 1] != values[i]
    ]
    assert oracle.same_bits(curve.knots_x_, scores[ends] + 0.0)
    assert oracle.same_bits(curve.knots_y_, values[ends])
    assert (curve.knots_x_[1:] > curve.knots_x_[:-1]).all()


@given(rows_without_weights, st.booleans())
def test_fit_is_exact(rows: list[tuple[float, ...]], increasing: bool) -> None:
    check_curve(Calibrator(increasing=increasing).fit(*columns(rows)), exact_curve(rows, increasing))


@given(rows_with_weights, st.booleans())
def test_weighted_fit_is_exact(rows: list[tuple[float, ...]], increasing: bool) -> None:
    check_curve(Calibrator(increasing=increasing).fit(*columns(rows)), exact_curve(rows, increasing))


@given(rows_with_weights, st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_floor_and_ceiling_clip_the_fit(
    rows: list[tuple[float, ...]], increasing: bool, one: float, other: float
) -> None:
    floor, ceiling = min(one, other), max(one, other)
    curve = Calibrator(increasing=increasing, floor=floor, ceiling=ceiling).fit(*columns(rows))
    check_curve(curve, exact_curve(rows, increasing, floor, ceiling))
    everywhere = curve.predict(np.linspace(-2, 4, 101))
    assert (everywhere >= floor).all()
    assert (everywhere <= ceiling).all()


@given(rows_with_weights, st.booleans(), st.randoms(use_true_random=False))
def test_order_of_rows_changes_no_bit(rows: list[tuple[float, ...]], increasing: bool, random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    one = Calibrator(increasing=increasing).fit(*columns(rows))
    other = Calibrator(increasing=increasing).fit(*columns(shuffled))
    assert oracle.same_bits(one.knots_x_, other.knots_x_)
    assert oracle.same_bits(one.knots_y_, other.knots_y_)


@given(st.lists(st.tuples(st.sampled_from(SCORES), LABELS, st.integers(0, 4)), min_size=1, max_size=20))
def test_a_weight_is_a_repetition(rows: list[tuple[float, float, int]]) -> None:
    repeated = [(score, label) for score, label, times in rows for _ in range(times)]
    if not repeated:
        return
    weighted, plain = Calibrator().fit(*columns(rows)), Calibrator().fit(*columns(repeated))
    assert oracle.same_bits(weighted.knots_x_, plain.knots_x_)
    assert oracle.same_bits(weighted.knots_y_, plain.knots_y_)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_no_bit(threads: int) -> None:
    random = np.random.default_rng(5)
    scores = random.normal(size=200_000).round(3)
    labels = random.random(200_000) < 1 / (1 + np.exp(-scores))
    weights = random.random(200_000).astype(np.float32)
    one = Calibrator().fit(scores, labels, weights)
    other = Calibrator(threads=threads).fit(scores, labels, weights)
    assert oracle.same_bits(one.knots_x_, other.knots_x_)
    assert oracle.same_bits(one.knots_y_, other.knots_y_)
    assert oracle.same_bits(one.predict(scores), other.predict(scores))


def test_inputs_are_never_written_to() -> None:
    scores, labels = np.array([0.3, -0.0, 0.2, 0.1]), np.array([1, 0, 1, 0])
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    originals = [array.copy() for array in (scores, labels, weights)]
    for array in (scores, labels, weights):
        array.setflags(write=False)
    curve = Calibrator().fit(scores, labels, weights)
    curve.predict(scores)
    for array, original in zip((scores, labels, weights), originals, strict=True):
        assert oracle.same_bits(array, original)


def test_any_layout_and_dtype_gives_the_same_curve() -> None:
    scores = np.array([3, 1, 2, 5, 4, 0])
    labels = np.array([1, 0, 1, 1, 0, 0])
    expected = Calibrator().fit(scores.astype(float), labels.astype(float))
    strided = np.zeros(12)
    strided[::2] = scores
    variants: list[tuple[Any, Any]] = [
        (scores.tolist(), labels.tolist()),
        (scores.astype(np.float16), labels.astype(bool)),
        (scores.astype(np.float32).reshape(-1, 1), labels.astype(np.uint8)),
        (strided[::2], labels.astype(np.float32)),
        (scores.astype(">f8"), labels.astype(">i4")),
        (scores[::-1], labels[::-1]),
    ]
    for variant_scores, variant_labels in variants:
        curve = Calibrator().fit(variant_scores, variant_labels)
        assert oracle.same_bits(curve.knots_x_, expected.knots_x_)
        assert oracle.same_bits(curve.knots_y_, expected.knots_y_)


def test_a_failed_fit_leaves_the_curve_as_it_was() -> None:
    curve = Calibrator().fit([0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"labels\[1\] is 2"):
        curve.fit([0, 1], [0, 2])
    assert curve.predict([0.5]).tolist() == [0.5]


def test_fit_returns_the_calibrator() -> None:
    curve = Calibrator()
    assert curve.fit([0, 1], [0, 1]) is curve
    assert "2 knots" in repr(curve)
    assert "not fitted" in repr(Calibrator())
