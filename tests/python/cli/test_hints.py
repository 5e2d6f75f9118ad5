"""Slips of a first user: what is understood, what is warned of, and what an error says to do instead."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from isofold.calibration import Calibrator
from isofold.cli.app import app
from isofold.cli.wording import counted, near_miss


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def calibrate(folder: Path, content: str, *options: object) -> Result:
    (folder / "rows.csv").write_text(content)
    columns = ("--score", "score", "--label", "label", "--out", folder / "c.json")
    return invoke("calibrate", folder / "rows.csv", *columns, *options)


def fitted(folder: Path, least: float = 0.0, greatest: float = 1.0) -> Path:
    curve = Calibrator().fit([least, greatest], [0, 1])
    curve.score_name = "score"
    curve.save(folder / "c.json")
    return folder / "c.json"


@pytest.mark.parametrize("spelling", ["True False", "true false", "TRUE FALSE", "1 0", "1.0 False"])
@pytest.mark.parametrize("kind", ["csv", "string", "large_string", "dictionary"])
def test_labels_that_are_true_and_false(tmp_path: Path, spelling: str, kind: str) -> None:
    yes, no = spelling.split()
    scores, labels = [0.1, 0.2, 0.3, 0.4], [no, yes, no, yes]
    if kind == "csv":
        data = tmp_path / "a.csv"
        data.write_text("score,label\n" + "".join(map("{},{}\n".format, scores, labels)))
    else:
        column = pa.array(labels)
        column = column.cast(pa.large_string()) if kind == "large_string" else column
        column = column.dictionary_encode() if kind == "dictionary" else column
        data = tmp_path / "a.parquet"
        pyarrow.parquet.write_table(pa.table({"score": scores, "label": column}), data)
    out = tmp_path / "c.json"
    result = invoke("calibrate", data, "--score", "score", "--label", "label", "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    expected = Calibrator().fit(scores, [0, 1, 0, 1])
    assert Calibrator.load(out).knots_y_.tolist() == expected.knots_y_.tolist()


@pytest.mark.parametrize("missing", ["", " ", "NA", "N/A", "NaN", "nan", "null", "NULL"])
def test_spellings_of_a_missing_value(tmp_path: Path, missing: str) -> None:
    content = f"score,label\n0.1,0\n{missing},1\n0.3,{missing}\n0.4,1\n"
    result = calibrate(tmp_path, content)
    assert result.stderr == (
        f"isofold: {tmp_path}/rows.csv: column 'score', row 2: no value; a score is needed in every row "
        "(--on-missing drop leaves such rows out)\n"
    )
    result = calibrate(tmp_path, content, "--on-missing", "drop", "--json")
    assert json.loads(result.stdout)["dropped"] == {"rows": 2, "by_column": {"score": 1, "label": 1}}


def test_a_segment_called_na_stays_one(tmp_path: Path) -> None:
    """Namibia's code: in a column of keys only an empty field is null."""
    result = calibrate(
        tmp_path,
        "score,label,country\n0.1,0,NA\n0.2,1,NA\n0.3,1,\n",
        *("--segment", "country", "--min-rows", 1, "--json"),
    )
    assert json.loads(result.stdout)["segments"]["own_curve"] == {"segments": 1, "rows": 2}


@pytest.mark.parametrize("command", ["apply", "report"])
def test_scores_in_other_units(tmp_path: Path, command: str) -> None:
    curve = fitted(tmp_path, 0.125, 0.875)
    data = tmp_path / "rows.csv"
    data.write_text("score,label\n12.5,1\n50,0\n,0\n0.5,1\n87.5,1\n")
    out = tmp_path / ("o.csv" if command == "apply" else "o.html")
    options = ("--label", "label", "--on-missing", "drop", "--json", "--out", out)
    result = invoke(command, curve, data, *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outside_fitted_range"] == 3
    assert result.stderr == (
        f"isofold: warning: {data}: 3 of 4 scores lie outside the fitted range 0.125 to 0.875, where the "
        "curve is flat: other units?\n"
    )
    data.write_text("score,label\n12.5,1\n0.125,0\n0.875,1\n0,1\n")
    result = invoke(command, curve, data, *options)
    assert json.loads(result.stdout)["outside_fitted_range"] == 2
    assert result.stderr == ""


def test_several_segment_columns_in_one_option(tmp_path: Path) -> None:
    result = calibrate(tmp_path, "score,label,region,amount\n0.1,0,a,1\n", "--segment", "region,amount")
    assert result.stderr == (
        f"isofold: {tmp_path}/rows.csv: no column 'region,amount' (one column an option: repeat --segment, "
        "--segment region --segment amount); the file has 'score', 'label', 'region', 'amount'\n"
    )


def test_near_misses() -> None:
    names = ["Your Score", "is_fraud", "region"]
    assert near_miss("your_score", names) == "Your Score"
    assert near_miss("is_fruad", names) == "is_fraud"
    assert near_miss("amount", names) is None


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1000)] == ["0 rows", "1 row", "2 rows", "1,000 rows"]


