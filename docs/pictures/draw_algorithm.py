"""Draws the pictures of docs/how_it_works.md: diagram.png, filter.png, merge.png and tree.png.

    python docs/pictures/draw_algorithm.py

The rows are noise in whole numbers, so that every sum here is an exact integer. Hulls are isofold's blocks,
and are compared with a monotone chain over those integers; what the pictures claim of chords and of merges is
asserted while they are drawn. Needs isofold with its demo extra.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import isofold

HERE = Path(__file__).resolve().parent
INK, FAINT, NAIL, STRING, COARSE = "#222222", "#d9d9d9", "#8a8a8a", "#c8371b", "#2a6fb0"

Integers = NDArray[np.int64]


def noise(count: int, seed: int, rise: float = 3.0) -> Integers:
    """A ramp from 0 to `rise` plus N(0, 1), in hundredths."""
    random = np.random.default_rng(seed)
    ramp = rise * np.arange(count) / count
    return np.rint(100 * (ramp + random.normal(size=count))).astype(np.int64)


def totals(values: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(values)]).astype(np.int64)


def turns_up(total: Integers, a: int, b: int, c: int) -> bool:
    left = int(total[b] - total[a]) * (c - b)
    return left < int(total[c] - total[b]) * (b - a)


def lower_hull(total: Integers, points: list[int]) -> list[int]:
    """Andrew's monotone chain over these points of the diagram."""
    chain: list[int] = []
    for point in points:
        while len(chain) > 1 and not turns_up(total, chain[-2], chain[-1], point):
            chain.pop()
        chain.append(point)
    return chain


def hull(values: Integers, begin: int, end: int) -> list[int]:
    """The vertices of elements begin .. end - 1, as positions in the whole diagram: isofold's blocks."""
    blocks = isofold.isotonic_regression(values[begin:end].astype(np.float64)).blocks
    found = [begin + int(b) for b in blocks]
    assert found == lower_hull(totals(values), list(range(begin, end + 1)))
    return found


def above_chord(total: Integers, begin: int, end: int) -> NDArray[np.float64]:
    """Heights of the points begin .. end over the chord between the two: a hull is easier seen so."""
    at = np.arange(begin, end + 1)
    rise = (total[end] - total[begin]) / (end - begin)
    heights: NDArray[np.float64] = total[begin : end + 1] - total[begin] - rise * (at - begin)
    return heights


def tidy(figure: Figure) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(color=INK, labelcolor=INK, width=0.8)


def save(figure: Figure, path: Path) -> None:
    tidy(figure)
    figure.savefig(path, dpi=110, facecolor="white", metadata={"Software": None})
    plt.close(figure)


def panel(height: float, rows: int = 1, **more: Any) -> tuple[Figure, Any]:
    return plt.subplots(rows, 1, figsize=(8.3, height), layout="constrained", **more)


def draw_diagram(path: Path) -> None:
    values = noise(60, 4)
    total, vertices = totals(values), hull(values, 0, 60)
    fit = isofold.isotonic_regression(values.astype(np.float64)).x
    figure, (above, below) = panel(5.4, 2, sharex=True, height_ratios=(3, 2))
    above.scatter(np.arange(61), total, s=9, color=NAIL, linewidths=0)
    above.plot(vertices, total[vertices], color=STRING, linewidth=1.8)
    above.scatter(vertices, total[vertices], s=26, color=INK, linewidths=0, zorder=3)
    above.set(ylabel="sum so far")
    below.scatter(np.arange(60) + 0.5, values, s=9, color=NAIL, linewidths=0)
    below.stairs(fit[vertices[:-1]], vertices, color=STRING, linewidth=1.8, baseline=None)
    below.set(ylabel="values, fit", xlabel="element")
    title = f"60 elements: points P_k, their lower hull ({len(vertices) - 1} blocks), its slopes (the fit)"
    above.set_title(title, fontsize=11, loc="left")
    save(figure, path)


