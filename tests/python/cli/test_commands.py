"""The commands end to end, on every format."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from decimal import Decimal
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

FORMATS = ["parquet", "csv", "arrow", "feather", "arrows"]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def made_up(rows: int = 5000) -> Any:
    random = np.random.default_rng(7)
    score = random.random(rows).round(3)
    return pa.table(
        {
            "id": [f"row {i}, of many" if i % 100 == 0 else f"r{i}" for i in range(rows)],
            "score": score,
            "narrow": score.astype(np.float32),
            "clicked": (random.random(rows) < score**2).astype(np.int64),
            "times": random.integers(0, 4, rows),
        }
    )


def write(table: Any, path: Path) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=1500)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        opener = pyarrow.ipc.new_stream if path.suffix == ".arrows" else pyarrow.ipc.new_file
        with opener(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1700)


def read(path: Path) -> Any:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)
    if path.suffix == ".csv":
        return pyarrow.csv.read_csv(path)
    with path.open("rb") as stream:
        opener = pyarrow.ipc.open_stream if path.suffix == ".arrows" else pyarrow.ipc.open_file
        return opener(stream).read_all()


@pytest.mark.parametrize("suffix", FORMATS)
def test_calibrate_and_apply(tmp_path: Path, suffix: str) -> None:
    table = made_up()
    data, curve_file, out = tmp_path / f"data.{suffix}", tmp_path / "curve.json", tmp_path / f"out.{suffix}"
    write(table, data)
    result = invoke(
        "calibrate", data, "--score", "score", "--label", "clicked", "--weight", "times", "--out", curve_file
    )
    assert result.exit_code == 0, result.output
    expected = Calibrator().fit(
        table["score"].to_numpy(), table["clicked"].to_numpy(), table["times"].to_numpy()
    )
    curve = Calibrator.load(curve_file)
    assert oracle.same_bits(curve.knots_x_, expected.knots_x_)
    assert oracle.same_bits(curve.knots_y_, expected.knots_y_)
    assert curve.score_name == "score"

    result = invoke("apply", curve_file, data, "--out", out)
    assert result.exit_code == 0, result.output
    written = read(out)
    assert written.column_names == [*table.column_names, "calibrated"]
    assert oracle.same_bits(written["calibrated"].to_numpy(), expected.predict(table["score"].to_numpy()))
    if suffix != "csv":
        assert written.drop_columns(["calibrated"]).equals(table)
    assert sorted(os.listdir(tmp_path)) == sorted(["curve.json", data.name, out.name])


def test_every_format_gives_the_same_curve_file(tmp_path: Path) -> None:
    files = set()
    for suffix in FORMATS:
        data = tmp_path / f"data.{suffix}"
        write(made_up(), data)
        invoke(
            "calibrate", data, "--score", "score", "--label", "clicked", "--out", tmp_path / f"{suffix}.json"
        )
        files.add((tmp_path / f"{suffix}.json").read_bytes())
    assert len(files) == 1


def test_options_of_calibrate(tmp_path: Path) -> None:
    data, out = tmp_path / "data.parquet", tmp_path / "curve.json"
    table = made_up()
    write(table, data)
    options = ["--decreasing", "--floor", "0.01", "--ceiling", "0.5", "--threads", "2"]
    result = invoke("calibrate", data, "--score", "narrow", "--label", "clicked", "--out", out, *options)
    assert result.exit_code == 0, result.output
    expected = Calibrator(increasing=False, floor=0.01, ceiling=0.5)
    expected.fit(table["narrow"].to_numpy(), table["clicked"].to_numpy()).score_name = "narrow"
    assert out.read_text() == expected.to_json()


def test_options_of_apply(tmp_path: Path) -> None:
    data, curve_file, out = (tmp_path / name for name in ("data.parquet", "curve.json", "out.parquet"))
    table = made_up()
    write(table, data)
    curve = Calibrator().fit(table["score"].to_numpy(), table["clicked"].to_numpy())
    curve.save(curve_file)
    options = [
        "--score",
        "narrow",
        "--column",
        "rate",
        "--label",
        "clicked",
        "--weight",
        "times",
        "--threads",
        "2",
    ]
    result = invoke("apply", curve_file, data, "--out", out, *options)
    assert result.exit_code == 0, result.output
    written = read(out)["rate"]
    assert written.type == pa.float32()
    assert oracle.same_bits(written.to_numpy(), curve.predict(table["narrow"].to_numpy()))
    terms = brier_decomposition(
        table["clicked"].to_numpy(), written.to_numpy(), sample_weight=table["times"].to_numpy()
    )
    assert f"{terms.miscalibration:.6f}" in result.output


@pytest.mark.parametrize(
    ("source", "target"),
    [("parquet", "csv"), ("arrow", "parquet"), ("parquet", "arrows"), ("arrows", "feather")],
)
def test_apply_changes_format(tmp_path: Path, source: str, target: str) -> None:
    data, out = tmp_path / f"data.{source}", tmp_path / f"out.{target}"
    table = made_up()
    write(table, data)
    Calibrator().fit([0, 1], [0, 1]).save(tmp_path / "curve.json")
    result = invoke("apply", tmp_path / "curve.json", data, "--score", "score", "--out", out)
    assert result.exit_code == 0, result.output
    # CSV says of a float32 no more than it takes to read it back as one.
    assert read(out).drop_columns(["calibrated"]).cast(table.schema).equals(table)
    assert read(out)["calibrated"].to_pylist() == table["score"].to_pylist()


def test_types_and_metadata_are_handed_on(tmp_path: Path) -> None:
    table = pa.table(
        {
            "score": pa.array([1, 2, 3], pa.int32()),
            "when": pa.array([0, 1, None], pa.timestamp("ms", tz="UTC")),
            "nested": pa.array([[1], [], None], pa.list_(pa.int8())),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    ).replace_schema_metadata({"origin": "here"})
    Calibrator().fit([1, 3], [0, 1]).save(tmp_path / "curve.json")
    for suffix in ("parquet", "arrow", "arrows"):
        data, out = tmp_path / f"data.{suffix}", tmp_path / f"out.{suffix}"
        write(table, data)
        result = invoke("apply", tmp_path / "curve.json", data, "--score", "score", "--out", out)
        assert result.exit_code == 0, result.output
        written = read(out)
        assert written.drop_columns(["calibrated"]).equals(table)
        assert written.schema.metadata[b"origin"] == b"here"
        assert written["calibrated"].to_pylist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    "kind", [pa.float16(), pa.float32(), pa.int8(), pa.uint64(), pa.bool_(), pa.decimal128(5, 2)]
)
def test_number_types(tmp_path: Path, kind: Any) -> None:
    converted = {"halffloat": np.float16, "decimal128(5, 2)": Decimal}.get(str(kind), int)
    values = pa.array([converted(value) for value in (0, 1, 1, 0)]).cast(kind)
    data = tmp_path / "data.arrow"
    write(pa.table({"score": values, "label": values}), data)
    out = tmp_path / "curve.json"
    result = invoke(
        "calibrate", data, "--score", "score", "--label", "label", "--weight", "label", "--out", out
    )
    assert result.exit_code == 0, result.output
    assert Calibrator.load(out).knots_x_.tolist() == [1.0]


def test_csv_fields_pass_unchanged(tmp_path: Path) -> None:
    data, out = tmp_path / "data.csv", tmp_path / "out.csv"
    text = 'code,"a, b",score,empty\n007,NA, 0.5 ,\n1e3,"x, ""y""\nz",2.50,\n+1,ü,"0",\n'
    data.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n", 1).encode())
    Calibrator().fit([0, 1], [0, 1]).save(tmp_path / "curve.json")
    result = invoke("apply", tmp_path / "curve.json", data, "--score", "score", "--out", out)
    assert result.exit_code == 0, result.output
    with out.open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows == [
        ["code", "a, b", "score", "empty", "calibrated"],
        ["007", "NA", " 0.5 ", "", "0.5"],
        ["1e3", 'x, "y"\nz', "2.50", "", "1"],
        ["+1", "ü", "0", "", "0"],
    ]
    assert not out.read_bytes().startswith(b"\xef\xbb\xbf")


def test_plain_csv_stays_without_quotes(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("name,score\nx,0.25\n")
    Calibrator().fit([0, 1], [0, 1]).save(tmp_path / "curve.json")
    invoke(
        "apply",
        tmp_path / "curve.json",
        tmp_path / "data.csv",
        "--score",
        "score",
        "--out",
        tmp_path / "out.csv",
    )
    assert (tmp_path / "out.csv").read_text() == "name,score,calibrated\nx,0.25,0.25\n"


def test_one_field_that_needs_quotes_changes_no_other_row(tmp_path: Path) -> None:
    """Rows are written in batches; what one of them needs is no matter of the others in its batch."""
    rows = [f"n{i},0.25" for i in range(150_000)] + ['"late, ""very""",0.5', ",0.5", "n,0.5"]
    (tmp_path / "data.csv").write_text("\n".join(["name,score", *rows]) + "\n")
    Calibrator().fit([0, 1], [0, 1]).save(tmp_path / "curve.json")
    out = tmp_path / "out.csv"
    result = invoke("apply", tmp_path / "curve.json", tmp_path / "data.csv", "--score", "score", "--out", out)
    assert result.exit_code == 0, result.output
    found = out.read_text().splitlines()
    assert found[0] == "name,score,calibrated"
    assert found[1:] == [row + row[row.rindex(",") :] for row in rows]