def test_warnings_about_outcomes(tmp_path: Path) -> None:
    rows = f"{tmp_path}/rows.csv"
    for label, missing in ((0, "positives"), (1, "negatives")):
        result = calibrate(tmp_path, f"score,label\n0.1,{label}\n0.2,{label}\n")
        assert result.exit_code == 0
        assert result.stderr == f"isofold: warning: {rows}: no {missing}: every label is {label}\n"
    falling = "score,label\n0.1,1\n0.2,1\n0.3,0\n0.4,0\n"
    result = calibrate(tmp_path, falling)
    assert result.stderr == (
        "isofold: warning: the curve is flat (DSC 0); if the rate falls as scores rise, calibrate with "
        "--decreasing\n"
    )
    assert calibrate(tmp_path, falling, "--decreasing").stderr == ""
    data = tmp_path / "rows.csv"
    result = invoke("calibrate", data, "--score", "label", "--label", "label", "--out", tmp_path / "c.json")
    assert result.stderr == "isofold: warning: column 'label' is given as --score and as --label\n"


def test_infinite_losses_name_their_remedy(tmp_path: Path) -> None:
    curve = fitted(tmp_path)
    data = tmp_path / "rows.csv"
    data.write_text("score,label\n0,1\n1,1\n0.5,0\n")
    apply = ("apply", curve, data, "--label", "label", "--out", tmp_path / "o.csv")
    assert "after: 1 row went against a rate of 0 or 1" in invoke(*apply).stdout
    assert "--floor and --ceiling" in invoke(*apply).stdout
    data.write_text("score,label\n0,0\n1,1\n0.5,0\n")
    assert "--floor" not in invoke(*apply).stdout


def test_stray_files_of_a_folder_are_skipped(tmp_path: Path) -> None:
    curve, folder = fitted(tmp_path), tmp_path / "rows"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("score\n0.5\n")
    (folder / "README.txt").write_text("x")
    result = invoke("apply", curve, folder, "--out", tmp_path / "o.csv")
    assert result.exit_code == 0
    assert result.stderr == (
        f"isofold: warning: {folder}: 1 file of no known format skipped: {folder}/README.txt\n"
    )
    assert (tmp_path / "o.csv").read_text() == "score,calibrated\n0.5,0.5\n0.5,0.5\n"


def test_swapped_arguments(tmp_path: Path) -> None:
    curve, data = fitted(tmp_path), tmp_path / "rows.csv"
    data.write_text("score\n0.5\n")
    result = invoke("apply", data, curve, "--out", tmp_path / "o.csv")
    assert result.exit_code == 2
    assert result.stderr.endswith("; the curve file comes first, then the rows\n")
    assert result.stderr.count("\n") == 1


def test_what_calibrate_says(tmp_path: Path) -> None:
    content = "score,label,s\n" + "0.1,0,a\n0.9,1,a\n" * 5 + "0.1,0,b\n0.9,1,b\n"
    shown = calibrate(tmp_path, content, "--segment", "s", "--min-rows", 5).stdout
    assert f"{tmp_path}/c.json: 2 knots of the global curve from 12 rows of {tmp_path}/rows.csv" in shown
    assert "own curves for 1 of 2 segments by s: 10 rows" in shown
    assert "the global curve: 2 rows in segments of too few rows (under 5) (1 segment)" in shown
    assert "0.0000" in shown
    assert "0.000000" not in shown
    wanted = f"On other rows: isofold report {tmp_path}/c.json FILE --label label --out report.html"
    assert shown.splitlines()[-1] == wanted


def test_report_of_calibrate(tmp_path: Path) -> None:
    """Its title is the file unless given; what to think of it stands below."""
    pytest.importorskip("matplotlib")
    random = np.random.default_rng(0)
    rows = [
        f"{score},{int(random.random() < score)},{'a' if score < 0.7 else 'b'}"
        for score in random.random(300)
    ]
    content = "score,label,s\n" + "\n".join([*rows, "0.5,1,"]) + "\n"
    page = tmp_path / "r.html"
    options = ("--segment", "s", "--min-rows", 150, "--report", page)
    assert calibrate(tmp_path, content, *options).exit_code == 0
    text = page.read_text()
    assert f"<h1>{tmp_path}/rows.csv</h1>" in text
    assert "<p>On the rows that the curve was fitted to (new rows will do less well).</p>" in text
    assert "2 segments and the rows without one, the worst first" in text
    for server in ("own curve", "global curve: too few rows", "global curve: no segment"):
        assert f"<bdi>{server}</bdi>" in text
    assert calibrate(tmp_path, content, *options, "--title", "Mine").exit_code == 0
    assert "<h1>Mine</h1>" in page.read_text()
    apply = ("apply", tmp_path / "c.json", tmp_path / "rows.csv", "--label", "label", "--report", page)
    assert invoke(*apply, "--out", tmp_path / "o.csv", "--title", "Yours").exit_code == 0
    assert "<h1>Yours</h1>" in page.read_text()
    assert "<bdi>global curve: too few rows</bdi>" in page.read_text()
