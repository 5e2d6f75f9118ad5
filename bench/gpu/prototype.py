"""Runs another program that solves the same rows, and keeps its times: the prototype that isofold began with.

    python bench/gpu/prototype.py PATH --json FILE [--runs "b" "7" "8 noise dec"]

It is no part of this repository. What its runs print is read by scripts/compare_gpu.py, which says in what
form.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from compare_gpu import prototype_times

RUNS = ("b", "7", "7s", "8 noise lab dec const inc cliff half")
LIMIT_S = 180


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path")
    parser.add_argument("--runs", nargs="+", default=RUNS)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    output = ""
    for run in options.runs:
        command = [options.path, *run.split()]
        done = subprocess.run(command, check=False, timeout=LIMIT_S, stdout=subprocess.PIPE, text=True)
        output += done.stdout
        if done.returncode:
            print(f"{run}: exit status {done.returncode}", file=sys.stderr)
    print(output)
    times = prototype_times(output)
    cells = [asdict(cell) | asdict(time) for cell, time in times.items()]
    record = {"date": datetime.date.today().isoformat(), "runs": list(options.runs), "cells": cells}
    options.json.write_text(json.dumps(record, indent=1) + "\n")
    sys.exit(0 if cells else 1)


if __name__ == "__main__":
    main()
