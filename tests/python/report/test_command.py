"""`isofold report`: what the page says is what the curves and the metrics say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from isofold.calibration import Calibrator
from isofold.calibration.report import report_data
from isofold.cli.app import app
from isofold.cli.keys import served_by


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def made_up(rows: int = 6000, seed: int = 5) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    score = random.random(rows).round(3)
    country = np.array(["A", "B", "C"])[random.integers(0, 3, rows)]
    rate = score ** np.select([country == "A", country == "B"], [1.0, 2.0], 4.0)
    return {
        "score": score,
        "clicked": (random.random(rows) < rate).astype(np.int64),
        "times": random.integers(0, 4, rows),
        "country": country,
        "device": random.integers(0, 2, rows),
    }


def write(columns: dict[str, Any], path: Path) -> Path:
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(pa.table(columns), path)
    else:
        pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=900)
    return path


def expected_data(calibrator: Calibrator, columns: dict[str, Any], title: str, **keywords: Any) -> Any:
    names = [column.name for column in calibrator.segment_columns_]
    keys = {str(name): columns[str(name)] for name in names} or None
    rates = calibrator.predict(columns["score"], segments=keys)
    if keys is not None:
        located = calibrator.locate(keys, len(rates))
        keywords = {"served_by": served_by(calibrator, located)} | keywords
    data = report_data(
        columns["score"], columns["clicked"], rates, title=title, **({"segments": keys} | keywords)
    )
    return json.loads(json.dumps(data))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_page_of_curves_by_segment(tmp_path: Path, parse: Any, suffix: str) -> None:
    columns = made_up()
    file, curves, page = (
        write(made_up(seed=6), tmp_path / f"new{suffix}"),
        tmp_path / "c.json",
        tmp_path / "r.html",
    )
    keys = {"country": columns["country"], "device": columns["device"]}
    calibrator = Calibrator(min_rows=100).fit(columns["score"], columns["clicked"], segments=keys)
    calibrator.score_name = "score"
    calibrator.save(curves)
    assert len(calibrator.segments_) == 6
    result = invoke("report", curves, file, "--label", "clicked", "--weight", "times", "--out", page)
    assert result.exit_code == 0, result.output
    assert f"{page}: the report on 6,000 rows" in result.stdout.replace("\n", "")
    new = made_up(seed=6)
    found = json.loads(parse(page.read_text("utf-8")).data)
    assert found == expected_data(calibrator, new, str(file), sample_weight=new["times"])
    assert found["segments"]["columns"] == ["country", "device"]


def test_page_of_one_curve_broken_down_by_segment(tmp_path: Path, parse: Any) -> None:
    columns = made_up()
    file, curve, page = write(columns, tmp_path / "f.parquet"), tmp_path / "c.json", tmp_path / "r.html"
    calibrator = Calibrator().fit(columns["score"], columns["clicked"])
    calibrator.save(curve)
    options = ("--score", "score", "--label", "clicked", "--out", page, "--title", "<b>mine</b>", "--json")
    assert invoke("report", curve, file, *options).exit_code == 0
    assert json.loads(parse(page.read_text("utf-8")).data) == expected_data(
        calibrator, columns, "<b>mine</b>"
    )
    result = invoke("report", curve, file, *options, "--segment", "country")
    assert result.exit_code == 0, result.output
    found = json.loads(parse(page.read_text("utf-8")).data)
    segments = {"country": columns["country"]}
    assert found == expected_data(calibrator, columns, "<b>mine</b>", segments=segments)
    summary = json.loads(result.stdout)
    assert summary["command"] == "report"
    assert summary["rows"] == 6000
    for name, value in summary["metrics"]["after"].items():
        assert found["metrics"]["after"][name] == value


def test_rows_that_miss_a_value(tmp_path: Path, parse: Any) -> None:
    columns = made_up(300)
    labels: list[int | None] = columns["clicked"].tolist()
    labels[7] = None
    file = write(columns | {"clicked": pa.array(labels)}, tmp_path / "f.parquet")
    curve, page = tmp_path / "c.json", tmp_path / "r.html"
    calibrator = Calibrator().fit(columns["score"], columns["clicked"])
    calibrator.save(curve)
    options = ("--score", "score", "--label", "clicked", "--segment", "country", "--out", page)
    result = invoke("report", curve, file, *options)
    assert result.exit_code == 2
    assert "column 'clicked', row 8: no value" in result.stderr
    assert not page.exists()
    result = invoke("report", curve, file, *options, "--on-missing", "drop")
    assert result.exit_code == 0, result.output
    assert "1 row dropped: 1 without 'clicked'" in result.stdout
    kept = {name: np.delete(values, 7) for name, values in columns.items()}
    found = json.loads(parse(page.read_text("utf-8")).data)
    segments = {"country": kept["country"]}
    assert found == expected_data(calibrator, kept, str(file), segments=segments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--label", "nothing"), "no column 'nothing'"),
        (("--label", "country"), "column 'country', row 1: 'B' is not a number; a label is 0 or 1"),
        (("--label", "times"), "column 'times', row"),
        (("--label", "clicked", "--score", "gone"), "no column 'gone'"),
        (("--label", "clicked", "--segment", "gone"), "no column 'gone'"),
        (("--label", "clicked", "--segment", "country", "--segment", "country"), "names a column twice"),
        (("--label", "clicked", "--weight", "none"), "column 'none': every weight is 0"),
        (("--label", "clicked", "--on-missing", "guess"), "--on-missing"),
    ],
)
def test_faults(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    columns = made_up(300)
    file = write(columns | {"none": np.zeros(300)}, tmp_path / "f.parquet")
    curve, page = tmp_path / "c.json", tmp_path / "r.html"
    calibrator = Calibrator().fit(columns["score"], columns["clicked"])
    calibrator.score_name = "score"
    calibrator.save(curve)
    result = invoke("report", curve, file, *options, "--out", page)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["c.json", "f.parquet"]


def test_no_room_for_the_page(tmp_path: Path) -> None:
    columns = made_up(300)
    file, curve = write(columns, tmp_path / "f.parquet"), tmp_path / "c.json"
    Calibrator().fit(columns["score"], columns["clicked"]).save(curve)
    out = tmp_path / "nowhere" / "r.html"
    result = invoke("report", curve, file, "--score", "score", "--label", "clicked", "--out", out)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert f"{out}: cannot be written: the folder {out.parent} does not exist" in result.stderr
