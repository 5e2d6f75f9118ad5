"""The plots of docs/gpu_benchmarks.md: log-log, as SVG with text as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from cells import Demand
from judgement import by_cell, judged
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Record = dict[str, Any]
COLOURS = {"isofold": "#c8371b", "torchisotonic": "#2a6fb0", "torchsort": "#5f9e4c", "copy": "#8a8a8a"}
INK, FAINT = "#222222", "#dddddd"
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "isofold", "font.size": 9, "axes.edgecolor": INK}


def save(figure: Figure, file: Path) -> None:
    figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def label(demand: Demand) -> str:
    against = "" if demand.against == "copy" else f" / {demand.against}"
    return f"{demand.cell.size} {demand.cell.name}{against}"


def demands(records: list[Record], file: Path) -> None:
    """A line a demand: from the aim to what must be reached, and where the figure lies."""
    found = [(one, one.ratio) for one in judged(records) if one.ratio is not None]
    if not found:
        return
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8, 0.22 * len(found) + 1))
        for place, (one, ratio) in enumerate(reversed(found)):
            missed = one.verdict == "miss"
            axes.plot([one.demand.aim, one.demand.must], [place, place], color=FAINT, linewidth=6, zorder=1)
            axes.plot(ratio, place, "o", color=COLOURS["isofold"] if missed else INK, zorder=2, markersize=4)
        axes.set_xscale("log")
        axes.set_yticks(range(len(found)), [label(one.demand) for one, _ in reversed(found)])
        axes.set_xlabel("times the copy (or what the name says); bars from aim to must, red: missed")
        axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axes.set_ylim(-1, len(found))
        save(figure, file)


def curve(axes: Axes, points: dict[int, float], name: str) -> None:
    if points:
        lengths = sorted(points)
        axes.plot(lengths, [points[n] for n in lengths], "o-", color=COLOURS[name], label=name, markersize=3)


def lengths(records: list[Record], file: Path) -> None:
    """One row of n elements, and batches of ten million or so; device times where graphs were captured."""
    known = {cell: record for cell, record in by_cell(records).items() if cell.is_fit and not cell.ragged}
    plain = {cell: r for cell, r in known.items() if cell.dtype == "float32" and not cell.weighted}

    def median(record: Record, name: str) -> float | None:
        taken = record.get("replays", {}).get(name) or record.get("calls", {}).get(name)
        return None if taken is None else float(taken["ms"][1])

    with plt.rc_context(STYLE):
        figure, all_axes = plt.subplots(2, 2, figsize=(8, 6.4))
        for column, shape in enumerate(("noise", "increasing")):
            for name in COLOURS:
                single, batch = {}, {}
                for cell, record in plain.items():
                    taken = median(record, name)
                    if cell.shape != shape or taken is None:
                        continue
                    if cell.rows == 1:
                        single[cell.length] = taken
                    if record["elements"] >= 10_000_000:
                        batch[cell.length] = 1e6 * taken / record["elements"]
                curve(all_axes[0, column], single, name)
                curve(all_axes[1, column], batch, name)
            all_axes[0, column].set(title=f"{shape}, one row", xlabel="elements", ylabel="milliseconds")
            all_axes[1, column].set(
                title=f"{shape}, 1e7 elements and more",
                xlabel="elements a row",
                ylabel="nanoseconds an element",
            )
        for axes in all_axes.flat:
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.grid(color=FAINT, linewidth=0.5)
        all_axes[0, 0].legend(frameon=False)
        figure.tight_layout()
        save(figure, file)
