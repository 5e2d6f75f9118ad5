"""Every fault: one line that names file, column and row, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from isofold.calibration import Calibrator
from isofold.cli.app import app


def table(**columns: object) -> pa.Table:
    good = {"score": [0.1, 0.2, 0.3], "label": [0, 1, 1], "weight": [1.0, 2.0, 3.0]}
    return pa.table({**good, **columns})


def parquet(path: Path, **columns: object) -> Path:
    pyarrow.parquet.write_table(table(**columns), path)
    return path


def text(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def cut(path: Path, end: int) -> Path:
    return text(path, path.read_bytes()[:end])


def arrow(path: Path, rows: int) -> Path:
    with pyarrow.ipc.new_stream(path, table().schema) as writer:
        for _ in range(rows):
            writer.write_table(table())
    return path


def folder(path: Path, **files: str) -> Path:
    """A folder of CSV files, or of folders where the content is empty."""
    path.mkdir()
    for name, content in files.items():
        if content:
            text(path / f"{name}.csv", content)
        else:
            (path / name).mkdir()
    return path


CSV = "name,score,label\n"
DROP = r" \(--on-missing drop leaves such rows out\)"

# What is in the file, and what must be said about it after its name. {} stands for the path.
FAULTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no such file": (lambda d: d / "none.csv", "{}: cannot be opened: No such file or directory"),
    "an empty folder": (lambda d: folder(d / "rows"), "{}: the folder holds no files"),
    "only hidden files": (
        lambda d: text(folder(d / "rows", _SUCCESS="x") / ".a.csv", CSV).parent,
        "{}: the folder holds no files",
    ),
    "a folder in the folder": (
        lambda d: folder(d / "rows", a=CSV + "x,0.5,1\n", day=""),
        "{0}: it holds a folder, {0}/day; name the files by a pattern, as .*",
    ),
    "a folder of two formats": (
        lambda d: parquet(folder(d / "rows", a=CSV + "x,0.5,1\n") / "b.parquet").parent,
        "{0}: files of different formats, {0}/b.parquet and {0}/a.csv",
    ),
    "a folder of something else": (
        lambda d: text(folder(d / "rows") / "notes.txt", "x").parent,
        "{}/notes.txt: format unknown; the name must end in one of .*",
    ),
    "a pattern that matches nothing": (lambda d: d / "*.parquet", "{}: no file matches the pattern"),
    "files of other columns": (
        lambda d: folder(d / "rows", a=CSV + "x,0.5,1\n", b="name,points,label\nx,0.5,1\n"),
        "{0}/b.csv: not the columns of {0}/a.csv: 'score' is in one of them only",
    ),
    "files of another order": (
        lambda d: folder(d / "rows", a=CSV + "x,0.5,1\n", b="score,name,label\n0.5,x,1\n"),
        "{0}/b.csv: not the columns of {0}/a.csv: their order is another",
    ),
    "files of other types": (
        lambda d: (
            parquet(
                parquet(folder(d / "rows") / "a.parquet").parent / "b.parquet", score=["a", "b", "c"]
            ).parent
        ),
        "{0}/b.parquet: column 'score' holds string, in {0}/a.parquet double",
    ),
    "a fault in the second file": (
        lambda d: folder(d / "rows", a=CSV + "x,0.5,1\n" * 9, b=CSV + "x,0.5,1\ny,high,0\n"),
        "{}/b.csv: column 'score', row 2: 'high' is not a number",
    ),
    "a damaged second file": (
        lambda d: cut(parquet(parquet(folder(d / "rows") / "a.parquet").parent / "b.parquet"), -10).parent,
        "{}/b.parquet: not a readable Parquet file: .*",
    ),
    "an unknown ending": (
        lambda d: text(d / "a.txt", "x"),
        "{}: format unknown; the name must end in one of .*",
    ),
    "a spreadsheet": (
        lambda d: text(d / "a.xlsx", "x"),
        "{}: format unknown; save the sheet as .csv; the name must end in one of .*",
    ),
    "a packed file": (
        lambda d: text(d / "a.csv.gz", "x"),
        "{}: format unknown; unpack it first; the name must end in one of .*",
    ),
    "a tab-separated file": (
        lambda d: text(d / "a.tsv", "score\tlabel\n1\t0\n"),
        "{}: format unknown; write it with commas as .csv, or as .parquet; the name must end in one of .*",
    ),
    "semicolons": (
        lambda d: text(d / "a.csv", "score;label\n1;0\n"),
        r"{}: no column 'score'; the file has 'score;label'; is the separator ';'\? Only commas are read",
    ),
    "tabs": (
        lambda d: text(d / "a.csv", "score\tlabel\n1\t0\n"),
        r"{}: no column 'score'; the file has 'score\\tlabel'; is the separator a tab\? Only commas are read",
    ),
    "semicolons and decimal commas": (
        lambda d: text(d / "a.csv", "score;label\n0,5;0\n"),
        r"{}: row 1: 2 fields where the header has 1; is the separator ';'\? Only commas are read",
    ),
    "a near miss": (
        lambda d: text(d / "a.csv", "name,Score ,label\nx,1,0\n"),
        r"{}: no column 'score' \(did you mean 'Score '\?\); the file has 'name', 'Score ', 'label'",
    ),
    "an empty file": (lambda d: text(d / "a.csv", ""), "{}: the file is empty"),
    "an empty Parquet file": (lambda d: text(d / "a.parquet", ""), "{}: the file is empty"),
    "a header alone": (lambda d: text(d / "a.csv", CSV), "{}: the file has no rows"),
    "a Parquet file without rows": (
        lambda d: parquet(d / "a.parquet", score=pa.array([], "f8"), label=pa.array([], "f8"), weight=[]),
        "{}: the file has no rows",
    ),
    "a missing column": (
        lambda d: text(d / "a.csv", "name,points,label\nx,1,0\n"),
        "{}: no column 'score'; the file has 'name', 'points', 'label'",
    ),
    "a missing column in Parquet": (
        lambda d: (pyarrow.parquet.write_table(pa.table({"label": [0]}), d / "a.parquet"), d / "a.parquet")[
            1
        ],
        "{}: no column 'score'; the file has 'label'",
    ),
    "a column twice": (
        lambda d: text(d / "a.csv", "score,score,label\n1,2,0\n"),
        "{}: column 'score' is there 2 times",
    ),
    "text among numbers": (
        lambda d: text(d / "a.csv", CSV + "x,0.5,1\ny,high,0\n"),
        "{}: column 'score', row 2: 'high' is not a number",
    ),
    "text far down": (
        lambda d: text(d / "a.csv", CSV + "x,0.5,1\n" * 200_000 + "y,0.5,no\n" + "x,0.5,1\n" * 70_000),
        r"{}: column 'label', row 200001: 'no' is not a number; a label is 0 or 1 \(or true/false\), .*",
    ),
    "no value": (
        lambda d: text(d / "a.csv", CSV + "x,0.5,1\ny, ,0\n"),
        r"{}: column 'score', row 2: no value; a score is needed in every row" + DROP,
    ),
    "a text column": (
        lambda d: parquet(d / "a.parquet", score=["0.1", "0.2", "0.3"]),
        "{}: column 'score' holds string, not numbers",
    ),
    "labels that are text": (
        lambda d: parquet(d / "a.parquet", label=["0", "True", "maybe"]),
        r"{}: column 'label', row 3: 'maybe' is not a number; a label is 0 or 1 \(or true/false\), .*",
    ),
    "a date column": (
        lambda d: parquet(d / "a.parquet", label=pa.array([1, 2, 3], pa.date32())),
        r"{}: column 'label' holds date32\[day\], not numbers",
    ),
    "a null": (
        lambda d: parquet(d / "a.parquet", score=[0.1, None, 0.3]),
        r"{}: column 'score', row 2: no value; a score is needed in every row" + DROP,
    ),
    "a score of NaN": (
        lambda d: parquet(d / "a.parquet", score=[0.1, 0.2, float("nan")]),
        "{}: column 'score', row 3: nan, but a score must be a finite number" + DROP,
    ),
    "a score of NaN in CSV": (
        lambda d: text(d / "a.csv", CSV + "x,nan,1\n"),
        "{}: column 'score', row 1: no value; a score is needed in every row" + DROP,
    ),
    "an infinite score": (
        lambda d: text(d / "a.csv", CSV + "x,1e999,1\n"),
        "{}: column 'score', row 1: inf, but a score must be a finite number",
    ),
    "a label of 2": (
        lambda d: parquet(d / "a.parquet", label=[0, 2, 1]),
        r"{}: column 'label', row 2: 2\.0, but a label is 0 or 1 \(or true/false\), or a rate in between",
    ),
    "a negative label": (
        lambda d: text(d / "a.csv", CSV + "x,0.5,-1\n"),
        r"{}: column 'label', row 1: -1\.0, but a label is 0 or 1 .*; if labels are coded -1 and \+1, "
        "write 0 for -1",
    ),
    "a truncated Parquet file": (
        lambda d: cut(parquet(d / "a.parquet"), -10),
        "{}: not a readable Parquet file: Parquet magic bytes not found in footer.*",
    ),
    "a Parquet file that is CSV": (
        lambda d: text(d / "a.parquet", CSV + "x,0.5,1\n"),
        "{}: not a readable Parquet file: .*",
    ),
    "a truncated Arrow stream": (
        lambda d: cut(arrow(d / "a.arrows", 100), 5000),
        "{}: cannot be read: Expected to .*",
    ),
    "an Arrow column whose name is not UTF-8": (
        lambda d: text(
            d / "a.arrows", arrow(d / "a.arrows", 1).read_bytes().replace(b"weight", b"w\xe9ight")
        ),
        "{}: not a readable Arrow file: a column's name is not UTF-8",
    ),
    "an Arrow file that is none": (
        lambda d: text(d / "a.arrow", "x" * 100),
        "{}: not a readable Arrow file: .*",
    ),
    "Feather version 1": (
        lambda d: text(d / "a.feather", b"FEA1" + b"\0" * 100),
        "{}: Feather version 1 is not supported; write it as version 2",
    ),
    "one field too many": (
        lambda d: text(d / "a.csv", CSV + "x,0.5,1\nx,0.5,1,7\n"),
        "{}: row 2: 4 fields where the header has 3",
    ),
    "one field too few": (
        lambda d: text(d / "a.csv", CSV + "x,0.5,1\nx,0.5\n"),
        "{}: row 2: 2 fields where the header has 3",
    ),
    "a score that is not UTF-8": (
        lambda d: text(d / "a.csv", CSV.encode() + b"x,0.5,1\ny,0.\xff,1\n"),
        "{}: column 'score', row 2: not UTF-8",
    ),
    "a header that is not UTF-8": (
        lambda d: text(d / "a.csv", b"caf\xe9,score,label\nx,0.5,1\n"),
        "{}: not a readable CSV file: a column's name is not UTF-8",
    ),
}


def check_refused(arguments: list[object], message: str, folder: Path) -> None:
    before = {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)}
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    assert re.fullmatch(f"isofold: {message}\n", result.stderr), result.stderr
    assert result.stdout == ""
    assert before == {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)}


@pytest.mark.parametrize("name", FAULTS)
def test_calibrate_refuses(tmp_path: Path, name: str) -> None:
    make, message = FAULTS[name]
    path = make(tmp_path)
    out = text(tmp_path / "curve.json", "old")
    check_refused(
        ["calibrate", path, "--score", "score", "--label", "label", "--out", out],
        message.format(re.escape(str(path))),
        tmp_path,
    )
    assert out.read_text() == "old"


@pytest.mark.parametrize("name", FAULTS)
def test_apply_refuses(tmp_path: Path, name: str) -> None:
    make, message = FAULTS[name]
    path = make(tmp_path)
    curve = tmp_path / "curve.json"
    Calibrator().fit([0, 1], [0, 1]).save(curve)
    out = text(tmp_path / "out.csv", "old")
    check_refused(
        ["apply", curve, path, "--score", "score", "--label", "label", "--out", out],
        message.format(re.escape(str(path))),
        tmp_path,
    )
    assert out.read_text() == "old"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0], r"column 'weight', row 2: -2\.0, but a weight must be finite and not negative"),
        ([1.0, 1.0, np.inf], "column 'weight', row 3: inf, but a weight must be finite and not negative"),
        ([0.0, 0.0, 0.0], "column 'weight': every weight is 0"),
    ],
)
def test_calibrate_refuses_weights(tmp_path: Path, weights: list[float], message: str) -> None:
    path = parquet(tmp_path / "a.parquet", weight=weights)
    arguments = ["calibrate", path, "--score", "score", "--label", "label", "--weight", "weight"]
    check_refused([*arguments, "--out", tmp_path / "c.json"], f"{re.escape(str(path))}: {message}", tmp_path)


def test_apply_refuses_a_name_that_is_not_utf8_anywhere(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", CSV.encode() + b"x,0.5,1\ncaf\xe9,0.5,1\n")
    curve = tmp_path / "curve.json"
    Calibrator().fit([0, 1], [0, 1]).save(curve)
    check_refused(
        ["apply", curve, path, "--score", "score", "--out", tmp_path / "o.csv"],
        f"{re.escape(str(path))}: column 'name', row 2: not UTF-8",
        tmp_path,
    )


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    data, curve = parquet(tmp_path / "a.parquet"), tmp_path / "curve.json"
    named = Calibrator().fit([0, 1], [0, 1])
    named.save(curve)
    calibrate = ["calibrate", data, "--score", "score", "--label", "label", "--out", tmp_path / "c.json"]
    apply = ["apply", curve, data, "--out", tmp_path / "o.parquet"]
    somewhere = re.escape(str(tmp_path))
    check_refused([*calibrate, "--floor", "2"], r"floor must lie in \[0, 1\], got 2\.0", tmp_path)
    check_refused(
        [*calibrate, "--floor", "0.5", "--ceiling", "0.2"],
        r"floor must not be above ceiling, got 0\.5 and 0\.2",
        tmp_path,
    )
    check_refused(
        apply, f"{somewhere}/curve.json: the curve names no score column; say which with --score", tmp_path
    )
    apply += ["--score", "score"]
    check_refused(
        [*apply, "--column", "label"],
        f"{somewhere}/a.parquet: there is a column 'label' already; name another with --column",
        tmp_path,
    )
    check_refused(
        [*apply, "--weight", "weight"], "--weight is for the metrics, which need --label as well", tmp_path
    )
    csv = text(tmp_path / "a.csv", CSV + "x,0.5,1\n")
    check_refused(
        ["apply", curve, csv, "--score", "score", "--out", tmp_path / "o.parquet"],
        f"{somewhere}/o.parquet: a CSV file's columns have no types, so it can only become a CSV file",
        tmp_path,
    )


def damaged(old: str, new: str) -> str:
    """Curves of segments, in part replaced."""
    curves = Calibrator(min_rows=1).fit([0, 1, 0, 1], [0, 1, 0, 0.5], segments=["a", "a", "b", "b"])
    content = curves.to_json()
    assert old in content
    return content.replace(old, new, 1)


OWN_KNOTS = '"count":2,"knots_x":[0.0,1.0]'
BAD_CURVES: dict[str, tuple[str | bytes, str]] = {
    "no curve": ("{}", '"format" is not "isofold-curve"'),
    "no JSON": ("x", "not JSON: .*"),
    "no UTF-8": (b"\xff", "byte 0 is not UTF-8"),
    "empty": ("", "not JSON: .*"),
    "a future version": (
        damaged('"version": 2', '"version": 3'),
        "version 3 is newer than 2, the newest this isofold reads",
    ),
    "a billion knots claimed": (
        damaged('"count": 2', '"count": 1000000000'),
        '"count" is not a whole number from 1 to 5000000',
    ),
    "a billion knots of a segment": (
        damaged('"count":2', '"count":1000000000'),
        r'"segments"\[0\]: "count" is not a whole number from 1 to 5000000',
    ),
    "unsorted knots": (
        damaged('"knots_x": [0.0,1.0]', '"knots_x": [1.0,0.0]'),
        r'"knots_x"\[1\] is not above the one before it',
    ),
    "unsorted knots of a segment": (
        damaged(OWN_KNOTS, '"count":2,"knots_x":[1.0,0.0]'),
        r'"segments"\[0\]: "knots_x"\[1\] is not above the one before it',
    ),
    "NaN": (damaged(OWN_KNOTS, '"count":2,"knots_x":[NaN,1.0]'), "it holds NaN"),
    "a segment twice": (
        damaged('"key":["b"]', '"key":["a"]'),
        r'"segments"\[1\]: "key" is not above the one before it',
    ),
    "an edit": (
        damaged('"key":["b"]', '"key":["c"]'),
        "the checksum does not fit the content: the file is damaged or was edited",
    ),
}


@pytest.mark.parametrize("name", BAD_CURVES)
def test_apply_refuses_a_bad_curve(tmp_path: Path, name: str) -> None:
    content, message = BAD_CURVES[name]
    curve = text(tmp_path / "curve.json", content)
    check_refused(
        ["apply", curve, parquet(tmp_path / "a.parquet"), "--out", tmp_path / "o.parquet"],
        f"{re.escape(str(curve))}: not a usable curve file: {message}",
        tmp_path,
    )


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    data, curve = parquet(tmp_path / "a.parquet"), tmp_path / "curve.json"
    Calibrator().fit([0, 1], [0, 1]).save(curve)
    somewhere = re.escape(str(tmp_path))
    apply = ["apply", curve, data, "--score", "score"]
    calibrate = ["calibrate", data, "--score", "score", "--label", "label"]
    for folder, reason in (
        (tmp_path / "none", f"the folder {somewhere}/none does not exist"),
        (Path("/proc"), "No such file or directory|Permission denied|the folder /proc may not be written to"),
        (tmp_path / "a.parquet", f"{somewhere}/a.parquet is not a folder"),
    ):
        message = f"{re.escape(str(folder))}/o[.](parquet|json|html): cannot be written: ({reason})"
        check_refused([*apply, "--out", folder / "o.parquet"], message, tmp_path)
        check_refused([*calibrate, "--out", folder / "o.json"], message, tmp_path)
        if folder != Path("/proc"):
            # Nothing is written when the last of several outputs has no place.
            report = ["--report", folder / "o.html"]
            check_refused([*calibrate, "--out", tmp_path / "c.json", *report], message, tmp_path)
    message = "/dev/null: cannot be written: /dev/null exists and is not a regular file"
    check_refused(
        ["calibrate", data, "--score", "score", "--label", "label", "--out", "/dev/null"], message, tmp_path
    )


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """Root may read everything: after a first run, which loads all modules, the process is someone else."""
    parquet(tmp_path / "open.parquet")
    parquet(tmp_path / "closed.parquet").chmod(0)
    tmp_path.chmod(0o777)
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from isofold.cli.calibrate import calibrate\n"
        "from isofold.cli.errors import reported\n"
        "for path in map(Path, sys.argv[1:3]):\n"
        "    with reported():\n"
        "        calibrate(path, score='score', label='label', out=Path(sys.argv[3]))\n"
        "    if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)\n"
    )
    arguments = ["open.parquet", "closed.parquet", "curve.json"]
    run = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.stderr.splitlines()[0] == "isofold: closed.parquet: cannot be opened: Permission denied"
    assert run.returncode != 0


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "csv"])
def test_damaged_bytes_never_give_more_than_one_line(tmp_path: Path, suffix: str) -> None:
    """Some damage cannot be seen (there is no checksum over a CSV file); what can is reported in one line."""
    rows = 300
    good = pa.table(
        {
            "name": [f"a{i}" for i in range(rows)],
            "score": [i / rows for i in range(rows)],
            "list": [[i] * (i % 3) for i in range(rows)],
        }
    )
    path, curve, out = tmp_path / f"a.{suffix}", tmp_path / "curve.json", tmp_path / f"out.{suffix}"
    Calibrator().fit([0, 1], [0, 1]).save(curve)
    if suffix == "parquet":
        pyarrow.parquet.write_table(good, path, row_group_size=100)
    elif suffix == "csv":
        text(path, "name,score\n" + "".join(f'"a,{i}",{i / rows}\n' for i in range(rows)))
    else:
        opener = pyarrow.ipc.new_file if suffix == "arrow" else pyarrow.ipc.new_stream
        with opener(path, good.schema) as writer:
            writer.write_table(good, max_chunksize=100)
    content = path.read_bytes()
    random = np.random.default_rng(11)
    runner = CliRunner()
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for position in random.integers(0, len(content), random.integers(1, 6)):
            damaged[position] = random.integers(0, 256)
        path.write_bytes(damaged)
        result = runner.invoke(app, ["apply", str(curve), str(path), "--score", "score", "--out", str(out)])
        assert result.exit_code in (0, 2), result.exception
        assert len(result.stderr.splitlines()) == (1 if result.exit_code else 0), result.stderr
        assert sorted(os.listdir(tmp_path)) == sorted([path.name, "curve.json", *[out.name] * out.exists()])
        out.unlink(missing_ok=True)
        refused += result.exit_code == 2
    assert refused > 20
