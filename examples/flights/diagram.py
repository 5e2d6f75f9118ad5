"""The reliability diagram: CORP curves, which need no bins, over histograms of the predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from isofold.calibration import reliability_curve

_COLOURS = {"uncalibrated": "#888888", "analytic": "#c77c11", "Platt": "#2b6cb0", "isotonic": "#1b7f4b"}


def _draw_panel(
    above: Axes,
    below: Axes,
    title: str,
    late: NDArray[np.bool_],
    predictions: dict[str, NDArray[np.floating[Any]]],
) -> None:
    above.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=(0, (4, 4)))
    for method, values in predictions.items():
        curve = reliability_curve(late, values)
        above.plot(curve.predictions, curve.recalibrated, color=_COLOURS[method], linewidth=1.6, label=method)
        below.hist(values, bins=100, range=(0, 1), histtype="step", color=_COLOURS[method], linewidth=1.2)
    above.set_title(title, loc="left", fontsize=11)
    above.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    above.set_ylabel("share of flights that were late")
    above.legend(loc="upper left", frameon=False)
    below.set(xlim=(0, 1), xlabel="predicted probability of being late", ylabel="flights")
    below.set_yscale("log")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)


def save_diagram(
    path: Path, panels: dict[str, tuple[NDArray[np.bool_], dict[str, NDArray[np.floating[Any]]]]]
) -> None:
    """One column for each panel: outcomes and predictions by method."""
    figure, axes = plt.subplots(
        2,
        len(panels),
        figsize=(5.6 * len(panels), 7.6),
        height_ratios=(4, 1),
        layout="constrained",
        squeeze=False,
    )
    for column, (title, (late, predictions)) in enumerate(panels.items()):
        _draw_panel(axes[0, column], axes[1, column], title, late, predictions)
    # Without a date or version inside, the same picture is the same file.
    figure.savefig(path, dpi=150, metadata={"Software": None})
    plt.close(figure)
