"""Fits, gradients, soft ranks and training steps of isofold.torch beside torchisotonic and torchsort.

    python bench/torch/differentiable.py [--device cuda] [--rounds 15] [--largest 1e8] [--json FILE]

The cells are those of tables 1, 5 and 6 of 'Merge Hulls Without Copying Vertices': non-increasing unweighted
float32 fits, the fit and its gradient in y, the soft rank with its gradient (L2, strengths 1 and 1/n), and a
step of training (scorer 32 -> 128 -> 1, soft ranks within every query, Adam), of standard normal values.
torchisotonic has no soft rank; as in the paper it is given torchsort's steps around its own solver.

torchisotonic 0.2 and torchsort 0.1.10 are timed where they are installed; torchsort walks a row on one thread
and is left out above 1e6 elements a row. In a round each is called once, in a new random order; medians and
quartiles over rounds, ratios within a round.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import isofold
from isofold.torch import isotonic_regression, soft_rank

sys.path.append(str(Path(__file__).resolve().parents[1] / "gpu"))

from timing import Clock, rounds_of, summary

LONGEST_FOR_TORCHSORT = 1_000_000
FEATURES = 32
FITS = [(1_000_000, 16), (100_000, 100), (10_000, 1_000), (100, 1_000), (100, 100_000)]
FITS += [(1, 100_000), (1, 1_000_000), (1, 10_000_000), (1, 100_000_000)]
RANKS = [(1_000_000, 16), (100_000, 100), (10_000, 1_000), (100, 1_000), (100, 10_000), (1, 1_000_000)]
STEPS = [(10_000, 16), (1_000, 100), (100, 1_000), (10, 10_000)]

Call = Callable[[], Any]
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Cell:
    what: str  # "fit", "fit and gradient", "soft rank and gradient", "training step"
    rows: int
    length: int
    strength: str = ""  # "1" or "1/n"

    @property
    def epsilon(self) -> float:
        return 1.0 if self.strength == "1" else 1.0 / self.length


def cells() -> Iterable[Cell]:
    for what in ("fit", "fit and gradient"):
        yield from (Cell(what, rows, length) for rows, length in FITS)
    for what, shapes in (("soft rank and gradient", RANKS), ("training step", STEPS)):
        for strength in ("1", "1/n"):
            yield from (Cell(what, rows, length, strength) for rows, length in shapes)


def installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def rank_by(solve: Function, epsilon: float) -> Function:
    """The soft rank around a solver of non-increasing fits."""

    def ranks(x: Tensor) -> Tensor:
        theta = x / epsilon
        sorted_theta, order = theta.sort(-1, descending=True)
        places = torch.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)
        found = sorted_theta - solve(sorted_theta - places)
        return found.gather(-1, order.argsort(-1))

    return ranks


def fits(cell: Cell) -> dict[str, Function]:
    found: dict[str, Function] = {"isofold": lambda y: isotonic_regression(y, increasing=False)}
    peer, sorter = installed("torchisotonic"), installed("torchsort.ops")
    if peer is not None:
        found["torchisotonic"] = lambda y: peer.isotonic(y, increasing=False)
    if sorter is not None and cell.length <= LONGEST_FOR_TORCHSORT:
        found["torchsort"] = _Torchsort.apply
    return found


def ranks(cell: Cell) -> dict[str, Function]:
    epsilon = cell.epsilon
    found: dict[str, Function] = {"isofold": lambda x: soft_rank(x, regularization_strength=epsilon)}
    peer, sorter = installed("torchisotonic"), installed("torchsort")
    if peer is not None:
        found["torchisotonic"] = rank_by(lambda z: peer.isotonic(z, increasing=False), epsilon)
    if sorter is not None and cell.length <= LONGEST_FOR_TORCHSORT:
        found["torchsort"] = lambda x: sorter.soft_rank(x, regularization_strength=epsilon)
    return found


class _Torchsort(torch.autograd.Function):
    """torchsort's solver by itself."""

    @staticmethod
    def forward(ctx: Any, y: Tensor) -> Tensor:
        fit: Tensor = importlib.import_module("torchsort.ops").isotonic_l2[y.device.type](y)
        ctx.save_for_backward(y, fit)
        return fit

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        y, fit = ctx.saved_tensors
        back = importlib.import_module("torchsort.ops").isotonic_l2_backward[y.device.type]
        found: Tensor = back(y, fit, grad)
        return found


def with_gradient(function: Function, x: Tensor) -> Call:
    leaf, incoming = x.clone().requires_grad_(), torch.randn_like(x)
    return lambda: torch.autograd.grad(function(leaf), leaf, incoming)


def training(function: Function, cell: Cell, device: str) -> Call:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    documents = torch.randn(cell.rows, cell.length, FEATURES, device=device)
    target = torch.randn(cell.rows, cell.length, device=device).argsort(-1).argsort(-1) + 1.0

    def step() -> None:
        optimizer.zero_grad()
        found = function(model(documents).squeeze(-1))
        ((found - target) / cell.length).square().mean().backward()
        optimizer.step()

    return step


def calls(cell: Cell, device: str) -> dict[str, Call]:
    x = torch.randn(cell.rows, cell.length, device=device)
    target = torch.empty_like(x)
    found: dict[str, Call] = {}
    functions = fits(cell) if cell.what.startswith("fit") else ranks(cell)
    for name, function in functions.items():
        if cell.what == "fit":
            found[name] = lambda function=function: function(x)
        elif cell.what == "training step":
            found[name] = training(function, cell, device)
        else:
            found[name] = with_gradient(function, x)
    return {**found, "copy": lambda: target.copy_(x)}


def measured(cell: Cell, device: str, rounds: int) -> dict[str, Any]:
    with torch.set_grad_enabled(cell.what != "fit"):
        return asdict(cell) | summary(rounds_of(Clock(device), calls(cell, device), rounds))


def show(console: Console, records: list[dict[str, Any]]) -> None:
    peers = ("torchisotonic", "torchsort")
    table = Table("", "rows x length", "strength", "isofold, ms", *(f"{p}, ms" for p in peers), *peers)
    ratios: dict[str, list[float]] = {peer: [] for peer in peers}
    for one in records:
        times = [f"{one[p]['ms'][1]:.3f}" if p in one else "" for p in ("isofold", *peers)]
        found = [one[p]["to_isofold"][1] if p in one else None for p in peers]
        for peer, ratio in zip(peers, found, strict=True):
            if ratio is not None:
                ratios[peer].append(ratio)
        shown = ["" if r is None else f"{r:.2f}" for r in found]
        table.add_row(one["what"], f"{one['rows']} x {one['length']}", one["strength"], *times, *shown)
    console.print(table)
    for peer, found in ratios.items():
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            console.print(f"{peer} / isofold: {min(found):.2f} at least, {mean:.2f} in the geometric mean")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--largest", type=float, default=1e8, help="elements of a cell")
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
    for cell in cells():
        if cell.rows * cell.length > options.largest:
            continue
        record["cells"].append(measured(cell, options.device, options.rounds))
        if options.json:
            options.json.write_text(json.dumps(record, indent=1) + "\n")
    show(Console(width=150), record["cells"])


if __name__ == "__main__":
    main()
