"""Segments, aggregated rows, many files, missing values, JSON and reports on the command line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from isofold.calibration import Calibrator, brier_decomposition
from isofold.cli.app import app


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refuse(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("isofold: ").rstrip("\n")


def made_up(rows: int = 6000) -> Any:
    random = np.random.default_rng(4)
    score = random.random(rows).round(3)
    country = random.choice(["AT", "DE", "", "rare"], rows, p=[0.5, 0.4, 0.097, 0.003])
    return pa.table(
        {
            "score": score,
            "clicked": (random.random(rows) < score**2).astype(np.int64),
            "country": pa.array([name or None for name in country.tolist()]),
            "slot": pa.array(random.integers(8, 12, rows)),
            "mobile": pa.array(random.random(rows) < 0.5),
        }
    )


def write(table: Any, path: Path) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(quoting_style="none"))
    else:
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1700)
    return path


def calibrated(path: Path) -> Any:
    reader = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.parquet.read_table
    return reader(path)["calibrated"].to_numpy().astype(float)


NAMES = ["country", "slot", "mobile"]
SEGMENTS = [option for name in NAMES for option in ("--segment", name)]


def expected_curves(table: Any, min_rows: int = 100) -> Calibrator:
    curves = Calibrator(min_rows=min_rows)
    curves.fit(table["score"].to_numpy(), table["clicked"].to_numpy(), segments=table.select(NAMES))
    curves.score_name = "score"
    return curves


def test_curves_of_segments(tmp_path: Path) -> None:
    table = made_up()
    data, curves, out = write(table, tmp_path / "a.parquet"), tmp_path / "c.json", tmp_path / "o.parquet"
    columns = ["--score", "score", "--label", "clicked", "--min-rows", 100]
    shown = succeed("calibrate", data, *columns, *SEGMENTS, "--out", curves)
    expected = expected_curves(table)
    assert curves.read_text() == expected.to_json()
    own = sum(segment.served_by == "own_curve" for segment in expected.segments_)
    assert 10 < own < len(expected.segments_)
    assert f"own curves for {own} of {len(expected.segments_)} segments by country, slot, mobile" in shown
    null = sum(name is None for name in table["country"].to_pylist())
    assert f"{null} rows without a segment" in shown

    shown = succeed("apply", curves, data, "--out", out, "--label", "clicked")
    predicted = expected.predict(table["score"].to_numpy(), table.select(NAMES))
    assert oracle.same_bits(calibrated(out), predicted)
    assert f"{null} rows without a segment" in shown
    terms = brier_decomposition(table["clicked"].to_numpy(), predicted)
    assert f"{terms.miscalibration:.6f}" in shown


@pytest.mark.parametrize("fitted", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("applied", ["parquet", "csv"])
def test_formats_may_differ(tmp_path: Path, fitted: str, applied: str) -> None:
    """A CSV file has no types: its 10 is the number 10 of another file, and its empty field is null."""
    table = made_up()
    data = write(table, tmp_path / f"a.{fitted}")
    columns = ["--score", "score", "--label", "clicked", "--min-rows", 100, *SEGMENTS[:4]]
    succeed("calibrate", data, *columns, "--out", tmp_path / "c.json")
    out = tmp_path / f"o.{applied}"
    found = succeed(
        "apply", tmp_path / "c.json", write(table, tmp_path / f"b.{applied}"), "--out", out, "--json"
    )
    curves = Calibrator(min_rows=100)
    keys = table.select(["country", "slot"])
    curves.fit(table["score"].to_numpy(), table["clicked"].to_numpy(), segments=keys)
    assert oracle.same_bits(calibrated(out), curves.predict(table["score"].to_numpy(), keys))
    assert json.loads(found)["served"]["unseen"] == 0


def test_booleans_in_csv(tmp_path: Path) -> None:
    curves = Calibrator(min_rows=1).fit(
        [0, 1, 0, 1], [0, 1, 1, 0], segments={"b": [True, True, False, False]}
    )
    curves.score_name = "score"
    curves.save(tmp_path / "c.json")
    (tmp_path / "a.csv").write_text("score,b\n0,true\n0,True\n0,FALSE\n0,\n0,yes\n")
    found = succeed("apply", tmp_path / "c.json", tmp_path / "a.csv", "--out", tmp_path / "o.csv", "--json")
    assert calibrated(tmp_path / "o.csv").tolist() == [0.0, 0.0, 0.5, 0.5, 0.5]
    served = {"own_curve": 3, "null": 1, "unseen": 1, "single_class": 0, "under_min_rows": 0}
    assert json.loads(found)["served"] == served


def test_keys_that_sort_differently_as_text(tmp_path: Path) -> None:
    ids = [9, 9, 10, 10, 100, 100]
    curves = Calibrator(min_rows=1).fit([0, 1] * 3, [0, 1, 0.25, 0.5, 0.5, 0.75], segments={"id": ids})
    curves.score_name = "score"
    curves.save(tmp_path / "c.json")
    (tmp_path / "a.csv").write_text("score,id\n0,9\n0,10\n0,100\n0,009\n")
    succeed("apply", tmp_path / "c.json", tmp_path / "a.csv", "--out", tmp_path / "o.csv")
    assert calibrated(tmp_path / "o.csv").tolist() == [0.0, 0.25, 0.5, 0.25]


def test_segment_columns_may_be_named_anew(tmp_path: Path) -> None:
    curves = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments=["a", "a"])
    curves.score_name = "score"
    curves.save(tmp_path / "c.json")
    data = write(pa.table({"score": [0.5], "land": ["a"]}), tmp_path / "a.parquet")
    apply = ["apply", tmp_path / "c.json", data, "--out", tmp_path / "o.parquet"]
    assert refuse(*apply).endswith("the curves name no segment columns; say which with --segment")
    assert refuse(*apply, "--segment", "land", "--segment", "score").endswith(
        "the curves have 1 segment column, --segment names 2"
    )
    found = json.loads(succeed(*apply, "--segment", "land", "--json"))
    assert found["served"]["own_curve"] == 1


def test_aggregated_rows(tmp_path: Path) -> None:
    table = pa.table(
        {
            "score": [0.1, 0.2, 0.3, 0.2],
            "clicks": [1, 30, 20, 5],
            "views": [50, 100, 100, 10],
            "country": ["AT", "AT", "AT", "DE"],
        }
    )
    data, curves = write(table, tmp_path / "a.parquet"), tmp_path / "c.json"
    columns = ["--score", "score", "--positives", "clicks", "--total", "views", "--segment", "country"]
    found = json.loads(succeed("calibrate", data, *columns, "--min-rows", 100, "--out", curves, "--json"))
    expected = Calibrator(min_rows=100).fit_aggregated(
        *(table[name].to_numpy() for name in ("score", "clicks", "views")), table.select(["country"])
    )
    expected.score_name = "score"
    assert curves.read_text() == expected.to_json()
    assert found["segments"]["own_curve"] == {"segments": 1, "rows": 250.0}
    assert found["segments"]["served_by_global"]["under_min_rows"] == {"segments": 1, "rows": 10.0}
    # The metrics are those of the 260 rows that these four stand for.
    scores = np.repeat(table["score"].to_numpy(), table["views"].to_numpy())
    labels = np.concatenate(
        [
            [1.0] * clicks + [0.0] * (views - clicks)
            for clicks, views in zip([1, 30, 20, 5], [50, 100, 100, 10], strict=True)
        ]
    )
    before = found["metrics_on_training_rows"]["before"]
    assert before["brier"] == pytest.approx(brier_decomposition(labels, scores).score, rel=1e-14)


def test_aggregated_faults(tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("score,clicks,views\n0.1,1,2\n0.2,3,2\n")
    out = ["--out", tmp_path / "c.json"]
    both = ["calibrate", data, "--score", "score", "--positives", "clicks", "--total", "views", *out]
    assert refuse(*both) == f"{data}: column 'clicks', row 2: 3.0, more than the total of 2.0"
    data.write_text("score,clicks,views\n0.1,1,2\n0.2,-3,2\n")
    assert refuse(*both).startswith(f"{data}: column 'clicks', row 2: -3.0, but a number of positives must")
    data.write_text("score,clicks,views\n0.1,0,0\n")
    assert refuse(*both) == f"{data}: column 'views': every total is 0"
    assert refuse("calibrate", data, "--score", "score", *out) == (
        "no outcomes: give --label COLUMN (0 or 1), or --positives and --total"
    )
    wanted = "outcomes are either --label, with --weight if wanted, or --positives and --total"
    for options in (
        ["--positives", "clicks"],
        ["--label", "clicks", "--total", "views"],
        ["--positives", "clicks", "--total", "views", "--weight", "views"],
        ["--label", "clicks", "--positives", "clicks", "--total", "views"],
    ):
        assert refuse("calibrate", data, "--score", "score", *options, *out) == wanted
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("how", ["folder", "pattern"])
def test_many_files_are_read_like_one(tmp_path: Path, suffix: str, how: str) -> None:
    table = made_up()
    folder = tmp_path / "days"
    for day, start in enumerate(range(0, len(table), 2500)):
        (folder if how == "folder" else folder / f"day={day}").mkdir(parents=True, exist_ok=True)
        where = folder if how == "folder" else folder / f"day={day}"
        write(table.slice(start, 2500), where / f"part{day}.{suffix}")
    (folder / "_SUCCESS").write_text("")
    path = folder if how == "folder" else folder / "**" / f"*.{suffix}"
    columns = ["--score", "score", "--label", "clicked", "--min-rows", 100, "--segment", "country"]
    succeed("calibrate", path, *columns, "--out", tmp_path / "many.json")
    whole = write(table, tmp_path / f"whole.{suffix}")
    succeed("calibrate", whole, *columns, "--out", tmp_path / "one.json")
    assert (tmp_path / "many.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    target = "csv" if suffix == "csv" else "parquet"
    succeed("apply", tmp_path / "one.json", path, "--out", tmp_path / f"many.{target}")
    succeed("apply", tmp_path / "one.json", whole, "--out", tmp_path / f"one.{target}")
    assert (tmp_path / f"many.{target}").read_bytes() == (tmp_path / f"one.{target}").read_bytes()


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    data = write(pa.table({"score": [0.0, 1.0], "label": [0, 1]}), tmp_path / "a[1].parquet")
    succeed("calibrate", data, "--score", "score", "--label", "label", "--out", tmp_path / "c.json")


GAPS = "score,label,weight\n0.1,0,1\n,1,1\n0.3,nan,1\n0.4,1,\nNaN, ,1\n0.6,1,2\n"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_missing_values_are_errors_or_dropped(tmp_path: Path, suffix: str) -> None:
    table = pa.table(
        {
            "score": [0.1, None, 0.3, 0.4, float("nan"), 0.6],
            "label": pa.array([0, 1, None, 1, None, 1], pa.int8()),
            "weight": pa.array([1.0, 1.0, 1.0, None, 1.0, 2.0], pa.float32()),
        }
    )
    data = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        data.write_text(GAPS)
    else:
        write(table, data)
    out = tmp_path / "c.json"
    columns = ["--score", "score", "--label", "label", "--weight", "weight"]
    assert refuse("calibrate", data, *columns, "--out", out) == (
        f"{data}: column 'score', row 2: no value; a score is needed in every row "
        "(--on-missing drop leaves such rows out)"
    )
    shown = succeed("calibrate", data, *columns, "--out", out, "--on-missing", "drop")
    assert "4 rows dropped: 2 without 'score', 2 without 'label', 1 without 'weight'" in shown
    expected = Calibrator().fit([0.1, 0.6], [0, 1], [1, 2])
    expected.score_name = "score"
    assert out.read_text() == expected.to_json()

    target = tmp_path / f"o.{'csv' if suffix == 'csv' else 'parquet'}"
    found = json.loads(
        succeed("apply", out, data, *columns, "--out", target, "--on-missing", "drop", "--json")
    )
    assert found["rows"] == 4
    assert found["dropped"] == {"rows": 2, "by_column": {"score": 2}}
    assert found["rows_left_out_of_metrics"] == 2
    assert calibrated(target).tolist() == expected.predict([0.1, 0.3, 0.4, 0.6]).tolist()
    metrics = found["metrics"]["after"]
    assert metrics["brier"] == brier_decomposition([0, 1], expected.predict([0.1, 0.6])).score


def test_dropping_everything_is_an_error(tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("score,label\n,1\n0.5,\n")
    options = ["--score", "score", "--label", "label", "--on-missing", "drop", "--out", tmp_path / "c.json"]
    assert refuse("calibrate", data, *options) == f"{data}: every row misses a value, so all would be dropped"
    data.write_text("score,label\nx,1\n0.5,\n")
    assert refuse("calibrate", data, *options) == f"{data}: column 'score', row 1: 'x' is not a number"
    data.write_text("score,label\n0.5,2\n0.5,\n")
    assert refuse("calibrate", data, *options).startswith(
        f"{data}: column 'label', row 1: 2.0, but a label is 0 or 1"
    )
    data.write_text("score,label\ninf,1\n0.5,\n")
    assert refuse("calibrate", data, *options).startswith(
        f"{data}: column 'score', row 1: inf, but a score must"
    )


def test_one_json_object_for_machines(tmp_path: Path) -> None:
    table = made_up()
    data, curves = write(table, tmp_path / "a.parquet"), tmp_path / "c.json"
    shown = succeed("calibrate", data, "--score", "score", "--label", "clicked", "--out", curves, "--json")
    assert shown.count("\n") == 1
    found = json.loads(shown)
    scores, labels = table["score"].to_numpy(), table["clicked"].to_numpy()
    curve = Calibrator().fit(scores, labels)
    assert found["rows"] == 6000
    assert found["knots"] == len(curve.knots_x_)
    assert found["segments"] is None
    assert found["dropped"] == {"rows": 0, "by_column": {}}
    terms = brier_decomposition(labels, scores)
    before = found["metrics_on_training_rows"]["before"]
    assert (before["brier"], before["mcb"], before["dsc"], before["unc"]) == tuple(terms)
    wrong = pa.table({"score": [3.0, -1.0], "clicked": [1, 0]})
    write(wrong, tmp_path / "b.parquet")
    shown = succeed(
        "apply",
        curves,
        tmp_path / "b.parquet",
        "--out",
        tmp_path / "o.parquet",
        "--label",
        "clicked",
        "--json",
    )
    assert json.loads(shown)["metrics"]["before"] is None


def test_reports(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    data, curves = write(made_up(), tmp_path / "a.parquet"), tmp_path / "c.json"
    columns = ["--score", "score", "--label", "clicked", "--segment", "country", "--min-rows", 100]
    succeed("calibrate", data, *columns, "--out", curves, "--report", tmp_path / "one.html")
    options = ["--label", "clicked", "--report", tmp_path / "two.html"]
    succeed("apply", curves, data, "--out", tmp_path / "o.parquet", *options)
    succeed("report", curves, data, "--label", "clicked", "--out", tmp_path / "three.html")
    for name in ("one", "two", "three"):
        page = (tmp_path / f"{name}.html").read_text()
        assert page.startswith("<!")
        for key in ("AT", "DE", "rare", "country"):
            assert key in page
    assert refuse(
        "apply", curves, data, "--out", tmp_path / "o.parquet", "--report", tmp_path / "x.html"
    ) == ("--report needs --label as well")
    assert sorted(os.listdir(tmp_path)) == [
        "a.parquet",
        "c.json",
        "o.parquet",
        "one.html",
        "three.html",
        "two.html",
    ]


KEY_FAULTS: dict[str, tuple[Any, str]] = {
    "dates": (pa.array([1, 2, 3], pa.date32()), r"column 'key' holds date32\[day\]; keys are strings, .*"),
    "lists": (pa.array([[1], [2], [3]]), r"column 'key' holds list<.*>; keys are strings, .*"),
    "fractions": (
        pa.array([1.0, 2.0, 2.5]),
        r"column 'key', row 3: is 2\.5; numbers must be whole to be keys",
    ),
    "wide integers": (
        pa.array([1, 2**64 - 1, 3], pa.uint64()),
        "column 'key', row 2: is 18446744073709551615, which does not fit in 64 bits",
    ),
    "long text": (pa.array(["a", "b" * 1001, "c"]), "column 'key', row 2: has more than 1,000 characters"),
}


@pytest.mark.parametrize("name", KEY_FAULTS)
def test_keys_that_are_none(tmp_path: Path, name: str) -> None:
    keys, message = KEY_FAULTS[name]
    data = write(
        pa.table({"score": [0.1, 0.2, 0.3], "label": [0, 1, 1], "key": keys}), tmp_path / "a.parquet"
    )
    options = ["--score", "score", "--label", "label", "--segment", "key", "--out", tmp_path / "c.json"]
    assert re.fullmatch(f"{re.escape(str(data))}: {message}", refuse("calibrate", data, *options))
    curves = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments={"key": [1, 1]})
    curves.score_name = "score"
    curves.save(tmp_path / "c.json")
    if name != "long text":
        out = ["--out", tmp_path / "o.parquet"]
        assert re.fullmatch(
            f"{re.escape(str(data))}: {message}", refuse("apply", tmp_path / "c.json", data, *out)
        )


def test_segment_options_that_do_not_fit(tmp_path: Path) -> None:
    data = write(made_up(), tmp_path / "a.parquet")
    columns = ["--score", "score", "--label", "clicked", "--out", tmp_path / "c.json"]
    assert refuse("calibrate", data, *columns, "--segment", "land").startswith(f"{data}: no column 'land'; ")
    twice = ["--segment", "slot", "--segment", "slot"]
    assert refuse("calibrate", data, *columns, *twice) == "--segment names a column twice"
    assert invoke("calibrate", data, *columns, "--min-rows", 0).exit_code == 2
    curves = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments={"slot": [True, False]})
    curves.score_name = "score"
    curves.save(tmp_path / "c.json")
    assert refuse("apply", tmp_path / "c.json", data, "--out", tmp_path / "o.parquet") == (
        f"{data}: column 'slot' holds int64, the curves' keys are booleans"
    )
