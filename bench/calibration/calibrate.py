"""Time and memory of `isofold calibrate` by segment on generated rows.

    python bench/calibration/calibrate.py --rows 45e6

The rows (generate.py) go to a temporary folder, about 10 bytes each, and are deleted afterwards. The command
runs in a child process under Python's profiler, whose cost is a few calls a batch. The peak of the child's
resident set comes from the system, as wait4 gives it. The result is printed and written to
bench/results/calibration-<rows>.json; the exit status is 1 if the peak reached --limit.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generate import SEGMENTS, generate

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cpu"))

from machine import describe  # noqa: E402 - beside the other benchmark

GIB = 2**30
LISTED = 25


@dataclass(frozen=True)
class Run:
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    stages: list[dict[str, Any]]


# Not cProfile's own command line, which forgets the exit status.
PROFILED = """
import cProfile, sys
from isofold.cli import main
profile = cProfile.Profile()
path = sys.argv.pop(1)
try:
    profile.runcall(main)
finally:
    profile.dump_stats(path)
"""


def run_command(rows: Path, folder: Path) -> Run:
    profile = folder / "profile"
    command = [
        *(sys.executable, "-c", PROFILED, str(profile), "calibrate", str(rows)),
        *("--score", "score", "--label", "clicked", "--segment", "campaign"),
        *("--out", str(folder / "curves.json")),
    ]
    started = time.perf_counter()
    # posix_spawn and not fork: ru_maxrss of a forked child starts at the parent's.
    child = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"isofold calibrate ended with status {os.waitstatus_to_exitcode(status)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, stages_of(profile))


def stages_of(profile: Path) -> list[dict[str, Any]]:
    """isofold's own functions, and what they call into, by the time spent in and below each."""
    entries = []
    for (file, _, name), (_, calls, own, total, _) in pstats.Stats(str(profile)).stats.items():  # type: ignore[attr-defined]
        native = file == "~" and ("isofold" in name or "method" in name or "built-in" in name)
        if native and "exec" not in name and own > 0.01 * total:
            entries.append((own, own, calls, name.strip("<>")))
        elif "/isofold/" in file:
            module = file.partition("/isofold/")[2].removesuffix(".py").replace("/", ".")
            entries.append((total, own, calls, f"{module}.{name}"))
    entries.sort(reverse=True)
    return [
        {"function": name, "seconds": round(total, 3), "own_seconds": round(own, 3), "calls": calls}
        for total, own, calls, name in entries[:LISTED]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=45_000_000)
    parser.add_argument("--limit", type=float, default=8.0, help="GiB that the peak must stay below")
    parser.add_argument("--out", type=Path, help="default: bench/results/calibration-<rows>.json")
    parser.add_argument("--scratch", type=Path, help="folder for the rows; default: the system's")
    options = parser.parse_args()
    out: Path = options.out or HERE.parent / "results" / f"calibration-{options.rows}.json"

    machine = describe()  # now: what is committed while it runs did not run
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch)
        started = time.perf_counter()
        generate(folder / "rows.parquet", options.rows)
        generated, size = time.perf_counter() - started, (folder / "rows.parquet").stat().st_size
        print(f"{options.rows:,} rows, {size / 1e6:,.0f} MB, generated in {generated:.0f} s", flush=True)
        run = run_command(folder / "rows.parquet", folder)

    print(f"{run.seconds:.1f} s ({run.cpu_seconds:.1f} s of processor), peak {run.peak_bytes / GIB:.2f} GiB")
    print(f"{'seconds':>9} {'own':>9} {'calls':>9}  function")
    for stage in run.stages:
        print("{seconds:9.2f} {own_seconds:9.2f} {calls:9,}  {function}".format(**stage))
    result = {
        "command": "isofold calibrate rows.parquet --score score --label clicked --segment campaign",
        "rows": options.rows,
        "segments": SEGMENTS,
        "file_bytes": size,
        "seconds": round(run.seconds, 3),
        "cpu_seconds": round(run.cpu_seconds, 3),
        "peak_bytes": run.peak_bytes,
        "load_average": os.getloadavg(),
        "stages": run.stages,
        "machine": machine,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {out}")
    if run.peak_bytes >= options.limit * GIB:
        raise SystemExit(f"the peak reached {options.limit} GiB")


if __name__ == "__main__":
    main()
