"""How far fits and gradients of isofold.torch, torchisotonic and torchsort are from a float64 solution.

    python bench/torch/accuracy.py [--device cuda] [--largest 1e6] [--json FILE]

The measures are those of Appendix C of 'Merge Hulls Without Copying Vertices': soft ranks of standard normal
float32 rows, strengths 1 and 1/n, of which every solver gets the same float32 problem z = s - w. Reference:
SciPy's fit of that z in float64, on the host. Gradients are A g of a standard normal g, where A takes means
over blocks; as A g differs from block to block, its changes mark the blocks that a solver used.

torchisotonic 0.2 and torchsort 0.1.10 are judged where they are installed.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from differentiable import Cell, Function, fits
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import isotonic_regression
from torch import Tensor

import isofold

Floats = NDArray[np.float64]

LENGTHS = (100, 1_000, 10_000, 100_000, 1_000_000)
ELEMENTS = 100_000  # of a cell, in rows of at most that length


@dataclass(frozen=True)
class Reference:
    """Of rows; shapes are (rows, length)."""

    fit: Floats
    gradient: Floats
    starts: NDArray[np.bool_]


@dataclass(frozen=True)
class Errors:
    """largest : the largest absolute error, to the reference's largest absolute value
    l2 : the l2 norm of the errors, to that of the reference
    boundaries : how many block boundaries differ, either way
    apart : the largest step of the reference's fit at one that the solver lacks, to the fit's largest value;
        0 where it lacks none, or only those between equal means
    """

    largest: float
    l2: float
    gradient_largest: float
    gradient_l2: float
    boundaries: int
    apart: float


def reference(z: Floats, g: Floats) -> Reference:
    """The non-increasing fit of every row of z, and A g."""
    fit, gradient, starts = np.empty_like(z), np.empty_like(z), np.zeros(z.shape, np.bool_)
    for row in range(len(z)):
        found = isotonic_regression(z[row], increasing=False)
        ends = found.blocks
        fit[row] = found.x
        starts[row, ends[:-1]] = True
        lengths = np.diff(ends)
        gradient[row] = np.repeat(np.add.reduceat(g[row], ends[:-1]) / lengths, lengths)
    return Reference(fit, gradient, starts)


def changes(x: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a row begins or its value is another than before."""
    found = np.ones(x.shape, np.bool_)
    found[:, 1:] = x[:, 1:] != x[:, :-1]
    return found


def _relative(found: Floats, right: Floats) -> tuple[float, float]:
    error = found - right
    return (
        float(np.abs(error).max() / np.abs(right).max()),
        float(np.linalg.norm(error) / np.linalg.norm(right)),
    )


def errors(fit: Floats, gradient: Floats, right: Reference) -> Errors:
    starts = changes(gradient)
    # Those of the reference by the same rule, so that neither sees blocks of equal A g.
    expected = changes(right.gradient.astype(np.float32))
    steps = np.zeros_like(right.fit)
    steps[:, 1:] = np.abs(np.diff(right.fit, axis=1))
    apart = steps[expected & ~starts].max(initial=0.0) / np.abs(right.fit).max()
    return Errors(
        *_relative(fit, right.fit),
        *_relative(gradient, right.gradient),
        int((starts != expected).sum()),
        float(apart),
    )


def problem(x: Tensor, epsilon: float) -> Tensor:
    """The float32 problem z = s - w of the soft rank of every row of x."""
    s = (x / epsilon).sort(-1, descending=True).values
    return s - torch.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)


def cells(largest: float) -> Iterable[Cell]:
    for strength in ("1", "1/n"):
        for length in LENGTHS:
            if length <= largest:
                yield Cell("fit and gradient", max(1, ELEMENTS // length), length, strength)


def solved(function: Function, z: Tensor, g: Tensor) -> tuple[Floats, Floats]:
    leaf = z.clone().requires_grad_()
    fit = function(leaf)
    (gradient,) = torch.autograd.grad(fit, leaf, g)
    return fit.detach().cpu().double().numpy(), gradient.cpu().double().numpy()


def judged(cell: Cell, device: str) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(11)
    x, g = (torch.randn(cell.rows, cell.length, generator=generator) for _ in range(2))
    z = problem(x, cell.epsilon)
    right = reference(z.double().numpy(), g.double().numpy())
    found: dict[str, Any] = asdict(cell) | {"blocks": int(right.starts.sum())}
    for name, function in fits(cell).items():
        found[name] = asdict(errors(*solved(function, z.to(device), g.to(device)), right))
    return found


def show(console: Console, lines: list[dict[str, Any]]) -> None:
    table = Table("rows x length", "strength", "blocks", "", "largest", "l2", "gradient: largest", "l2")
    table.add_column("boundaries")
    table.add_column("apart")
    for line in lines:
        about = [f"{line['rows']} x {line['length']}", line["strength"], f"{line['blocks']}"]
        for name in ("isofold", "torchisotonic", "torchsort"):
            if name in line:
                figures = [f"{v}" if isinstance(v, int) else f"{v:.1e}" for v in line[name].values()]
                table.add_row(*about, name, *figures)
                about = ["", "", ""]
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--largest", type=float, default=1e6, help="length of a row")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
        "isofold": isofold.__version__,
        "commit": options.commit,
        "cells": [],
    }
    for cell in cells(options.largest):
        record["cells"].append(judged(cell, options.device))
        if options.json:
            options.json.write_text(json.dumps(record, indent=1) + "\n")
    show(Console(width=150), record["cells"])


if __name__ == "__main__":
    main()
