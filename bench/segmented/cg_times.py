"""1,000 systems of mixed lengths by conjugate gradients: isofold, and the same method in torch's operations.

    python bench/segmented/cg_times.py [--device cuda] [--systems 1000] [--iterations 100] [--json FILE]

Lengths are log-uniform from 10 to 10,000, matrices second differences with a ridge that makes conditions
from 1e2 to 1e8, float32, Jacobi preconditioner. The control takes the same steps with dots by
`index_add_` and frozen systems masked, without waiting for the device either. Both run a set number of
iterations; times are of the call, ended by a synchronisation, medians and quartiles of rounds in a new
random order. On CUDA each is timed as it is called and as a replayed graph.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isofold.torch.conjugate_gradient import CGSolver
from isofold.torch.linear_maps import Banded


def systems(count: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Diagonals, b, offsets."""
    draw = np.random.default_rng(7)
    lengths = np.exp(draw.uniform(np.log(10), np.log(10_000), count)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    total = int(offsets[-1])
    ridge = np.repeat(4 / 10 ** draw.uniform(2, 8, count), lengths)
    diagonals = np.stack([np.full(total, -1.0), 2 + ridge, np.full(total, -1.0)]).astype(np.float32)
    b = draw.standard_normal(total).astype(np.float32)
    return tuple(torch.from_numpy(x).to(device) for x in (diagonals, b, offsets))  # type: ignore[return-value]


class Control:
    """The same method in torch's operations."""

    def __init__(self, diagonals: Tensor, offsets: Tensor, iterations: int, rtol: float) -> None:
        lengths = offsets.diff()
        self.owner = torch.repeat_interleave(torch.arange(len(lengths), device=offsets.device), lengths)
        first = torch.zeros(len(self.owner), dtype=torch.bool, device=offsets.device)
        first[offsets[:-1]] = True
        last = torch.zeros_like(first)
        last[offsets[1:] - 1] = True
        self.lower = diagonals[0].masked_fill(first, 0)
        self.upper = diagonals[2].masked_fill(last, 0)
        self.main = diagonals[1]
        self.inverse = 1 / self.main
        self.count, self.iterations, self.rtol = len(lengths), iterations, rtol

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.zeros(self.count, dtype=a.dtype, device=a.device).index_add_(0, self.owner, a * b)

    def apply(self, x: Tensor) -> Tensor:
        return self.lower * x.roll(1) + self.main * x + self.upper * x.roll(-1)

    def solve(self, b: Tensor) -> Tensor:
        x, r = torch.zeros_like(b), b.clone()
        z = self.inverse * r
        p = z.clone()
        rho = self.dot(r, z)
        tolerance = self.rtol * self.dot(b, b).sqrt()
        active = self.dot(r, r).sqrt() > tolerance
        for _ in range(self.iterations):
            q = self.apply(p)
            alpha = torch.where(active, rho / self.dot(p, q), 0)[self.owner]
            x = x + alpha * p
            r = r - alpha * q
            z = self.inverse * r
            new = self.dot(r, z)
            active = active & (self.dot(r, r).sqrt() > tolerance)
            beta = torch.where(active, new / rho, 0)[self.owner]
            p = torch.where(active[self.owner], z + beta * p, p)
            rho = torch.where(active, new, rho)
        return x


def graphed(call: Callable[[], Any]) -> Callable[[], Any]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--systems", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    diagonals, b, offsets = systems(options.systems, options.device)
    a = Banded(diagonals)
    solver = CGSolver(a, b, offsets, preconditioner=a.jacobi(), rtol=1e-5, maxiter=options.iterations)
    control = Control(diagonals, offsets, options.iterations, 1e-5)
    calls: dict[str, Callable[[], Any]] = {
        "isofold": lambda: solver.solve(b),
        "torch operations": lambda: control.solve(b),
    }
    if options.device == "cuda":
        calls |= {f"{name}, graph": graphed(call) for name, call in list(calls.items())}
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for turn in range(options.rounds + 2):
        random.shuffle(order)
        for name in order:
            if options.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            calls[name]()
            if options.device == "cuda":
                torch.cuda.synchronize()
            if turn >= 2:
                times[name].append(1000 * (time.perf_counter() - start))
    found = solver.solve(b)
    print(
        f"{options.systems} systems, {len(b):,} unknowns, {options.iterations} iterations at most, "
        f"{int(found.converged.sum())} converged, on {options.device}"
    )
    rows = {}
    for name, measured in times.items():
        low, middle, high = statistics.quantiles(measured, n=4)
        rows[name] = [low, middle, high]
        print(f"{name:24} {middle:9.3f} ms ({low:.3f} to {high:.3f})")
    for kind in ("", ", graph"):
        if f"isofold{kind}" in rows:
            ratio = rows[f"torch operations{kind}"][1] / rows[f"isofold{kind}"][1]
            print(f"torch operations{kind} / isofold{kind}: {ratio:.2f}")
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
            "torch": torch.__version__,
            "systems": options.systems,
            "unknowns": len(b),
            "iterations": options.iterations,
            "ms": rows,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
