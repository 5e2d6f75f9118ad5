"""Host time of single calls of isofold.torch, beside torch.add, torch.sort, torchsort and torchisotonic.

    python bench/torch/call_overhead.py [--device cuda] [--rows 100] [--length 100] [--threads 1] [--json
    FILE]

Needs isofold with its `torch` extra; torchsort 0.1.10 and torchisotonic 0.2 where they are installed. All get
the same float32 tensor in the same process. In a round each is called a number of times in a row, without
waiting for the device, in a new random order; medians and quartiles over rounds, ratios to torch.add within a
round. With gradients the time is that of the call and of its backward pass.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import isofold
import isofold.torch

Call = Callable[[], Any]
PEERS = {"torchsort": "soft_rank", "torchisotonic": "isotonic"}


def peers() -> dict[str, Callable[[Tensor], Tensor]]:
    found = {}
    for package, function in PEERS.items():
        with contextlib.suppress(ImportError):
            found[f"{package}.{function}"] = getattr(importlib.import_module(package), function)
    return found


def functions() -> dict[str, Callable[[Tensor], Tensor]]:
    ours = isofold.torch
    return {
        "torch.add": lambda x: x + x,
        "torch.sort": lambda x: x.sort(-1).values,
        "isotonic_regression": ours.isotonic_regression,
        "soft_rank": ours.soft_rank,
        "soft_rank, KL": lambda x: ours.soft_rank(x, "kl"),
        "soft_sort": ours.soft_sort,
        "soft_topk, k = 10": lambda x: ours.soft_topk(x, min(10, x.shape[-1])),
        **peers(),
    }


def forward(function: Callable[[Tensor], Tensor], x: Tensor) -> Call:
    return lambda: function(x)


def with_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Call:
    leaf, incoming = x.clone().requires_grad_(), torch.ones_like(x)
    return lambda: torch.autograd.grad(function(leaf), leaf, incoming)


def calls(x: Tensor) -> dict[str, dict[str, Call]]:
    row = np.random.default_rng(7).standard_normal(100)
    table = {
        name: {"forward": forward(function, x), "with gradient": with_gradient(function, x)}
        for name, function in functions().items()
    }
    table["NumPy front, 100 elements"] = {"forward": lambda: isofold.isotonic_regression(row).x}
    return table


def microseconds(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return 1e6 * (time.perf_counter() - start) / repeats


def repeats_for(call: Call) -> int:
    """So many that a round takes some milliseconds."""
    call()
    return max(1, min(200, round(5_000 / microseconds(call, 3))))


def quartiles(figures: list[float]) -> list[float]:
    return [float(q) for q in np.quantile(figures, [0.25, 0.5, 0.75])]


def measured(x: Tensor, rounds: int) -> dict[str, dict[str, Any]]:
    table = {(name, kind): call for name, kinds in calls(x).items() for kind, call in kinds.items()}
    repeats = {key: repeats_for(call) for key, call in table.items()}
    times: dict[tuple[str, str], list[float]] = {key: [] for key in table}
    order = random.Random(1)
    for _ in range(rounds):
        keys = list(table)
        order.shuffle(keys)
        for key in keys:
            times[key].append(microseconds(table[key], repeats[key]))
            if x.is_cuda:
                torch.cuda.synchronize()
    add = times["torch.add", "forward"]
    found: dict[str, dict[str, Any]] = {}
    for (name, kind), taken in times.items():
        found.setdefault(name, {})[kind] = {
            "us": quartiles(taken),
            "to_add": quartiles(list(np.divide(taken, add))),
        }
    return found


def show(console: Console, found: dict[str, dict[str, Any]]) -> None:
    table = Table(
        "call", "forward, us", "quartiles", "to torch.add", "with gradient, us", "quartiles", "to torch.add"
    )
    for name, kinds in found.items():
        cells = []
        for kind in ("forward", "with gradient"):
            if kind in kinds:
                low, median, high = kinds[kind]["us"]
                cells += [f"{median:,.1f}", f"{low:,.1f} to {high:,.1f}", f"{kinds[kind]['to_add'][1]:.1f}"]
        table.add_row(name, *cells)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1, help="of torch and of isofold, on a CPU")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["ISOFOLD_NUM_THREADS"] = str(options.threads)
    x = torch.randn(options.rows, options.length, generator=torch.Generator().manual_seed(7)).to(
        options.device
    )
    found = measured(x, options.rounds)
    show(Console(width=150), found)
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "device": torch.cuda.get_device_name() if x.is_cuda else "cpu",
            "load_average": os.getloadavg(),
            "torch": torch.__version__,
            "isofold": isofold.__version__,
            "shape": list(x.shape),
            "threads": options.threads,
            "rounds": options.rounds,
            "calls": found,
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
