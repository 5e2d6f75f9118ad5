"""The numbers of a report against rational arithmetic, and against the metrics on the whole data."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isofold.calibration import (
    brier_decomposition,
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability,
    reliability_curve,
)
from isofold.calibration.report import report_data

UNIT = st.one_of(
    st.sampled_from([0.0, 1.0, 0.1, 0.5, 1e-9]), st.floats(0, 1), st.integers(0, 8).map(lambda k: k / 8)
)
LABEL = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
WEIGHT = st.one_of(st.integers(0, 3).map(float), st.floats(1e-3, 1e3))
ROW = st.tuples(UNIT, LABEL, UNIT, WEIGHT, st.sampled_from("abc"))
ROWS = st.lists(ROW, min_size=1, max_size=25).filter(lambda rows: any(row[3] > 0 for row in rows))


def data_of(rows: list[Any], **keywords: Any) -> dict[str, Any]:
    scores, labels, calibrated, weights, segments = map(list, zip(*rows, strict=True))
    return report_data(scores, labels, calibrated, sample_weight=weights, segments=segments, **keywords)


def made_up(rows: int, seed: int = 0, rate: float = 0.3) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    truth = random.beta(0.5, 0.5 * (1 - rate) / rate, rows)
    return truth / (truth + (1 - truth) * 0.2), (random.random(rows) < truth).astype(float), truth.round(3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_metrics_are_those_of_the_functions(weighted: bool, dtype: Any) -> None:
    scores, labels, calibrated = (column.astype(dtype) for column in made_up(4000))
    weights = np.random.default_rng(1).integers(0, 3, 4000).astype(float) if weighted else None
    data = report_data(scores, labels, calibrated, sample_weight=weights)
    for name, predictions in (("before", scores), ("after", calibrated)):
        found = data["metrics"][name]
        terms = brier_decomposition(labels, predictions, sample_weight=weights)
        loss = log_loss(labels, predictions, sample_weight=weights)
        assert (found["brier"], found["mcb"], found["dsc"], found["unc"]) == tuple(terms)
        assert found["brier"] == brier_score(labels, predictions, sample_weight=weights)
        assert found["log_loss"] == loss.value
        assert found["log_loss_infinite_terms"] == loss.infinite_terms
        assert found["log_loss_epsilon"] == float(np.finfo(dtype).eps)
        for key, strategy in (("ece_equal_width", "uniform"), ("ece_equal_mass", "quantile")):
            error = expected_calibration_error(labels, predictions, sample_weight=weights, strategy=strategy)
            assert found[key] == error
        mean = np.average(predictions.astype(float), weights=weights)
        assert found["mean_prediction"] == pytest.approx(mean, rel=1e-13)
        ratio = mean / np.average(labels.astype(float), weights=weights)
        assert found["predicted_over_observed"] == pytest.approx(ratio, rel=1e-13)
        table = reliability(labels, predictions, sample_weight=weights, n_bins=20, strategy="quantile")
        for field, values in vars(table).items():
            assert data["diagrams"][name]["bins"][field] == values.tolist()
    kept = 4000 if weights is None else int(np.count_nonzero(weights))
    assert data["rows"] == kept
    assert data["weighted"] is weighted
    assert data["weight"] == (4000 if weights is None else weights.sum())
    assert data["positives"] == (labels if weights is None else labels * weights).sum()


def test_corp_curve_between_its_knots_is_the_whole_curve() -> None:
    scores, labels, calibrated = made_up(4000)
    data = report_data(scores, labels, calibrated)
    for name, predictions in (("before", scores), ("after", calibrated)):
        whole = reliability_curve(labels, predictions)
        shown = data["diagrams"][name]["corp"]
        drawn = np.interp(whole.predictions, shown["predictions"], shown["recalibrated"])
        np.testing.assert_allclose(drawn, whole.recalibrated, rtol=1e-12)
        assert shown["distinct_predictions"] == len(whole.predictions)
        assert shown["blocks"] == len(np.unique(whole.recalibrated))
        assert shown["knots_left_out"] == 0


def test_a_curve_of_many_knots_is_thinned_and_says_so() -> None:
    scores = np.linspace(0, 1, 9001)
    data = report_data(scores, scores, scores)
    shown = data["diagrams"]["after"]["corp"]
    assert len(shown["predictions"]) == 2000
    assert shown["knots_left_out"] == 9001 - 2000
    assert (shown["predictions"][0], shown["predictions"][-1]) == (0.0, 1.0)
    assert shown["predictions"] == shown["recalibrated"]


@pytest.mark.parametrize("rate", [0.3, 3e-4])
def test_histograms_count_every_row(rate: float) -> None:
    columns = made_up(3000, rate=rate)
    data = report_data(*columns)
    for axis in ("linear", "logit"):
        low, high = data["axes"][axis]
        assert 0 <= low < high <= 1
        for name, predictions in (("before", columns[0]), ("after", columns[2])):
            shown = data["distribution"][axis][name]
            assert sum(shown["rows"]) + shown["below"] + shown["above"] == 3000
            assert (shown["edges"][0], shown["edges"][-1]) == (low, high)
            inner = (predictions >= shown["edges"][20]) & (predictions < shown["edges"][30])
            assert sum(shown["rows"][20:30]) == inner.sum()


def exact_segment(rows: list[Any], side: int) -> dict[str, Fraction]:
    """Of one segment's rows, all of positive weight; `side` is the column of the predictions."""
    kept = [tuple(Fraction(row[k]) for k in (side, 1, 3)) for row in rows]
    weight = sum((w for *_, w in kept), Fraction(0))
    blocks: list[list[Any]] = []
    for prediction in sorted({p for p, *_ in kept}):
        tied = [(y, w) for p, y, w in kept if p == prediction]
        blocks.append([sum(w for _, w in tied), sum(w * y for y, w in tied), {prediction}])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] >= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1], blocks[-1][2] | last[2]]
    fit = {p: labels / total for total, labels, members in blocks for p in members}
    loss = sum((w * (p - y) ** 2 for p, y, w in kept), Fraction(0))
    best = sum((w * (fit[p] - y) ** 2 for p, y, w in kept), Fraction(0))
    return {
        "weight": weight,
        "positives": sum((w * y for _, y, w in kept), Fraction(0)),
        "predicted": sum((w * p for p, _, w in kept), Fraction(0)),
        "variance": sum((w * w * p * (1 - p) for p, _, w in kept), Fraction(0)),
        "mcb": (loss - best) / weight,
    }


