"""The printed tables."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

Case = dict[str, Any]


def milliseconds(spread: dict[str, float]) -> str:
    """Three digits or the whole number, never an exponent."""
    found = [1e3 * spread[name] for name in ("median", "q1", "q3")]
    median, q1, q3 = (f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in found)
    return f"{median} ({q1}-{q3})"


def time_table(n: int, cases: list[Case]) -> Table:
    table = Table(
        title=f"{n:,} elements, float64: milliseconds, median and quartiles; ratios to SciPy, "
        "below 1 is faster",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for heading in ("memcpy", "SciPy", "1 thread", "2 threads"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("1 thread", ".x", "CPU", "2 threads", "sklearn"):
        table.add_column(f"{heading}\n/ SciPy", justify="right", no_wrap=True)
    table.add_column("2 threads\n/ 1", justify="right", no_wrap=True)
    for case in cases:
        if case["n"] != n:
            continue
        times = case["times"]
        one, two = times["isofold, 1 thread"], times["isofold, 2 threads"]
        spreads = (
            *(one[field]["to_scipy"] for field in ("all", "fit", "cpu")),
            two["all"]["to_scipy"],
            times["scikit-learn"]["all"]["to_scipy"],
            two["to_one_thread"]["all"],
        )
        table.add_row(
            case["family"],
            f"{1e3 * times['memcpy']['all']['seconds']['median']:.3g}",
            *(milliseconds(solver["all"]["seconds"]) for solver in (times["SciPy"], one, two)),
            *(f"{spread['median']:.2f}" for spread in spreads),
        )
    return table


def memory_table(n: int, cases: list[Case]) -> Table:
    table = Table(
        title=f"{n:,} elements: memory beyond input and output over input, for .x / for all fields",
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("")
    for heading in ("isofold, 1 thread", "isofold, 2 threads", "SciPy", "scikit-learn"):
        table.add_column(heading, justify="right")
    for case in cases:
        if case["n"] != n:
            continue
        found = [case["memory"][name] for name in ("isofold_1", "isofold_2", "scipy", "sklearn")]
        table.add_row(case["family"], *(f"{m['beyond_fit']:.2f} / {m['beyond_all']:.2f}" for m in found))
    return table
