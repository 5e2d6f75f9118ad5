"""The memory that `apply` takes does not grow with the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from isofold.calibration import Calibrator

CODE = """
import re, sys
from pathlib import Path
from isofold.cli.apply import apply
apply(Path(sys.argv[1]), sys.argv[2], out=Path(sys.argv[3]))
print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]))
"""
COUNTRIES = [f"country {index}" for index in range(280)]


def write(path: Path, rows: int) -> None:
    """Rows with a score, a segment and a column that only passes through, in batches of 50,000."""
    random = np.random.default_rng(1)
    schema = pa.schema([("score", pa.float64()), ("country", pa.string()), ("id", pa.int64())])
    opener = pyarrow.parquet.ParquetWriter if path.suffix == ".parquet" else pyarrow.ipc.new_file
    with opener(path, schema) as writer:
        names = np.array(COUNTRIES, dtype=object)
        for start in range(0, rows, 50_000):
            size = min(50_000, rows - start)
            writer.write_table(
                pa.table(
                    {
                        "score": random.random(size),
                        "country": pa.array(names[random.integers(0, len(names), size)], pa.string()),
                        "id": np.arange(start, start + size),
                    },
                    schema=schema,
                )
            )


def peak(curves: Path, data: Path, out: Path) -> int:
    """In KiB. With one thread in Arrow: how several meet moves it by 15%, whatever the size of the file."""
    command = [sys.executable, "-c", CODE, *(str(path) for path in (curves, data, out))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(run.stdout.split()[-1])


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_ten_times_the_rows_take_the_same_memory(tmp_path: Path, suffix: str) -> None:
    random = np.random.default_rng(0)
    segments = {"country": random.choice(COUNTRIES, 100_000).tolist()}
    labels = random.random(100_000) < 0.3
    curves = Calibrator(min_rows=100).fit(random.random(100_000), labels, segments=segments)
    curves.score_name = "score"
    curves.save(tmp_path / "curves.json")
    data, out = tmp_path / f"data.{suffix}", tmp_path / f"out.{suffix}"
    peaks = []
    for rows in (1_000_000, 10_000_000):
        write(data, rows)
        peaks.append(peak(tmp_path / "curves.json", data, out))
    data.unlink()  # large, and pytest keeps folders
    out.unlink()
    assert peaks[1] <= 1.1 * peaks[0], peaks
