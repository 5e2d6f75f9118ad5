"""Bytes that calls move between the GPU and its memory, and what their kernels wait for, by Nsight Compute.

    python bench/gpu/traffic.py --json FILE [--largest 1e8]

Runs itself under ncu (on the PATH; it may need permission to read hardware counters): a fixed list of calls,
each with a kernel before it that nothing else uses, so that the kernels of a call are those between two of
them. Fills and copies by the driver are not kernels and not counted. Caches are left as they are between
kernels, clocks too.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cells import Cell, copy_bytes, floor
from stages import short_name

MARKER = "frac_kernel"
METRICS = {
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "nanoseconds": "gpu__time_duration.sum",
    "instructions": "smsp__inst_executed.sum",
}
STALLS = ("long_scoreboard", "short_scoreboard", "wait", "no_instruction", "barrier", "branch_resolving")
# Of launches of one name, means weighted by their time.
RATES = {
    "memory_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
    "warps": "sm__warps_active.avg.per_cycle_active",
    "warp_latency": "smsp__average_warp_latency_per_inst_issued.ratio",
    **{stall: f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio" for stall in STALLS},
}
LONG = 100_000_000
CELLS = (
    *(Cell(shape, 1, LONG) for shape in ("noise", "increasing", "tens", "cliff")),
    Cell("noise", 1, LONG, "float64"),
    Cell("noise", 1, LONG, weighted=True),
    Cell("noise", 10_000, 1_000),
    Cell("noise", 1_000_000, 16),
    Cell("noise", 11_500, 100_000, ragged=True),
    Cell("noise", 1, LONG, call="gradient in values"),
)
# Others that miss what is asked of them: only what binds isofold.
SLOW = (
    *(Cell(shape, 1, LONG) for shape in ("labels", "decreasing", "half", "sawtooth5003", "sawtooth1e5")),
    *(Cell("noise", rows, length) for rows, length in ((1, 10**7), (1, 10**6), (100, 10**5), (1000, 10**4))),
    Cell("noise", 100_000, 100),
    Cell("noise", 100_000, 10_000, ragged=True),
    Cell("ninths", 1, 10**7, "float64"),
)
WHO = ("isofold", "torchisotonic")


@dataclass(frozen=True)
class Kernel:
    name: str
    read: float
    written: float
    nanoseconds: float
    instructions: float
    rates: dict[str, float] = field(default_factory=dict)


def kernels(lines: Iterable[str]) -> Iterator[Kernel]:
    """From ncu's `--csv --page raw --print-units base`; messages of its own stand between the rows."""
    rows = csv.reader(lines)
    columns: dict[str, int] = {}
    for row in rows:
        if "Kernel Name" in row:
            columns = {title: i for i, title in enumerate(row)}
        elif len(row) == len(columns) > 0 and row[columns["ID"]]:  # the row of units has no number
            found = {
                name: float(row[columns[metric]].replace(",", "") or 0)
                for name, metric in (METRICS | RATES).items()
            }
            rates = {name: found.pop(name) for name in RATES}
            yield Kernel(row[columns["Kernel Name"]], **found, rates=rates)


def by_call(found: Iterable[Kernel]) -> list[list[Kernel]]:
    """The kernels after each marker."""
    calls: list[list[Kernel]] = []
    for kernel in found:
        if MARKER in kernel.name:
            calls.append([])
        elif calls:
            calls[-1].append(kernel)
    return calls


def summed(call: list[Kernel]) -> dict[str, Any]:
    stages: dict[str, dict[str, float]] = {}
    for kernel in call:
        names = ("launches", *METRICS, *RATES)
        stage = stages.setdefault(short_name(kernel.name), dict.fromkeys(names, 0.0))
        stage["launches"] += 1
        for name in METRICS:
            stage[name] += getattr(kernel, name)
        for name, rate in kernel.rates.items():
            stage[name] += rate * kernel.nanoseconds
    for stage in stages.values():
        for name in RATES:
            stage[name] = round(stage[name] / stage["nanoseconds"], 3)
    return {
        "read_bytes": sum(kernel.read for kernel in call),
        "written_bytes": sum(kernel.written for kernel in call),
        "stages": [{"name": name, **figures} for name, figures in stages.items()],
    }


def run_calls(largest: float, plan: Path) -> None:
    """What ncu looks at: every call once, after one that is not looked at. Writes down what they were."""
    import torch
    from contenders import contenders, draw

    done = []
    marker = torch.full((1,), 0.5, device="cuda")
    for cell in (*CELLS, *SLOW):
        if cell.expected_elements > largest:
            continue
        data = draw(cell, "cuda")
        for name, contender in contenders(cell, data).items():
            if name not in WHO or (cell in SLOW and name != "isofold"):
                continue
            with torch.set_grad_enabled(not cell.is_fit):
                contender.call()
                torch.cuda.synchronize()
                torch.cuda.profiler.start()
                torch.frac(marker)
                contender.call()
                torch.cuda.synchronize()
                torch.cuda.profiler.stop()
            bytes_asked = {"floor_bytes": floor(cell, data.elements).bytes}
            copied = {"copy_bytes": copy_bytes(cell, data.elements)}
            done.append(asdict(cell) | {"contender": name, "elements": data.elements} | bytes_asked | copied)
    plan.write_text(json.dumps(done))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--largest", type=float, default=1e8)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--calls", type=Path, help="only make the calls, and write here which: what ncu runs")
    options = parser.parse_args()
    if options.calls:
        run_calls(options.largest, options.calls)
        return
    if not options.json:
        parser.error("--json says where the figures go")
    with tempfile.TemporaryDirectory() as folder:
        plan, log = Path(folder) / "calls.json", Path(folder) / "kernels.csv"
        look = ["ncu", "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none"]
        look += ["--metrics", ",".join((METRICS | RATES).values())]
        look += ["--csv", "--page", "raw", "--print-units", "base"]
        look += ["--print-kernel-base", "demangled", "--log-file", str(log)]
        itself = [sys.executable, __file__, "--calls", str(plan), "--largest", str(options.largest)]
        subprocess.run([*look, *itself], check=True)
        calls = json.loads(plan.read_text())
        with log.open(newline="") as file:
            groups = by_call(kernels(file))
    if len(groups) != len(calls):
        raise SystemExit(f"{len(calls)} calls were made and ncu saw {len(groups)}: nothing written")
    record = {
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "calls": [call | summed(group) for call, group in zip(calls, groups, strict=True)],
    }
    options.json.write_text(json.dumps(record, indent=1) + "\n")
    for call in record["calls"]:
        moved = call["read_bytes"] + call["written_bytes"]
        print(
            f"{Cell.of(call).size} {Cell.of(call).name}, {call['contender']}: {moved / 1e6:.0f} MB, "
            f"{moved / call['floor_bytes']:.2f} times the floor"
        )


if __name__ == "__main__":
    main()
