"""The paper's accuracy measures for isofold, torchisotonic, SciPy and scikit-learn on its families.

    python bench/gpu/measure_accuracy.py [--json FILE] [--largest 1e7] [--workers N] [--device cpu]

isofold and torchisotonic fit on the device, SciPy and scikit-learn on the host; everything is judged in
double-double arithmetic (accuracy.py) by processes beside. SciPy computes in float64 whatever it is given,
and so is only compared there as what it is. Families: those that Section 7.6 of the paper names, with weights
none, ordinary (1/2 to 3/2) and extreme (e^-8 to e^8), and its cancelling rows.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import Accuracy, accuracy, exact_fit
from cells import Cell
from rich.console import Console
from rich.table import Table

SHAPES = ("noise", "labels", "increasing", "decreasing", "sawtooth5003", "cliff", "constant", "consecutive")
LONGEST_SHAPES = ("noise", "increasing", "consecutive")
WEIGHTINGS = (None, "ordinary", "extreme")
LENGTHS = (1_000, 100_000, 1_000_000, 10_000_000)
CANCELLATION = tuple(f"cancellation_1e{k}" for k in (3, 6, 9, 12))
CANCELLATION_LENGTHS = (500, 100_000)

Case = tuple[Cell, str | None]


def cases() -> Iterable[Case]:
    """Longest first: they take longest to judge."""
    for length in reversed(LENGTHS):
        for shape in LONGEST_SHAPES if length == LENGTHS[-1] else SHAPES:
            for weighting in WEIGHTINGS:
                for dtype in ("float32", "float64"):
                    yield Cell(shape, 1, length, dtype, weighted=weighting is not None), weighting
    for shape in CANCELLATION:
        for length in CANCELLATION_LENGTHS:
            for dtype in ("float32", "float64"):
                yield Cell(shape, 1, length, dtype), None


def judge(file: Path) -> dict[str, dict[str, float]]:
    """By contender. The file: values, weights or none of them, and fits under the contenders' names."""
    import isofold

    with np.load(file) as kept:
        arrays = {name: kept[name] for name in kept.files}
    file.unlink()
    values = arrays.pop("values")
    weights = arrays.pop("weights", None)
    y = values.astype(np.float64)
    w = None if weights is None else weights.astype(np.float64)
    # Where blocks start is only proposed by isofold, on the host: exact_fit proves it or refuses.
    starts = np.zeros(len(y), bool)
    starts[isofold.isotonic_regression(y, weights=w).blocks[:-1]] = True
    exact = exact_fit(y, w, starts)
    arrays["SciPy, float64"] = importlib.import_module("scipy.optimize").isotonic_regression(y, weights=w).x
    arrays["scikit-learn"] = importlib.import_module("sklearn.isotonic").isotonic_regression(
        values, sample_weight=weights
    )
    epsilon = float(np.finfo(values.dtype).eps)
    found = {
        name: asdict(accuracy(y, w, fit.astype(np.float64), exact, epsilon)) for name, fit in arrays.items()
    }
    return {**found, "exact fit": {"error": exact.error}}


def fitted(case: Case, device: str, file: Path) -> None:
    """Fits on the device, into a file with the rows."""
    import torch
    from contenders import draw, fits

    cell, weighting = case
    data = draw(cell, device, weighting)
    arrays = (
        {"values": data.values} if data.weights is None else {"values": data.values, "weights": data.weights}
    )
    with torch.no_grad():
        for name, contender in fits(cell, data).items():
            if name != "torchsort":
                arrays[name] = contender.call()
    np.savez(file, **{name: np.asarray(array.cpu())[0] for name, array in arrays.items()})


def lines_of(case: Case, judged: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    cell, weighting = case
    about = {"shape": cell.shape, "length": cell.length, "dtype": cell.dtype, "weights": weighting or "none"}
    error = judged.pop("exact fit")["error"]
    return [about | {"contender": name} | measures | {"error": error} for name, measures in judged.items()]


def show(console: Console, lines: list[dict[str, Any]]) -> None:
    """The worst of every measure, by type and contender."""
    names = list(Accuracy.__annotations__)
    table = Table("type", "contender", *(f"worst {name}" for name in names))
    for dtype in ("float32", "float64"):
        for contender in dict.fromkeys(line["contender"] for line in lines):
            these = [line for line in lines if (line["dtype"], line["contender"]) == (dtype, contender)]
            if these:
                table.add_row(
                    dtype, contender, *(f"{max(line[name] for line in these):.1e}" for name in names)
                )
    console.print(table)


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--largest", type=float, default=1e7)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) * 3 // 4))
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    lines: list[dict[str, Any]] = []
    waiting: dict[Future[Any], Case] = {}
    # Fresh processes: a fork of one that uses CUDA can do nothing with it, and need not.
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(dir=memory) as folder,
        ProcessPoolExecutor(options.workers, mp_context=context) as pool,
    ):
        chosen = [case for case in cases() if case[0].length <= options.largest]
        for number, case in enumerate(chosen):
            if len(waiting) >= 2 * options.workers:  # or the files would fill the memory
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    lines += lines_of(waiting.pop(done), done.result())
            file = Path(folder) / f"{number}.npz"
            fitted(case, options.device, file)
            waiting[pool.submit(judge, file)] = case
        for done in as_completed(waiting):
            lines += lines_of(waiting[done], done.result())
    lines.sort(key=lambda line: json.dumps(line))
    show(Console(width=150), lines)
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu",
            "commit": options.commit,
            "versions": {
                name: version(name) for name in ("isofold", "torchisotonic", "scipy", "scikit-learn")
            },
            "lines": lines,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")


def version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as found

    try:
        return found(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
