"""Times isofold beside torchisotonic, torchsort and a copy of the input, and measures how exact each is.

    python bench/gpu/peers.py [--device cuda] [--rounds 15] [--largest 1e8] [--part times] [--json FILE]

Needs torch; torchisotonic 0.2 and torchsort 0.1.10 where they are installed (both compile for the machine: a
C++ compiler and, for a GPU, the CUDA toolkit). All contenders get the same tensor in the same process. In a
round each is called once, in a new random order; times lie between two events on the stream, or are wall
clock on a CPU. Medians and quartiles; ratios are medians of ratios within a round.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accuracy import accuracy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import isofold

Fit = Callable[[Any, Any], Any]

SHAPES = {
    "noise": lambda t, draw: 3 * t + draw.standard_normal(t.shape, dtype=np.float32),
    "labels": lambda t, draw: (draw.random(t.shape, dtype=np.float32) < 0.02 + 0.96 * t).astype(np.float32),
    "decreasing": lambda t, draw: -3 * t + 0.1 * draw.standard_normal(t.shape, dtype=np.float32),
    "increasing": lambda t, draw: np.sqrt(np.arange(1, t.shape[-1] + 1)) + 0 * t,
    "constant": lambda t, draw: np.full(t.shape, 0.7, dtype=np.float32),
}
SIZES = [(1, 100_000_000), (1, 10_000_000), (1, 1_000_000), (100, 100_000), (1_000, 10_000), (10_000, 1_000)]
SIZES += [(100_000, 100), (1_000_000, 16)]
# torchsort walks a row on one thread.
LONGEST_FOR_TORCHSORT = 1_000_000


@dataclass(frozen=True)
class Cell:
    shape: str
    rows: int
    length: int
    dtype: str = "float32"
    weighted: bool = False

    def draw(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        draw = np.random.default_rng(7)
        ramp = np.broadcast_to(
            np.arange(self.length, dtype=np.float32) / self.length, (self.rows, self.length)
        )
        values = np.ascontiguousarray(SHAPES[self.shape](ramp, draw).astype(self.dtype))
        weights = np.exp(16 * draw.random(values.shape) - 8).astype(self.dtype) if self.weighted else None
        return values, weights


def contenders(cell: Cell) -> dict[str, Fit]:
    """Increasing fits of a batch; torchsort knows only decreasing ones without weights."""
    found: dict[str, Fit] = {"isofold": lambda y, w: isofold.isotonic_regression(y, weights=w).x}
    try:
        solve = importlib.import_module("torchisotonic").isotonic
        found["torchisotonic"] = lambda y, w: solve(y, w)
    except ImportError:
        pass
    if not cell.weighted and cell.length <= LONGEST_FOR_TORCHSORT:
        try:
            solvers = importlib.import_module("torchsort.ops").isotonic_l2
            found["torchsort"] = lambda y, w: solvers[y.device.type](y)
        except ImportError:
            pass
    return found


class Clock:
    """Milliseconds of calls on a device."""

    def __init__(self, device: str) -> None:
        self.cuda = device.startswith("cuda")

    def time(self, call: Callable[[], Any]) -> float:
        if not self.cuda:
            start = time.perf_counter()
            call()
            return 1e3 * (time.perf_counter() - start)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)


def quartiles(figures: list[float]) -> list[float]:
    return [float(q) for q in np.quantile(figures, [0.25, 0.5, 0.75])]


def timed(cell: Cell, device: str, rounds: int) -> dict[str, Any]:
    values, weights = cell.draw()
    y = torch.from_numpy(values).to(device)
    w = None if weights is None else torch.from_numpy(weights).to(device)
    out = torch.empty_like(y)
    calls = {name: lambda fit=fit: fit(y, w) for name, fit in contenders(cell).items()}
    calls["copy"] = lambda: out.copy_(y) if w is None else (out.copy_(y), out.copy_(w))
    clock = Clock(device)
    order = random.Random(1)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-2, rounds):
        names = list(calls)
        order.shuffle(names)
        for name in names:
            ms = clock.time(calls[name])
            if turn >= 0:
                times[name].append(ms)
    return asdict(cell) | {
        name: {
            "ms": quartiles(taken),
            "to_copy": quartiles(list(np.divide(taken, times["copy"]))),
            "to_isofold": quartiles(list(np.divide(taken, times["isofold"]))),
        }
        for name, taken in times.items()
    }


def measured(cell: Cell, device: str) -> list[dict[str, Any]]:
    """Every contender's accuracy, and SciPy's on the same values."""
    values, weights = cell.draw()
    y64 = values[0].astype(np.float64)
    w64 = None if weights is None else weights[0].astype(np.float64)
    exact = isofold.isotonic_regression(y64, weights=w64).x
    epsilon = float(np.finfo(values.dtype).eps)
    fits = {}
    y = torch.from_numpy(values).to(device)
    w = None if weights is None else torch.from_numpy(weights).to(device)
    for name, fit in contenders(cell).items():
        if name != "torchsort":
            fits[name] = torch.as_tensor(fit(y, w)).cpu().numpy()[0].astype(np.float64)
    scipy = importlib.import_module("scipy.optimize")
    fits["SciPy, float64"] = scipy.isotonic_regression(y64, weights=w64).x
    return [
        asdict(cell) | {"contender": name} | asdict(accuracy(y64, w64, fit, exact, epsilon))
        for name, fit in fits.items()
    ]


def show_times(console: Console, cells: list[dict[str, Any]]) -> None:
    names = ["isofold", "torchisotonic", "torchsort", "copy"]
    table = Table(
        "rows", "of", "shape", *(f"{name}, ms" for name in names), "isofold / copy", "torchisotonic / isofold"
    )
    for cell in cells:
        row = [f"{cell[name]['ms'][1]:.3f}" if name in cell else "" for name in names]
        row.append(f"{cell['isofold']['to_copy'][1]:.2f}")
        row.append(f"{cell['torchisotonic']['to_isofold'][1]:.2f}" if "torchisotonic" in cell else "")
        table.add_row(
            f"{cell['rows']:,}",
            f"{cell['length']:,}",
            cell["shape"] + (", weighted" if cell["weighted"] else ""),
            *row,
        )
    console.print(table)


def show_accuracy(console: Console, lines: list[dict[str, Any]]) -> None:
    figures = ["step_down", "deviation", "objective", "kkt"]
    table = Table("shape", "elements", "type", "contender", *figures)
    for line in lines:
        shape = line["shape"] + (", weighted" if line["weighted"] else "")
        table.add_row(
            shape,
            f"{line['length']:,}",
            line["dtype"],
            line["contender"],
            *(f"{line[f]:.1e}" for f in figures),
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--largest", type=float, default=1e8, help="elements of a cell")
    parser.add_argument("--part", choices=["times", "accuracy"], help="only this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console(width=150)
    sizes = [size for size in SIZES if size[0] * size[1] <= options.largest]
    record: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
        "isofold": isofold.__version__,
        "rounds": options.rounds,
    }
    if options.part != "accuracy":
        cells = [Cell(shape, *size) for size in sizes for shape in ("noise", "decreasing", "increasing")]
        cells += [Cell(shape, 1, size[1]) for size in sizes[:2] for shape in ("labels", "constant")]
        cells += [Cell("noise", *sizes[0], weighted=True), Cell("noise", *sizes[0], dtype="float64")]
        record["times"] = [timed(cell, options.device, options.rounds) for cell in cells]
        show_times(console, record["times"])
    if options.part != "times":
        lengths = [n for n in (1_000, 100_000, 10_000_000) if n <= options.largest]
        record["accuracy"] = [
            line
            for shape in SHAPES
            for weighted in (False, True)
            for dtype in ("float32", "float64")
            for n in lengths
            for line in measured(Cell(shape, 1, n, dtype, weighted), options.device)
        ]
        show_accuracy(console, record["accuracy"])
    if options.json:
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