@given(ROWS)
@example([(0.0, 0.0, 0.0, 0.0, "a"), (0.0, 0.0, 5e-324, 1.0, "a")])  # half of it is not a number
def test_segments_in_rational_arithmetic(rows: list[Any]) -> None:
    table = data_of(rows)["segments"]
    kept = [row for row in rows if row[3] > 0]
    assert sorted(name for (name,) in table["names"]) == sorted({row[4] for row in kept})
    assert table["total"] == len(table["names"])
    for k, (name,) in enumerate(table["names"]):
        own = [row for row in kept if row[4] == name]
        before, after = exact_segment(own, 0), exact_segment(own, 2)
        assert table["rows"][k] == len(own)
        assert table["weight"][k] == pytest.approx(float(after["weight"]), rel=1e-14)
        assert table["positives"][k] == pytest.approx(float(after["positives"]), rel=1e-14, abs=1e-300)
        assert table["observed_rate"][k] == pytest.approx(
            float(after["positives"] / after["weight"]), rel=1e-14, abs=1e-300
        )
        for side, expected in (("before", before), ("after", after)):
            found = table[side]
            mean = float(expected["predicted"] / expected["weight"])
            assert found["mean_prediction"][k] == pytest.approx(mean, rel=1e-14, abs=1e-300)
            assert found["mcb"][k] == pytest.approx(float(expected["mcb"]), abs=1e-14)
            ratio = found["predicted_over_observed"][k]
            if expected["positives"] > Fraction(1, 10**200):
                exact_ratio = float(expected["predicted"] / expected["positives"])
                assert ratio == pytest.approx(exact_ratio, rel=1e-13, abs=1e-300)
            elif expected["positives"] == 0:
                assert ratio == (1.0 if expected["predicted"] == 0 else math.inf)
        gap, spread = float(after["positives"] - after["predicted"]), math.sqrt(after["variance"])
        if spread > 1e-3 and abs(gap) > 1e-3:
            assert table["deviations"][k] == pytest.approx(gap / spread, rel=1e-9)
    sizes = [abs(value) for value in table["deviations"]]
    assert sizes == sorted(sizes, reverse=True)


@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_changes_no_bit(rows: list[Any], random: Any) -> None:
    assert repr(data_of(rows)) == repr(data_of(random.sample(rows, len(rows))))


@given(ROWS)
def test_zero_weight_is_removal(rows: list[Any]) -> None:
    assert repr(data_of(rows)) == repr(data_of([row for row in rows if row[3] > 0]))


def test_one_segment_is_all_rows() -> None:
    scores, labels, calibrated = made_up(2000)
    data = report_data(scores, labels, calibrated, segments=["all"] * 2000)
    table = data["segments"]
    for side in ("before", "after"):
        assert table[side]["mcb"] == [pytest.approx(data["metrics"][side]["mcb"], rel=1e-13)]
        ratio = data["metrics"][side]["predicted_over_observed"]
        assert table[side]["predicted_over_observed"] == [pytest.approx(ratio, rel=1e-13)]


