"""Draws string_under_nails.png: isotonic regression as a string pulled tight under nails, on real flights.

    python docs/pictures/string_under_nails.py

Every flight that left Newark on 28 August 2013 and arrived, in the order of its scheduled departure. Above, a
nail for each flight at (flights so far, late flights so far), and the string: the lower convex hull, which
touches the nails where isofold starts a block. Below, the labels and the fit, which is the string's slope.
Needs isofold with its demo extra.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import ConnectionPatch
from numpy.typing import NDArray

import isofold

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples" / "flights"))
from flight_data import LATE_AFTER_MINUTES, load_flights  # noqa: E402

AIRPORT, AIRPORT_NAME = "EWR", "Newark"
DAY, DAY_NAME = 240, "28 August 2013"
# Times of day to mark, and the lower end of the lower panel.
CLOCK = (6, 9, 12, 15, 18, 21)
BOTTOM = -0.14

Values = NDArray[np.floating[Any]]
Starts = NDArray[np.int64]

INK, FAINT, NAIL, STRING = "#222222", "#d9d9d9", "#555555", "#c8371b"


def flights_of_the_day(folder: Path) -> tuple[Starts, Values]:
    """Scheduled departures in minutes after midnight, rising, and labels: 1 for late.

    Of flights scheduled for the same minute the late ones come first. Their inner nails are then above the
    string, so that the minute's flights share one value without further ado.
    """
    flights = load_flights(folder)
    from_here = flights.table["origin"].to_numpy(zero_copy_only=False) == AIRPORT
    chosen = from_here & (flights.day_of_year == DAY)
    minutes = (60 * flights.table["hour"].to_numpy() + flights.table["minute"].to_numpy())[chosen]
    late = flights.late[chosen].astype(np.float64)
    order = np.lexsort((-late, minutes))
    return minutes[order].astype(np.int64), late[order]


def draw_string(axes: Axes, total: Values, blocks: Starts) -> None:
    axes.scatter(np.arange(len(total)), total, s=5, color=NAIL, linewidths=0, zorder=2)
    axes.plot(blocks, total[blocks], color=STRING, linewidth=1.8, zorder=3, solid_joinstyle="round")
    axes.scatter(blocks, total[blocks], s=26, color=INK, linewidths=0, zorder=4)
    axes.set(ylabel="late flights so far", ylim=(-4, 1.06 * total[-1]))
    axes.tick_params(bottom=False)


def draw_fit(axes: Axes, late: Values, fit: Values, blocks: Starts) -> None:
    # Flight i fills the step from i to i + 1 of the diagram above.
    for label, low in ((1, 1.03), (0, -0.11)):
        axes.vlines(np.flatnonzero(late == label) + 0.5, low, low + 0.08, color=NAIL, linewidth=0.7)
    axes.stairs(fit[blocks[:-1]], blocks, color=STRING, linewidth=1.8, baseline=None, zorder=3)
    axes.set(ylabel="late (1) or not (0)", ylim=(BOTTOM, 1.13))
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def note(axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """Text at a place in the data, moved by `offset` points."""
    axes.annotate(text, at, offset, textcoords="offset points", **style)


def explain(above: Axes, below: Axes, total: Values, blocks: Starts) -> None:
    """Name the parts, and show on the longest block that the fit is the string's slope."""
    start, end = blocks[(longest := int(np.argmax(np.diff(blocks)))) : longest + 2]
    late, flights = total[end] - total[start], end - start
    nail = start + flights // 5
    slope, red = f"{late:.0f} / {flights}", STRING
    note(above, "a nail for each flight", (nail, total[nail]), (-10, 8), color=NAIL, ha="right")
    note(above, "the string, pulled\ntight from below", (blocks[1] / 2, 0), (0, 12), color=red, ha="center")
    note(above, f"its slope: {slope}", (end, total[start] + 0.4 * late), (-8, 0), color=red, ha="right")
    rate = late / flights
    note(below, f"the fit: {slope} = {rate:.3f}", (end, rate), (-8, 7), color=red, ha="right")


def draw(path: Path, minutes: Starts, late: Values) -> None:
    result = isofold.isotonic_regression(late)
    blocks, total = result.blocks, np.concatenate([[0.0], np.cumsum(late)])
    plt.rcParams.update({"font.size": 11, "axes.edgecolor": INK, "text.color": INK, "axes.linewidth": 0.8})
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8.3, 6.3), height_ratios=(3, 2), sharex=True, layout="constrained"
    )
    draw_string(above, total, blocks)
    draw_fit(below, late, result.x, blocks)
    explain(above, below, total, blocks)
    for start in blocks[1:-1]:
        nail, foot = (start, total[start]), (start, BOTTOM)
        line = ConnectionPatch(nail, foot, "data", "data", axesA=above, axesB=below, zorder=-1)
        line.set(color=FAINT, linewidth=0.8)
        figure.add_artist(line)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.patch.set_visible(False)  # the lines from panel to panel lie behind
        axes.tick_params(color=INK, labelcolor=INK, width=0.8)
    above.spines["bottom"].set_visible(False)
    title = f"{len(late)} flights from {AIRPORT_NAME} on {DAY_NAME}, {total[-1]:.0f} of them "
    title += f"more than {LATE_AFTER_MINUTES} minutes late"
    above.set_title(title, fontsize=11, loc="left")
    below.set_xlim(-4, len(late) + 4)
    at = np.searchsorted(minutes, [60 * hour for hour in CLOCK])
    below.set_xticks(at, [f"{hour}:00" for hour in CLOCK])
    below.set_xlabel("flights in the order of their scheduled departure")
    figure.savefig(path, dpi=200, facecolor="white", metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "string_under_nails.png")
    parser.add_argument("--data", type=Path, default=Path("build/demo-data"), help="folder for the download")
    options = parser.parse_args()
    draw(options.out, *flights_of_the_day(options.data))


if __name__ == "__main__":
    main()
