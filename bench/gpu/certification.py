"""What certification costs: time_gpu and time_gpu_uncertified in turns, in random order.

    python bench/gpu/certification.py TIME_GPU TIME_GPU_UNCERTIFIED [--json FILE] [--rounds 3]

The second is the same benchmark with every undecided turn and rounding taken as it stands: not exact, and on
near ties it need not end, so it gets families without any, and a limit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from cells import Cell

SHAPES = "noise,labels_straight,decreasing"
LIMIT_S = 60


def figures(binary: str, repeats: int, largest: int) -> dict[str, Any]:
    """What one run of a benchmark writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        options = ["--cells", "table", "--gradients", "0", "--shapes", SHAPES, "--repeats", str(repeats)]
        options += ["--largest", str(largest), "--json", str(file)]
        subprocess.run([binary, *options], check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(file.read_text())
        return found


def paired(certified: list[dict[str, Any]], plain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By cell: both medians of every round, and the ratio of the medians over rounds."""
    lines: dict[Cell, dict[str, list[float]]] = {}
    for kind, runs in (("certified_ms", certified), ("uncertified_ms", plain)):
        for run in runs:
            for record in run["cells"]:
                line = lines.setdefault(Cell.of(record), {"certified_ms": [], "uncertified_ms": []})
                line[kind].append(record["ms"][1])
    return [
        {
            "shape": cell.shape,
            "rows": cell.rows,
            "length": cell.length,
            "dtype": cell.dtype,
            "weighted": cell.weighted,
            "ragged": cell.ragged,
            **line,
            "cost": statistics.median(line["certified_ms"]) / statistics.median(line["uncertified_ms"]),
        }
        for cell, line in lines.items()
        if all(line.values())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("certified")
    parser.add_argument("uncertified")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--largest", type=int, default=200_000_000, help="elements of a cell")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    order = random.Random(1)
    runs: dict[str, list[dict[str, Any]]] = {options.certified: [], options.uncertified: []}
    for _ in range(options.rounds):
        for binary in order.sample(list(runs), 2):
            runs[binary].append(figures(binary, options.repeats, options.largest))
    lines = paired(runs[options.certified], runs[options.uncertified])
    for line in lines:
        print(f"{Cell.of(line).size} {Cell.of(line).name}: {100 * (line['cost'] - 1):.0f}%")
    if options.json:
        about = {"date": datetime.date.today().isoformat(), "commit": options.commit}
        device = runs[options.certified][0]["device"]
        record = about | {"device": device, "rounds": options.rounds, "cells": lines}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