def test_the_worst_segment_comes_first_and_a_tiny_one_does_not() -> None:
    """One row that came out otherwise than predicted is chance; a thousand too high by a third are not."""
    calibrated = np.concatenate((np.full(1000, 0.3), np.full(1000, 0.4), [0.2]))
    labels = np.concatenate((np.arange(1000) % 10 < 3, np.arange(1000) % 10 < 3, [True])).astype(float)
    segments = ["right"] * 1000 + ["high"] * 1000 + ["tiny"]
    table = report_data(calibrated, labels, calibrated, segments=segments, segment_names="kind")["segments"]
    assert table["columns"] == ["kind"]
    assert table["names"] == [["high"], ["tiny"], ["right"]]
    assert table["deviations"][0] == pytest.approx(-100 / math.sqrt(240), rel=1e-12)
    assert table["after"]["predicted_over_observed"][0] == pytest.approx(4 / 3, rel=1e-12)
    assert table["after"]["mcb"][1] == pytest.approx(0.64, rel=1e-12)


def test_forms_of_segments() -> None:
    import pandas as pd

    labels, scores = [0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5]
    carrier, origin = ["AA", "AA", "B6", "B6", None], [1, 2, 1, 1, 2]
    expected = {("AA", "1"): 1, ("AA", "2"): 1, ("B6", "1"): 2, ("(missing)", "(missing)"): 1}
    frame = pd.DataFrame({"carrier": carrier, "origin": origin})
    both = np.array([carrier, origin], dtype=object)
    forms: list[Any] = [[carrier, origin], (carrier, np.array(origin)), both.T, frame, dict(frame)]
    forms.append(frame.astype({"carrier": "category"}))
    for form in forms:
        table = report_data(scores, labels, scores, segments=form)["segments"]
        assert dict(zip(map(tuple, table["names"]), table["rows"], strict=True)) == expected
        named = (
            ["carrier", "origin"] if isinstance(form, (dict, pd.DataFrame)) else ["segment 1", "segment 2"]
        )
        assert table["columns"] == named
    single = report_data(scores, labels, scores, segments=np.array([7, 7, np.nan, np.nan, 2.0]))["segments"]
    assert sorted(map(tuple, single["names"])) == [("(missing)",), ("2",), ("7",)]
    named = report_data(scores, labels, scores, segments=form, segment_names=["x", "y"])["segments"]
    assert named["columns"] == ["x", "y"]


def test_scores_that_are_no_probabilities() -> None:
    data = report_data([-3.0, 0.5, 7.0], [0, 1, 1], [0.1, 0.5, 0.9], segments=["a", "b", "a"])
    assert data["metrics"]["before"] is None
    assert data["diagrams"]["before"] is None
    assert data["distribution"]["linear"]["before"] is None
    assert data["segments"]["before"] is None
    assert data["metrics"]["after"]["brier"] == brier_score([0, 1, 1], [0.1, 0.5, 0.9])


def test_weights_beyond_the_range_of_their_sum() -> None:
    data = report_data([0.1, 0.2], [0, 1], [0.3, 0.4], sample_weight=[1.5e308, 1.5e308], segments=["a", "a"])
    assert data["weight"] == math.inf
    assert data["observed_rate"] == 0.5
    assert data["segments"]["observed_rate"] == [0.5]
    assert data["segments"]["positives"] == [1.5e308]


def test_more_segments_than_are_kept() -> None:
    rows = 10_050
    data = report_data(np.full(rows, 0.5), np.arange(rows) % 2, np.full(rows, 0.5), segments=np.arange(rows))
    assert data["segments"]["total"] == rows
    assert data["segments"]["left_out"] == 50
    assert len(data["segments"]["names"]) == len(data["segments"]["rows"]) == 10_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": [0.1, math.nan]}, r"scores\[1\] is nan: scores must be finite"),
        ({"labels": [0, 2]}, r"labels\[1\] is 2\.0: labels must lie in \[0, 1\]"),
        ({"calibrated": [0.1, 1.5]}, r"calibrated\[1\] is 1\.5: calibrated must lie in \[0, 1\]"),
        ({"calibrated": [0.1]}, r"labels has 2 entries, calibrated has 1"),
        ({"sample_weight": [1, -1]}, r"sample_weight\[1\] is -1\.0: sample_weight must not be negative"),
        ({"sample_weight": [0, 0]}, r"scores has no entry of positive weight"),
        ({"segments": ["a"]}, r"segments has 1 entries, scores has 2"),
        ({"segments": [["a", "b"], ["c"]]}, r"segments\[1\] has 1 entries, scores has 2"),
        ({"segments": [1.5, 2.5]}, r"segments\[0\] is 1\.5; numbers must be whole to be keys"),
        ({"segments": {}}, r"segments has no columns"),
        (
            {"segments": ["a", "b"], "segment_names": ["x", "y"]},
            r"segment_names has 2 entries, segments has 1",
        ),
        ({"segment_names": "x"}, r"segment_names is given without segments"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scores": [0.1, 0.2], "labels": [0, 1], "calibrated": [0.3, 0.4]} | changes
    with pytest.raises(ValueError, match=message):
        report_data(**arguments)
