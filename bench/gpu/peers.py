"""Times isofold beside torchisotonic, torchsort and a copy of the input: same tensors and rounds.

    python bench/gpu/peers.py [--json FILE] [--rounds 15] [--largest 1e8] [--shapes A,B] [--huge]

Needs torch; torchisotonic 0.2 and torchsort 0.1.10 where they are installed (both compile for the machine).
In a round each contender is called once, in a new random order. Times lie between two events on the stream
(wall clock on a CPU): `calls` of what a user calls, with allocations and checks, `replays` of the solver
captured in a graph, without Python. Stages and launches come from torch's profiler, memory from torch's
allocator, whose peak over one call is taken. --huge: a row of 1e10 floats too.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from cells import Cell, copy_bytes, floor
from contenders import Contender, contenders, draw, fits
from rich.console import Console
from rich.table import Table
from stages import profiled
from timing import Clock, captured, quartiles, rounds_of, summary

import isofold

LONG, MIDDLE, MILLION = 100_000_000, 10_000_000, 1_000_000
HUGE = 10_000_000_000
SIZES = [
    (1, LONG),
    (1, MIDDLE),
    (1, MILLION),
    (1, 100_000),
    (1, 10_000),
    (100, 100_000),
    (1_000, 10_000),
    (10_000, 1_000),
]
SIZES += [(100_000, 100), (MILLION, 16)]
DENSE = ("labels", "constant", "tens", "half", "cliff", "mirrored_cliff", "sawtooth5003", "sawtooth1e5")


def cells() -> Iterable[Cell]:
    for rows, length in SIZES:
        for shape in ("noise", "increasing", "decreasing"):
            yield Cell(shape, rows, length)
    for shape in DENSE:
        yield Cell(shape, 1, LONG)
    yield Cell("noise", 11_500, 100_000, ragged=True)
    for shape in ("noise", "increasing"):
        yield Cell(shape, 1, LONG, "float64")
    yield Cell("noise", 1, LONG, weighted=True)
    for dtype in ("float32", "float64"):
        yield Cell("noise", 1, MIDDLE, dtype, weighted=True)
        yield Cell("rates", 1, MIDDLE, dtype, weighted=True)
        yield Cell("decimals", 1, MIDDLE, dtype)
    yield Cell("noise", 1, MIDDLE, "float64")
    yield Cell("ninths", 1, MIDDLE, "float64")
    for rows, length in ((1, LONG), (MILLION, 16)):
        for shape in ("noise", "increasing"):
            yield Cell(shape, rows, length, call="gradient in values")
    yield Cell("noise", 1, LONG, weighted=True, call="gradient in values and weights")


def memory_of(contender: Contender) -> dict[str, int]:
    """Bytes of device memory that a call takes at its peak, what it returns included, and that alone."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = contender.call()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    kept = torch.cuda.memory_allocated() - before
    del result
    return {"peak_bytes": peak, "result_bytes": kept}


def measured(cell: Cell, device: str, rounds: int) -> dict[str, Any]:
    data = draw(cell, device)
    clock = Clock(device)
    found = contenders(cell, data)
    record: dict[str, Any] = asdict(cell) | {
        "elements": data.elements,
        "floor_bytes": floor(cell, data.elements).bytes,
        "copy_bytes": copy_bytes(cell, data.elements),
        "calls": {},
    }
    with torch.set_grad_enabled(not cell.is_fit):
        record["calls"] = summary(rounds_of(clock, {name: one.call for name, one in found.items()}, rounds))
        if not device.startswith("cuda"):
            return record
        graphs = {name: captured(one.solver) for name, one in found.items() if one.solver is not None}
        replays = {name: graph for name, graph in graphs.items() if graph is not None}
        if {"isofold", "copy"} <= replays.keys():
            record["replays"] = summary(rounds_of(clock, replays, rounds))
        del graphs, replays
        record["memory"] = {name: memory_of(one) for name, one in found.items()}
        record["stages"] = {
            name: [asdict(stage) for stage in profiled(one.call)]
            for name, one in found.items()
            if name != "torchsort"
        }
    return record


def huge_row(device: str, length: int) -> dict[str, Any]:
    """One row that fills most of a GPU: values, fit, flags and scratch. The copy goes where the fit was."""
    cell = Cell("noise", 1, length)
    data = draw(cell, device)
    clock = Clock(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    solve = fits(cell, data)["isofold"].call
    times = [clock.time(solve) for _ in range(4)][1:]
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    target = torch.empty_like(data.values)
    copies = [clock.time(lambda: target.copy_(data.values)) for _ in range(4)][1:]
    return asdict(cell) | {
        "elements": length,
        "ms": quartiles(times),
        "copy_ms": quartiles(copies),
        "peak_bytes": peak,
    }


def show(console: Console, records: list[dict[str, Any]], of: str) -> None:
    names = ["isofold", "torchisotonic", "torchsort", "copy"]
    heads = [f"{name}, ms" for name in names]
    table = Table("", "", *heads, "isofold / copy", "torchisotonic / isofold", title=of)
    for record in records:
        if of not in record:
            continue
        times = record[of]
        row = [f"{times[name]['ms'][1]:.3f}" if name in times else "" for name in names]
        row.append(f"{times['isofold']['to_copy'][1]:.2f}")
        row.append(f"{times['torchisotonic']['to_isofold'][1]:.2f}" if "torchisotonic" in times else "")
        cell = Cell.of(record)
        table.add_row(cell.size, cell.name, *row)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--largest", type=float, default=1e8, help="elements of a cell")
    parser.add_argument("--shapes", type=lambda text: text.split(","), help="only these")
    parser.add_argument("--huge", action="store_true", help="a row of 1e10 floats too (102 GB)")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
        "isofold": isofold.__version__,
        "commit": options.commit,
        "rounds": options.rounds,
        "cells": [],
    }

    def keep() -> None:
        # After every cell: a run that is cut short leaves what it has.
        if options.json:
            options.json.write_text(json.dumps(record, indent=1) + "\n")

    for cell in cells():
        if cell.expected_elements > options.largest:
            continue
        if options.shapes and cell.shape not in options.shapes:
            continue
        try:
            record["cells"].append(measured(cell, options.device, options.rounds))
        except RuntimeError as error:
            record["cells"].append(asdict(cell) | {"failed": str(error)})
            print(f"{cell.size} {cell.name}: {error}", flush=True)
        keep()
    if options.huge:
        record["huge"] = huge_row(options.device, HUGE)
        keep()
    console = Console(width=150)
    for of in ("calls", "replays"):
        show(console, [one for one in record["cells"] if "failed" not in one], of)


if __name__ == "__main__":
    main()
