"""isofold, SciPy and scikit-learn side by side: times and memory of one float64 row.

    python bench/cpu/compare.py                                  # everything, about ten minutes
    python bench/cpu/compare.py --family noise --n 1e5 --no-memory

In one process, on the same arrays, in rounds: each round calls every contender once, in a new random order,
so that whatever else the machine does falls on all alike. Ratios are taken within a round. All fields of a
result are read inside the time (.x, .blocks, .weights: isofold makes the last two when asked); the time until
.x is there is kept as well. Before anything is timed, the answers are compared. Memory: see memory.py.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import acceptance
import machine
import memory
import numpy as np
from agreement import check
from contenders import MAKERS, Contender, Lap, memcpy, time_call
from families import FAMILIES, Row, make_row
from rich.console import Console
from tables import memory_table, time_table

RESULTS = machine.REPOSITORY / "bench" / "results"
SIZES = (1_000_000, 10_000_000)


def rounds_for(n: int) -> int:
    """Enough for steady quartiles at a bearable length."""
    return 31 if n <= 1_000_000 else 15


def quartiles(values: Iterable[float]) -> dict[str, float]:
    q1, median, q3 = np.percentile(list(values), [25, 50, 75])
    return {"q1": float(q1), "median": float(median), "q3": float(q3)}


def time_rounds(contenders: list[Contender], row: Row, rounds: int) -> dict[str, list[Lap]]:
    order = random.Random(0)
    laps: dict[str, list[Lap]] = {contender.name: [] for contender in contenders}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for contender in order.sample(contenders, len(contenders)):
                laps[contender.name].append(time_call(contender, row))
    finally:
        gc.enable()
    return laps


def summarise(laps: dict[str, list[Lap]]) -> dict[str, Any]:
    """By contender: seconds, and ratios to SciPy's call of the same round; CPU seconds are of all threads."""

    def ratios(own: list[Lap], field: str, others: list[Lap], other_field: str) -> dict[str, float]:
        pairs = zip(own, others, strict=True)
        return quartiles(getattr(lap, field) / getattr(other, other_field) for lap, other in pairs)

    scipy = laps["SciPy"]
    summary: dict[str, Any] = {}
    for name, own in laps.items():
        summary[name] = {"rounds": len(own)}
        for field, whole in (("fit", "all"), ("all", "all"), ("cpu", "cpu")):
            summary[name][field] = {
                "seconds": quartiles(getattr(lap, field) for lap in own),
                "to_scipy": ratios(own, field, scipy, whole),
            }
    one, two = laps["isofold, 1 thread"], laps["isofold, 2 threads"]
    summary["isofold, 2 threads"]["to_one_thread"] = {
        field: ratios(two, field, one, field) for field in ("fit", "all")
    }
    return summary


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--family", action="append", choices=FAMILIES, help="default: all")
    parser.add_argument(
        "--n", action="append", type=lambda text: int(float(text)), help="default: 1e6 and 1e7"
    )
    parser.add_argument("--rounds", type=int, help="default: by n")
    parser.add_argument("--no-memory", action="store_true", help="times only")
    default = "default: bench/results/cpu-<date>.json for a whole run, else none"
    parser.add_argument("--out", type=Path, help=f"JSON file; {default}")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse(sys.argv[1:])
    families, sizes = options.family or FAMILIES, options.n or SIZES
    out = options.out
    if out is None and not (options.family or options.n or options.no_memory):
        out = RESULTS / f"cpu-{datetime.date.today().isoformat()}.json"
    console = Console(width=max(164, Console().width))
    about = machine.describe()
    console.print(", ".join(f"{name}: {value}" for name, value in about.items()), highlight=False)
    load_before = os.getloadavg()
    contenders = [memcpy(max(sizes)), *(maker() for maker in MAKERS.values())]
    cases: list[dict[str, Any]] = []
    for n in sizes:
        for family in families:
            row = make_row(family, n)
            case: dict[str, Any] = {"family": family, "n": n, **check(contenders[1:], row)}
            case["times"] = summarise(time_rounds(contenders, row, options.rounds or rounds_for(n)))
            del row
            if not options.no_memory:
                case["memory"] = {name: memory.measure(name, family, n).fractions() for name in MAKERS}
            cases.append(case)
            console.print(f"[dim]{family}, {n:,}: done[/dim]", highlight=False)
        console.print(time_table(n, cases))
        if not options.no_memory:
            console.print(memory_table(n, cases))
    verdicts = acceptance.judge(cases)
    acceptance.print_verdicts(console, verdicts, cases)
    load = {"before": load_before[0], "after": os.getloadavg()[0]}
    console.print(f"load average: {load['before']:.1f} before, {load['after']:.1f} after", highlight=False)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "date": datetime.date.today().isoformat(),
            "machine": about,
            "load_average": load,
            "method": " ".join((__doc__ or "").split("\n\n")[2].split()),
            "memory_method": " ".join((memory.__doc__ or "").split("\n\n")[1].split()),
            "acceptance": verdicts,
            "cases": cases,
        }
        out.write_text(json.dumps(rounded(document), indent=1) + "\n")
        console.print(f"written: {out}", highlight=False)


def rounded(value: Any) -> Any:
    """Five digits are more than these figures have."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
