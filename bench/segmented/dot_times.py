"""segment_dot on one thread of a CPU beside NumPy's dot: 1e7 elements, each instruction set in turn.

    python bench/segmented/dot_times.py [--size 1e7] [--rounds 31] [--json FILE]

A process for each instruction set (ISOFOLD_INSTRUCTIONS), in which both are called in a new random order
every round on the same arrays, NumPy's BLAS with one thread; medians, quartiles, and ratios taken within
a round.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETS = ("avx512", "avx2", "plain")


def measure(size: int, rounds: int) -> list[dict[str, Any]]:
    import numpy as np

    import isofold

    rows = []
    for dtype in ("float64", "float32"):
        draw = np.random.default_rng(1)
        a, b = (draw.standard_normal(size).astype(dtype) for _ in range(2))
        calls = {
            "numpy": lambda a=a, b=b: np.dot(a, b),
            "isofold": lambda a=a, b=b: isofold.segment_dot(a, b, threads=1),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(rounds + 2):
            order = list(calls)
            random.shuffle(order)
            for name in order:
                start = time.perf_counter()
                calls[name]()
                if turn >= 2:
                    times[name].append(1000 * (time.perf_counter() - start))
        ratios = [x / y for x, y in zip(times["isofold"], times["numpy"], strict=True)]
        rows.append(
            {
                "dtype": dtype,
                "ms": {name: statistics.quantiles(found, n=4) for name, found in times.items()},
                "ratio": statistics.quantiles(ratios, n=4),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        json.dump(measure(int(options.size), options.rounds), sys.stdout)
        return
    sys.path.append(str(Path(__file__).parents[1] / "cpu"))
    from machine import describe

    found = {}
    for instructions in SETS:
        environment = {
            **os.environ,
            "ISOFOLD_INSTRUCTIONS": instructions,
            **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        command = [sys.executable, __file__, "--here", f"--size={options.size}", f"--rounds={options.rounds}"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found[instructions] = json.loads(done.stdout)
        for row in found[instructions]:
            ms, ratio = row["ms"], row["ratio"]
            print(
                f"{instructions:7} {row['dtype']}  isofold {ms['isofold'][1]:7.3f} ms  "
                f"numpy {ms['numpy'][1]:7.3f} ms  ratio {ratio[1]:.2f} ({ratio[0]:.2f} to {ratio[2]:.2f})"
            )
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "size": int(options.size),
            "rounds": options.rounds,
            "machine": describe(),
            "instructions": found,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
