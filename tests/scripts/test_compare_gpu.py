"""scripts/compare_gpu.py reads both kinds of line, takes the least time, says what is slow or missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "compare_gpu.py"
LONG = (
    "{family:<6} n {n:9d} R {rows:7d} unc 0 dense 0 dev 1.00e-07 stepdown 0.00e+00 | dt 0.01 k2d 0.02| "
    "nodense 0.0600 total {ms:.4f} graph 0.0600 k1 0.0300 root 0 k2 0.0150 copy 0.0300 vtx 120 mem 0.5x\n"
)
SHORT = "SHORT {family:<6} n {n} R {rows} dev 1.00e-07 stepdown 0.00e+00 | {ms:.4f} ms copy 0.0300\n"


def figure(shape: str, rows: int, length: int, ms: float, **more: object) -> dict[str, object]:
    known = {"dtype": "float32", "weighted": False, "ragged": False, "copy_ms": [0.02, 0.03, 0.04]}
    return {"shape": shape, "rows": rows, "length": length, "ms": [0.5 * ms, ms, 2 * ms], **known, **more}


def compare(tmp_path: Path, cells: list[dict[str, object]], output: str) -> tuple[int, str, str]:
    figures, text, markdown = tmp_path / "figures.json", tmp_path / "output.txt", tmp_path / "table.md"
    figures.write_text(json.dumps({"device": "a GPU", "commit": "abc", "cells": cells}))
    text.write_text("WS 12345 B, k1 CTAs/SM 4 (using 4)\n" + output)
    command = [sys.executable, str(SCRIPT), str(figures), str(text), "--markdown", str(markdown)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout, markdown.read_text()


def test_the_least_time_of_a_cell_counts(tmp_path: Path) -> None:
    output = LONG.format(family="noise", n=1000, rows=10000, ms=0.2)
    output += SHORT.format(family="noise", n=1000, rows=10000, ms=0.1)
    code, table, markdown = compare(tmp_path, [figure("noise", 10000, 1000, 0.14)], output)
    assert code == 0
    assert " ".join(table.splitlines()[1].split()) == "noise 10,000 x 1,000 0.1400 4.67 0.1000 3.33 1.40"
    assert "1 cells: 1 within 1.5 times the prototype, 0 above, 0 missing." in markdown
    code, table, _ = compare(tmp_path, [figure("noise", 10000, 1000, 0.16)], output)
    assert code == 1
    assert "1.60  above" in table


def test_only_like_is_compared_with_like(tmp_path: Path) -> None:
    output = LONG.format(family="lab", n=100000000, rows=1, ms=0.4)
    others = [
        figure("labels_straight", 1, 100000000, 0.1, weighted=True),
        figure("labels_straight", 1, 100000000, 0.1, dtype="float64"),
        figure("labels_straight", 1, 100000000, 0.1, ragged=True),
        figure("labels_straight", 1, 100000000, 0.1, call="gradient in values"),
        figure("labels", 1, 100000000, 0.1),
        figure("labels_straight", 1, 10000000, 0.1),
    ]
    code, table, markdown = compare(tmp_path, others, output)
    assert code == 1
    assert "missing" in table
    assert "| labels_straight | 1 x 100,000,000 | - | - | 0.4000 | 13.33 | - | missing |" in markdown
