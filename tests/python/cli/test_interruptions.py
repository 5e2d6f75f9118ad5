"""Signals, a full disk, a terminal: the command as a process of its own."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from isofold.calibration import Calibrator


def slow_file(folder: Path) -> tuple[Path, Path]:
    """A CSV that takes some seconds, and a curve."""
    data, curve = folder / "a.csv", folder / "curve.json"
    data.write_text("name,score,label\n" + "a longer field to copy,0.5,1\n" * 4_000_000)
    Calibrator().fit([0, 1], [0, 1]).save(curve)
    return data, curve


def killed_midway(folder: Path, out: Path, number: signal.Signals) -> tuple[int, str, str]:
    """Send a signal to `apply` while its output is half-written."""
    data, curve = slow_file(folder)
    command = [sys.executable, "-m", "isofold.cli", "apply", str(curve), str(data)]
    command += ["--score", "score", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not any(
        name.endswith(".part") and (folder / name).stat().st_size > 10**6 for name in os.listdir(folder)
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    data.unlink()  # large, and pytest keeps folders
    return process.returncode, stdout, stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    code, stdout, stderr = killed_midway(tmp_path, out, number)
    assert code == 128 + number
    assert stderr == f"isofold: {'interrupted' if number == signal.SIGINT else 'terminated'}\n"
    assert stdout == ""
    assert sorted(os.listdir(tmp_path)) == ["curve.json", "out.csv"]
    assert out.read_text() == "old"


def test_a_killed_process_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    """It cannot clean up; what it leaves is hidden, and is taken for no input of a later run."""
    out = tmp_path / "out.csv"
    code, _, _ = killed_midway(tmp_path, out, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not out.exists()
    left = set(os.listdir(tmp_path)) - {"curve.json"}
    assert len(left) == 1
    assert all(name.startswith(".isofold-") for name in left)


def with_room_for(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line where no file may grow beyond `size` bytes."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
    command = [sys.executable, "-c", limit + "from isofold.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_a_full_disk_is_one_line_and_nothing_is_left(tmp_path: Path, suffix: str) -> None:
    data, curve = tmp_path / "a.parquet", tmp_path / "curve.json"
    pyarrow.parquet.write_table(pa.table({"score": np.random.default_rng(0).random(500_000)}), data)
    Calibrator().fit([0, 1], [0, 1]).save(curve)
    out = tmp_path / f"o.{suffix}"
    run = with_room_for(10**6, "apply", curve, data, "--score", "score", "--out", out)
    assert run.returncode == 2
    assert run.stderr == f"isofold: {out}: cannot be written: File too large\n"
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "curve.json"]


def test_a_disk_too_full_for_the_curves(tmp_path: Path) -> None:
    data, out = tmp_path / "a.parquet", tmp_path / "curves.json"
    random = np.random.default_rng(0)
    columns = {"score": random.random(20_000), "label": random.random(20_000) < 0.5}
    columns["slot"] = random.integers(0, 500, 20_000)
    pyarrow.parquet.write_table(pa.table(columns), data)
    out.write_text("old")
    options = ["--score", "score", "--label", "label", "--segment", "slot", "--min-rows", 1, "--out", out]
    run = with_room_for(10**4, "calibrate", data, *options)
    assert run.returncode == 2
    assert run.stderr == f"isofold: {out}: cannot be written: File too large\n"
    assert run.stdout == ""
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "curves.json"]


def test_a_progress_bar_on_a_terminal_only(tmp_path: Path) -> None:
    data = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"score": [0.1, 0.2], "label": [0, 1]}), data)
    command = [
        sys.executable,
        "-m",
        "isofold.cli",
        "calibrate",
        str(data),
        "--score",
        "score",
        "--label",
        "label",
    ]
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "c.json")],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=environment,
    ) as process:
        os.close(terminal)
        shown = b""
        while select.select([controller], [], [], 60)[0]:
            try:
                part = os.read(controller, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(controller)
    assert process.returncode == 0
    assert b"reading" in shown
