"""The diagrams as SVG text for an HTML page, whose style sheet gives them their colours."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from isofold.calibration._inputs import Float64Array
from isofold.calibration.report.curves import logit

# Stand-ins that become the style sheet's variables, so that the diagrams follow a light or a dark page.
_COLOURS = {
    "ink": "#000001",
    "muted": "#000002",
    "grid": "#000003",
    "before": "#000004",
    "after": "#000005",
}
_STYLES: dict[str, dict[str, Any]] = {
    # Told apart by shape and dash too, not by colour alone.
    "before": {"marker": "o", "markerfacecolor": "none", "linestyle": (0, (5, 2))},
    "after": {"marker": "D", "markerfacecolor": _COLOURS["after"], "linestyle": "solid"},
}
_RC: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, and read out
    "svg.hashsalt": "isofold",  # the same picture is the same text
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.color": _COLOURS["ink"],
    "axes.edgecolor": _COLOURS["muted"],
    "axes.labelcolor": _COLOURS["ink"],
    "xtick.color": _COLOURS["muted"],
    "ytick.color": _COLOURS["muted"],
    "xtick.labelcolor": _COLOURS["ink"],
    "ytick.labelcolor": _COLOURS["ink"],
    "grid.color": _COLOURS["grid"],
    "grid.linewidth": 0.7,
    "path.simplify": True,
}


def percent(rate: float) -> str:
    """A rate for an axis: 0.001%, 5%, 99.9%."""
    shown = float(f"{100.0 * rate:.8g}")
    if 0.0 < abs(shown) < 1e-6:
        return f"{shown:g}%"
    return f"{np.format_float_positional(shown, trim='-')}%"


def _logit_ticks(low: float, high: float) -> Float64Array:
    """Powers of ten and their complements, and what lies between if these are few."""
    decades = 10.0 ** np.arange(-12, 0)
    coarse = np.concatenate((decades, [0.5], 1.0 - decades))
    fine = np.concatenate((coarse, 2 * decades, 5 * decades, 1.0 - 2 * decades, 1.0 - 5 * decades))
    for ticks in (coarse, fine):
        inside = np.unique(ticks[(ticks >= low) & (ticks <= high)])
        if len(inside) >= 4:
            break
    return inside[:: max(1, int(np.ceil(len(inside) / 7)))]


def _place(values: Any, low: float, high: float, *, on_logit: bool) -> Float64Array:
    """Positions on the axis. Rates of 0 and 1, which a logit axis does not have, lie on its ends."""
    array = np.asarray(values, dtype=np.float64)
    return logit(np.clip(array, low, high)) if on_logit else array


def _format_axis(axis: Any, low: float, high: float, *, on_logit: bool) -> None:
    if on_logit:
        ticks = _logit_ticks(low, high)
        axis.set_major_locator(FixedLocator(logit(ticks).tolist()))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(
            FuncFormatter(lambda place, _: percent(float(ticks[np.argmin(abs(logit(ticks) - place))])))
        )
    else:
        axis.set_major_formatter(FuncFormatter(lambda place, _: percent(float(place))))


def _draw_reliability(axes: Axes, data: dict[str, Any], low: float, high: float, *, on_logit: bool) -> None:
    ends = _place([low, high], low, high, on_logit=on_logit)
    axes.plot(ends, ends, color=_COLOURS["muted"], linewidth=1.0, linestyle=(0, (1, 2)), label="ideal")
    for name, style in _STYLES.items():
        shown = data["diagrams"][name]
        if shown is None:
            continue
        x, y = (
            _place(shown["corp"][field], low, high, on_logit=on_logit)
            for field in ("predictions", "recalibrated")
        )
        axes.plot(x, y, color=_COLOURS[name], linewidth=1.3, linestyle=style["linestyle"], alpha=0.75)
        x, y = (
            _place(shown["bins"][field], low, high, on_logit=on_logit)
            for field in ("mean_prediction", "observed_rate")
        )
        axes.plot(
            x,
            y,
            color=_COLOURS[name],
            marker=style["marker"],
            markersize=5.0,
            markerfacecolor=style["markerfacecolor"],
            linestyle="none",
            clip_on=False,
            label=name,
            zorder=3,
        )
    axes.set(xlim=ends, ylim=ends)
    axes.set_ylabel("observed rate")
    axes.grid(True)
    axes.legend(loc="upper left", frameon=False)
    axes.tick_params(labelbottom=False)
    _format_axis(axes.yaxis, low, high, on_logit=on_logit)


def _draw_histograms(axes: Axes, data: dict[str, Any], axis: str, low: float, high: float) -> None:
    on_logit = axis == "logit"
    most = 1
    for name, style in _STYLES.items():
        shown = data["distribution"][axis][name]
        if shown is None:
            continue
        most = max(most, *shown["rows"])
        axes.stairs(
            shown["rows"],
            _place(shown["edges"], low, high, on_logit=on_logit),
            baseline=0.5,
            color=_COLOURS[name],
            linewidth=1.2,
            linestyle=style["linestyle"],
        )
    axes.set_yscale("log")
    axes.set_ylim(0.5, 3.0 * most)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.set(xlabel="prediction", ylabel="rows")
    axes.grid(True, axis="x")
    _format_axis(axes.xaxis, low, high, on_logit=on_logit)


def _inline(svg: str, prefix: str, description: str) -> str:
    """Strip what only a file needs, make names unique in the page, and put variables for colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    opening = re.compile(r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>")
    # An HTML parser knows the names of SVG and of XLink by itself.
    svg = opening.sub(rf'<svg viewBox="\1" role="img" aria-label="{description}">', svg, count=1)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'xlink:href="#', f'xlink:href="#{prefix}-', svg)
    # The page's own font, whatever matplotlib measured with.
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1; font-family: inherit", svg)
    for name, colour in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def draw(data: dict[str, Any], axis: str) -> str:
    """The reliability diagram over the histograms, on the "linear" or the "logit" axis."""
    low, high = data["axes"][axis]
    with rc_context(_RC):
        figure = Figure(figsize=(5.4, 6.6), layout="constrained")
        figure.patch.set_visible(False)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        _draw_reliability(above, data, low, high, on_logit=axis == "logit")
        _draw_histograms(below, data, axis, low, high)
        for axes in (above, below):
            axes.patch.set_visible(False)
            axes.spines[["top", "right"]].set_visible(False)
        stream = io.StringIO()
        figure.savefig(stream, format="svg")
    description = f"Reliability diagram and score distribution on the {axis} axis, before and after"
    return _inline(stream.getvalue(), axis, description)