def draw_filter(path: Path) -> None:
    count, tile = 1024, 32
    values = noise(count, 8, rise=0.2)
    total, vertices = totals(values), hull(values, 0, count)
    coarse = lower_hull(total, list(range(0, count + 1, tile)))
    # A point on or above a chord is no vertex: it goes, unless it is the chord's end.
    kept = list(coarse)
    for a, b in pairwise(coarse):
        kept += [k for k in range(a + 1, b) if not turns_above(total, a, k, b)]
    kept.sort()
    assert set(vertices) <= set(kept)
    alive = sorted({k // tile for k in kept if k % tile})
    heights = above_chord(total, 0, count)
    figure, axes = panel(4.2)
    for t in alive:
        axes.axvspan(t * tile, (t + 1) * tile, color=FAINT, alpha=0.6, linewidth=0)
    axes.scatter(np.arange(count + 1), heights, s=3, color=NAIL, linewidths=0)
    axes.plot(coarse, heights[coarse], color=COARSE, linewidth=1.3, label="coarse polyline")
    axes.scatter(kept, heights[kept], s=11, color=COARSE, linewidths=0, zorder=3, label="points that stay")
    axes.plot(vertices, heights[vertices], color=STRING, linewidth=1.5, label="hull")
    axes.scatter(vertices, heights[vertices], s=22, color=INK, linewidths=0, zorder=4, label="vertices")
    axes.set(xlabel="element", ylabel="height over the chord", xlim=(-8, count + 8))
    axes.set_ylim(1.08 * heights.min(), heights.max() - 0.15 * heights.min())
    axes.legend(frameon=False, loc="upper center", ncols=4, fontsize=9)
    title = f"{count:,} elements of noise: {len(alive)} of {count // tile} tiles reach below the polyline; "
    title += f"{len(kept)} points stay, {len(vertices)} are vertices"
    axes.set_title(title, fontsize=11, loc="left")
    save(figure, path)


def turns_above(total: Integers, a: int, k: int, b: int) -> bool:
    """Whether point k is on or above the chord from a to b."""
    return not turns_up(total, a, k, b)


def kept_range(own: list[int], merged: list[int]) -> tuple[int, int]:
    """The first and last of a chunk's own vertices that the merged hull keeps: with all between them."""
    left = [k for k, v in enumerate(own) if v in set(merged)]
    if not left:
        return 0, -1
    assert left == list(range(left[0], left[-1] + 1))
    return left[0], left[-1]


def draw_merge(path: Path) -> None:
    half = 300
    values = noise(2 * half, 12, rise=0.6)
    total, merged = totals(values), hull(values, 0, 2 * half)
    parts = [hull(values, 0, half), hull(values, half, 2 * half)]
    heights = above_chord(total, 0, 2 * half)
    figure, axes = panel(4.0)
    axes.scatter(np.arange(2 * half + 1), heights, s=3, color=FAINT, linewidths=0)
    ends = []
    for own, side in zip(parts, ("left", "right"), strict=True):
        first, last = kept_range(own, merged)
        gone = own[:first] + own[last + 1 :]
        ends.append((own[first], own[last]))
        axes.plot(own, heights[own], color=COARSE, linewidth=1.1)
        axes.scatter(gone, heights[gone], s=26, facecolor="white", edgecolor=COARSE, zorder=3)
        stay = own[first : last + 1]
        axes.scatter(stay, heights[stay], s=26, color=INK, linewidths=0, zorder=4)
        text = f"{side}: {len(own)} vertices,\n{last - first + 1} stay, numbers {first} to {last}"
        axes.text(own[0] + half / 2, -0.12 * heights.min(), text, ha="center", va="center", color=COARSE)
    bridge = [ends[0][1], ends[1][0]]
    assert bridge[1] in merged
    assert merged.index(bridge[1]) == merged.index(bridge[0]) + 1
    axes.plot(bridge, heights[bridge], color=STRING, linewidth=2)
    middle = sum(bridge) / 2, float(heights[bridge].mean())
    axes.annotate("the bridge", middle, (0, -16), textcoords="offset points", color=STRING, ha="center")
    axes.axvline(half, color=NAIL, linewidth=0.8, linestyle=":")
    axes.set(xlabel="element", ylabel="height over the chord")
    axes.set_ylim(1.12 * heights.min(), -0.2 * heights.min())
    axes.set_title("Two chunk hulls and the edge that joins them", fontsize=11, loc="left")
    save(figure, path)


def draw_level(axes: Axes, values: Integers, chunk: int, width: int) -> int:
    """One level of the tree: every chunk's own vertices, and the range that its node's hull keeps."""
    count, kept = len(values), 0
    for node in range(0, count, width):
        merged = hull(values, node, min(node + width, count))
        axes.axvspan(node + 3, node + width - 3, 0.06, 0.94, color=FAINT, alpha=0.45, linewidth=0)
        edges = []
        for begin in range(node, node + width, chunk):
            own = hull(values, begin, begin + chunk)
            # A vertex between two chunks counts for the chunk that it begins.
            own = own if begin + chunk == node + width else own[:-1]
            first, last = kept_range(own, merged)
            kept += last - first + 1
            stay = own[first : last + 1]
            gone = own[:first] + own[last + 1 :]
            axes.scatter(gone, [0.3] * len(gone), s=9, facecolor="white", edgecolor=NAIL, linewidths=0.7)
            axes.scatter(stay, [0.3] * len(stay), s=9, color=INK, linewidths=0, zorder=3)
            if stay:
                axes.plot([stay[0], stay[-1]], [0.3, 0.3], color=INK, linewidth=1.2)
                edges.append((stay[0], stay[-1]))
        for (_, a), (b, _) in pairwise(edges):
            at = np.linspace(0, np.pi, 30)
            x, y = (a + b) / 2 - (b - a) / 2 * np.cos(at), 0.3 + 0.4 * np.sin(at)
            axes.plot(x, y, color=STRING, linewidth=1.3)
    for begin in range(0, count + 1, chunk):
        axes.axvline(begin, color=NAIL, linewidth=0.6, linestyle=":")
    axes.set(ylim=(0, 1), yticks=[], xlim=(-10, count + 10))
    axes.spines["left"].set_visible(False)
    return kept


def draw_tree(path: Path) -> None:
    chunk, chunks = 250, 8
    values = noise(chunk * chunks, 3)
    figure, levels = panel(4.6, 4, sharex=True)
    for level, axes in enumerate(reversed(levels)):
        kept = draw_level(axes, values, chunk, chunk << level)
        nodes = chunks >> level
        name = "chunks" if level == 0 else ("root" if nodes == 1 else f"{nodes} nodes")
        axes.set_title(f"{name}: {kept} vertices", fontsize=10, loc="left", pad=2)
    levels[-1].set_xlabel("element")
    for axes in levels[:-1]:
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(bottom=False)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the pictures")
    out: Path = parser.parse_args().out
    plt.rcParams.update({"font.size": 10, "axes.edgecolor": INK, "text.color": INK, "axes.linewidth": 0.8})
    draw_diagram(out / "diagram.png")
    draw_filter(out / "filter.png")
    draw_merge(out / "merge.png")
    draw_tree(out / "tree.png")


if __name__ == "__main__":
    main()
