"""The audit: it finds what was put there, says so in words, and keeps quiet where nothing is wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from isofold.calibration import Audit, Calibrator, audit
from isofold.calibration.report import report_data
from isofold.cli.app import app


def made_up(seed: int, rows: int = 20_000, wrong: bool = True) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    carrier = random.choice(np.array(["AA", "B6", "DL", "UA", "WN"]), rows)
    hour = random.integers(5, 24, rows)
    age = random.normal(size=rows)
    age[random.random(rows) < 0.1] = np.nan
    score = random.random(rows) * 0.5 + 0.1
    rate = score.copy()
    if wrong:
        rate[(carrier == "B6") & (hour > 16)] += 0.15
        rate[np.isnan(age)] -= 0.08
    label = random.random(rows) < rate
    return {"score": score, "label": label, "carrier": carrier, "hour": hour, "age": age}


def features(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: data[name] for name in ("carrier", "hour", "age")}


def found_in(data: dict[str, np.ndarray], **settings: Any) -> Audit:
    return audit(data["score"], data["label"], features(data), **settings)


def test_finds_the_wrong_segments() -> None:
    data = made_up(0)
    found = found_in(data)
    worst = found.segments[0]
    assert "carrier = B6" in worst.name
    assert "hour > 16" in worst.name
    assert worst.z > 6
    assert worst.significant
    assert worst.predicted_over_observed < 0.8
    assert any("missing" in s.name and s.z < -3 and s.significant for s in found.segments)
    assert sum(s.rows for s in found.segments) == 10_000
    assert sum(s.search_rows for s in found.segments) == 10_000
    assert found.overall.rows == 10_000


def test_numbers_are_those_of_the_rows() -> None:
    data = made_up(1)
    held_out = np.arange(20_000) % 3 == 0
    found = found_in(data, held_out=held_out)
    place = found.locate(features(data))
    names = found.names(features(data))
    for k, segment in enumerate(found.segments):
        inside = (place == k) & held_out
        p, y = data["score"][inside], data["label"][inside].astype(float)
        assert segment.rows == inside.sum()
        assert segment.positives == y.sum()
        assert segment.predicted == pytest.approx(p.sum(), rel=1e-12)
        assert segment.z == pytest.approx((y - p).sum() / math.sqrt((p * (1 - p)).sum()), rel=1e-10)
        assert segment.p_value == pytest.approx(math.erfc(abs(segment.z) / math.sqrt(2)))
        assert segment.significant == (abs(segment.z) > found.z_threshold)
        assert segment.predicted_over_observed == segment.predicted / segment.positives
        assert set(names[place == k]) == {segment.name}


def test_right_predictions_are_seldom_called_wrong() -> None:
    alarms = sum(
        any(
            segment.significant
            for segment in found_in(made_up(seed, 4000, wrong=False), min_gain=0.1).segments
        )
        for seed in range(100, 200)
    )
    assert alarms <= 12  # at a level of 0.05; 13 or more have a probability below 0.002


def test_refit_by_segment_mends_it() -> None:
    data, later = made_up(2, 40_000), made_up(3, 40_000)
    found = found_in(data)
    curves = Calibrator().fit(data["score"], data["label"], segments=found.names(features(data)))
    mended = curves.predict(later["score"], segments=found.names(features(later)))
    before = audit(later["score"], later["label"], features(later), min_gain=0.0)
    after = audit(mended, later["label"], features(later), min_gain=0.0)
    assert max(abs(s.z) for s in before.segments) > 8
    assert max(abs(s.z) for s in after.segments) < 5


def test_order_of_the_rows_and_threads() -> None:
    data = made_up(4)
    held_out = np.arange(20_000) % 2 == 0
    order = np.random.default_rng(0).permutation(20_000)
    shuffled = {name: column[order] for name, column in data.items()}
    one = found_in(data, held_out=held_out, threads=1)
    other = found_in(shuffled, held_out=held_out[order], threads=2)
    assert one.segments == other.segments
    assert one.overall == other.overall


def test_weights_count_like_rows() -> None:
    data = made_up(5, 6000)
    held_out = np.arange(6000) % 2 == 0
    weights = np.random.default_rng(1).integers(0, 3, 6000).astype(float)
    found = found_in(data, sample_weight=weights, held_out=held_out)
    inside = held_out & (weights > 0)
    assert found.overall.rows == inside.sum()
    # A weight of two is one observation that counts twice, not two.
    w, p, y = (a[inside] for a in (weights, data["score"], data["label"]))
    assert found.overall.z == pytest.approx((w * (y - p)).sum() / math.sqrt((w * w * p * (1 - p)).sum()))


@pytest.mark.parametrize("kind", ["frame", "table", "matrix"])
def test_kinds_of_features(kind: str) -> None:
    data = made_up(6, 8000)
    columns: Any = {"carrier": data["carrier"], "hour": data["hour"], "age": data["age"]}
    given: Any = columns
    if kind == "frame":
        given = pd.DataFrame(columns)
    elif kind == "table":
        given = pa.table({**columns, "age": pa.array(data["age"], from_pandas=True)})
    else:
        codes = np.unique(data["carrier"], return_inverse=True)[1]
        matrix = np.column_stack([codes, data["hour"], data["age"]]).astype(float)
        one = audit(data["score"], data["label"], matrix, categorical=["feature 0"])
        assert "feature 0 = 1" in one.segments[0].name
        return
    assert (
        audit(data["score"], data["label"], given).segments
        == audit(data["score"], data["label"], columns).segments
    )


def test_certain_predictions() -> None:
    scores = np.repeat([0.0, 1.0], 500)
    right = audit(scores, scores, {"x": np.arange(1000)})
    assert right.overall.z == 0
    wrong = audit(scores, 1 - scores, {"x": np.arange(1000)})
    assert json.dumps(wrong.as_dict(), allow_nan=False)


def test_certain_predictions_that_are_wrong_are_found() -> None:
    random = np.random.default_rng(0)
    kind = random.choice(np.array(["x", "y", "z"]), 6000)
    scores = np.where(kind == "x", 0.0, random.random(6000))
    labels = random.random(6000) < np.where(kind == "x", 0.3, scores)
    found = audit(scores, labels, {"kind": kind})
    assert [(s.name, s.z, s.significant) for s in found.segments[:1]] == [("kind = x", math.inf, True)]
    assert abs(found.segments[1].z) < 3
    certain = audit(np.zeros(6000), kind == "x", {"kind": kind})
    assert [s.name for s in certain.segments] == ["kind = x", "kind != x"]


def test_names_tell_large_numbers_apart() -> None:
    random = np.random.default_rng(0)
    time = 1.7e9 + np.arange(8000)
    scores = random.random(8000)
    labels = random.random(8000) < scores * np.array([1.0, 0.3, 1.0, 0.6])[np.arange(8000) // 2000]
    found = audit(scores, labels, {"time": time})
    names = [segment.name for segment in found.segments]
    assert len(names) > 2
    assert len(set(names)) == len(names)
    assert len(set(found.names({"time": time}))) == len(names)


def test_a_level_of_next_to_nothing() -> None:
    found = audit([0.5] * 10, [0, 1] * 5, {"x": np.arange(10)}, level=1e-300)
    assert 37 < found.z_threshold < 38


def test_numbers_stay_numbers() -> None:
    scores = np.full(1000, 0.5)
    found = audit(scores, np.arange(1000) > 500, {"x": np.arange(1000.0)})
    with pytest.raises(TypeError, match=r"features\['x'\] must hold numbers, as it did in the audit"):
        found.locate({"x": ["1", "2"]})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scores": [0.5, 1.5]}, ValueError, r"scores\[1\] is 1.5: scores must lie in \[0, 1\]"),
        ({"labels": [0, 2]}, ValueError, r"labels\[1\] is 2"),
        ({"features": {"x": [1.0]}}, ValueError, r"features\['x'\] has 1 entries, scores has 2"),
        ({"features": {"x": [1.0, np.inf]}}, ValueError, r"features\['x'\]\[1\] is inf"),
        ({"features": {}}, ValueError, "no columns"),
        ({"features": 3}, TypeError, "features must be a mapping"),
        ({"categorical": ["y"]}, ValueError, "categorical names 'y'"),
        ({"held_out": 1.0}, ValueError, "held_out must lie in"),
        ({"held_out": [True]}, ValueError, "held_out must be a share, or 2 booleans"),
        ({"held_out": [True, True]}, ValueError, "held_out leaves no rows"),
        ({"max_depth": 0}, ValueError, "max_depth must be at least 1"),
        ({"level": 0}, ValueError, "level must lie in"),
        ({"min_gain": -1.0}, ValueError, "min_gain"),
        ({"bins": 5000}, ValueError, "bins must be at most 1024"),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"scores": [0.5, 0.2], "labels": [0, 1], "features": {"x": [1.0, 2.0]}, **arguments}
    with pytest.raises(error, match=message):
        audit(given.pop("scores"), given.pop("labels"), given.pop("features"), **given)


def test_the_report_has_a_section() -> None:
    data = made_up(7, 4000)
    found = found_in(data)
    shown = report_data(data["score"], data["label"], data["score"], audit=found)
    assert shown["audit"] == found.as_dict()
    assert report_data(data["score"], data["label"], data["score"])["audit"] is None


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_the_command(tmp_path: Path, format_: str) -> None:
    data = made_up(8, 20_000)
    table = pa.table({**data, "age": pa.array(data["age"], from_pandas=True)})
    path = tmp_path / f"scored.{format_}"
    if format_ == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    command = ["audit", str(path), "--score", "score", "--label", "label"]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["segments"] == found_in(data).as_dict()["segments"]
    assert printed["rows"] == 20_000
    report = tmp_path / "audit.html"
    result = CliRunner().invoke(
        app,
        [*command, "--feature", "carrier", "--feature", "hour", "--out", str(report)],
        env={"COLUMNS": "200"},
    )
    assert result.exit_code == 0, result.output
    assert "carrier = B6 and hour > 16 *" in result.stdout or "hour > 16 and carrier = B6 *" in result.stdout
    page = report.read_text("utf-8")
    assert "<h2>Audit</h2>" in page
    assert "carrier = B6" in page
    assert "hour &gt; 16" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--feature", "nothing"], "no column 'nothing'"),
        (["--feature", "hour", "--feature", "hour"], "--feature names a column twice"),
        (["--held-out", "2"], "held_out must lie in (0, 1)"),
        (["--score", "hour"], "scores to audit are rates in [0, 1]"),
    ],
)
def test_faults_of_the_command(tmp_path: Path, options: list[str], message: str) -> None:
    path = tmp_path / "scored.parquet"
    pyarrow.parquet.write_table(pa.table(made_up(9, 500)), path)
    result = CliRunner().invoke(app, ["audit", str(path), "--score", "score", "--label", "label", *options])
    assert result.exit_code == 2
    assert message in result.stderr
