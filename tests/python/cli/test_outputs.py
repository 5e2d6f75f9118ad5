"""No output may replace what is read, nor another output, under whatever name it is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isofold.calibration import Calibrator
from isofold.cli.app import app

CSV = "score,label\n0.1,0\n0.2,1\n0.3,0\n0.4,1\n"
CALIBRATE = ["calibrate", "rows.csv", "--score", "score", "--label", "label"]
APPLY = ["apply", "curve.json", "rows.csv", "--label", "label"]
REPORT = ["report", "curve.json", "rows.csv", "--label", "label"]

# Arguments, and the whole message.
REFUSED: dict[str, tuple[list[str], str]] = {
    "calibrate over its input": (
        [*CALIBRATE, "--out", "rows.csv"],
        "rows.csv: --out would replace the input; name another file",
    ),
    "a report over the input": (
        [*CALIBRATE, "--out", "new.json", "--report", "rows.csv"],
        "rows.csv: --report would replace the input; name another file",
    ),
    "curve and report in one file": (
        [*CALIBRATE, "--out", "x.json", "--report", "./x.json"],
        "x.json: --out and --report name the same file",
    ),
    "apply in place": (
        [*APPLY, "--out", "rows.csv"],
        "rows.csv: --out would replace the input; name another file",
    ),
    "apply in place by another path": (
        [*APPLY, "--out", "folder/../rows.csv"],
        "folder/../rows.csv: --out would replace the input; name another file",
    ),
    "apply in place through a symbolic link": (
        [*APPLY, "--out", "link.csv"],
        "link.csv: --out would replace the input; name another file",
    ),
    "apply in place through a hard link": (
        [*APPLY, "--out", "hard.csv"],
        "hard.csv: --out would replace the input; name another file",
    ),
    "apply over one of many inputs": (
        ["apply", "curve.json", "fo*/*.csv", "--out", "folder/a.csv"],
        "folder/a.csv: --out would replace the input; name another file",
    ),
    "apply into the folder that it reads": (
        ["apply", "curve.json", "folder", "--out", "folder/b.csv"],
        "folder/b.csv: --out lies in the folder that is read, and would be read next time; "
        "name another folder",
    ),
    "rows and report in one file": (
        [*APPLY, "--out", "new.csv", "--report", "new.csv"],
        "new.csv: --out and --report name the same file",
    ),
    "a report over the curve": (
        [*REPORT, "--out", "curve.json"],
        "curve.json: --out would replace the curve file; name another",
    ),
    "a report over the rows": (
        [*REPORT, "--out", "rows.csv"],
        "rows.csv: --out would replace the input; name another file",
    ),
    "a report over other rows": (
        [*REPORT, "--out", "later.csv"],
        "later.csv: --out is an HTML page; name it .html, not .csv",
    ),
    "a curve over other rows": (
        [*CALIBRATE, "--out", "later.csv"],
        "later.csv: --out is a curve file; name it .json, not .csv",
    ),
    "a curve named as a table": (
        [*CALIBRATE, "--out", "new.TSV"],
        "new.TSV: --out is a curve file; name it .json, not .tsv",
    ),
    "a folder": (
        [*CALIBRATE, "--out", "folder"],
        "folder: cannot be written: it is a folder; name a file in it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_lost_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    curve = Calibrator().fit([0, 1], [0, 1])
    curve.score_name = "score"
    curve.save("curve.json")
    Path("folder").mkdir()
    for path in ("rows.csv", "later.csv", "folder/a.csv"):
        Path(path).write_text(CSV)
    Path("link.csv").symlink_to("rows.csv")
    os.link("rows.csv", "hard.csv")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    arguments, message = REFUSED[name]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (2, f"isofold: {message}\n")
    assert before == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def test_other_existing_outputs_are_replaced_as_the_help_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(CSV)
    Path("new.json").write_text("old")
    assert CliRunner().invoke(app, [*CALIBRATE, "--out", "new.json"]).exit_code == 0
    assert Calibrator.load("new.json").score_name == "score"
    for command in ("calibrate", "apply", "report"):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        assert "replaced if it exists" in " ".join(shown.split())


def test_help_says_what_is_searched() -> None:
    shown = CliRunner().invoke(app, ["audit", "--help"], env={"COLUMNS": "200"}).output
    assert "by default all others" in " ".join(shown.split())


def test_save_names_the_callers_path(tmp_path: Path) -> None:
    path = tmp_path / "none" / "c.json"
    with pytest.raises(FileNotFoundError) as caught:
        Calibrator().fit([0, 1], [0, 1]).save(path)
    assert caught.value.filename == str(path)