def test_every_type_a_csv_file_can_hold(tmp_path: Path) -> None:
    """As pyarrow writes it, but for the quotes."""
    table = pa.table(
        {
            "score": [0.5, 1.0],
            "text": pa.array(["a,b", None], pa.large_string()),
            "coded": pa.array(['"', "x"]).dictionary_encode(),
            "bytes": pa.array([b"x", b"y\nz"]),
            "time": pa.array([0, None], pa.timestamp("ms", tz="UTC")),
            "day": pa.array([1, None], pa.date32()),
            "money": pa.array([Decimal("1.50"), None]),
            "flag": [True, None],
            "nothing": pa.nulls(2),
        }
    )
    write(table, tmp_path / "data.parquet")
    Calibrator().fit([0, 1], [0, 1]).save(tmp_path / "curve.json")
    out = tmp_path / "out.csv"
    apply = ("apply", tmp_path / "curve.json", tmp_path / "data.parquet", "--score", "score", "--out", out)
    assert invoke(*apply).exit_code == 0
    assert out.read_bytes().decode() == (
        "score,text,coded,bytes,time,day,money,flag,nothing,calibrated\n"
        '0.5,"a,b","""",x,1970-01-01 00:00:00.000Z,1970-01-02,1.50,true,,0.5\n'
        '1,,x,"y\nz",,,,,,1\n'
    )
    write(table.append_column("list", pa.array([[1], []])), tmp_path / "data.parquet")
    result = invoke(*apply)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"isofold: {out}: cannot be written: Unsupported Type:list<")


def test_csv_numbers_keep_every_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    bits = random.integers(0, 2**64, 3000, dtype=np.uint64)
    scores = bits.view(np.float64)
    scores = np.concatenate([scores[np.isfinite(scores)], [5e-324, -0.0, 1.7976931348623157e308]])
    labels = random.random(len(scores))
    lines = [f"{score!r},{label!r}" for score, label in zip(scores.tolist(), labels.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("score,label\n" + "\n".join(lines))
    out = tmp_path / "curve.json"
    assert (
        invoke(
            "calibrate", tmp_path / "data.csv", "--score", "score", "--label", "label", "--out", out
        ).exit_code
        == 0
    )
    curve = Calibrator().fit(scores, labels)
    assert oracle.same_bits(Calibrator.load(out).knots_x_, curve.knots_x_)
    assert oracle.same_bits(Calibrator.load(out).knots_y_, curve.knots_y_)
    invoke("apply", out, tmp_path / "data.csv", "--out", tmp_path / "out.csv")
    assert oracle.same_bits(
        read(tmp_path / "out.csv")["calibrated"].to_numpy().astype(float), curve.predict(scores)
    )


def test_a_type_that_shows_only_later_does_not_matter(tmp_path: Path) -> None:
    """pyarrow infers a CSV column's type from its first block."""
    rows = ["1,0,a"] * 600_000 + ["0.5,1,17"]
    (tmp_path / "data.csv").write_text("score,label,other\n" + "\n".join(rows))
    out = tmp_path / "curve.json"
    result = invoke("calibrate", tmp_path / "data.csv", "--score", "score", "--label", "label", "--out", out)
    assert result.exit_code == 0, result.output
    assert Calibrator.load(out).knots_x_.tolist() == [0.5, 1.0]


def test_scores_that_are_no_probabilities_have_no_metrics_before(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("score,label\n-3,0\n4,1\n5,0\n")
    result = invoke(
        "calibrate",
        tmp_path / "data.csv",
        "--score",
        "score",
        "--label",
        "label",
        "--out",
        tmp_path / "c.json",
    )
    assert result.exit_code == 0
    assert "scores outside [0, 1] are no probabilities" in result.output


def test_installed_command(tmp_path: Path) -> None:
    """As a user runs it: a process of its own, no terminal, no progress bar."""
    data = tmp_path / "data.parquet"
    write(made_up(), data)
    command = [sys.executable, "-m", "isofold.cli"]
    arguments = [
        "calibrate",
        str(data),
        "--score",
        "score",
        "--label",
        "clicked",
        "--out",
        str(tmp_path / "c.json"),
    ]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "Brier score" in run.stdout
    assert "miscalibration (MCB)" in run.stdout
    assert json.loads((tmp_path / "c.json").read_text())["score_name"] == "score"
    run = subprocess.run(
        [*command, "apply", str(tmp_path / "c.json"), str(data), "--out", str(tmp_path / "o.parquet")],
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert len(read(tmp_path / "o.parquet")) == 5000


def test_help_and_version() -> None:
    from importlib.metadata import version

    assert invoke("--version").output == f"isofold {version('isofold')}\n"
    assert "calibrate" in invoke("--help").output
    for name in ("calibrate", "apply"):
        result = invoke(name, "--help")
        assert result.exit_code == 0
        assert "--score" in result.output


def test_missing_extra_is_explained(tmp_path: Path) -> None:
    for name in ("typer", "rich", "pyarrow"):
        code = f"import sys; sys.modules[{name!r}] = None; from isofold.cli import main; main()"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.returncode == 2
        assert run.stderr == (
            f"isofold: the command line needs {name}, which is not installed: pip install 'isofold[cli]'\n"
        )
