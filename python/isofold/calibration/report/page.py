"""The HTML page around the numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import NormalDist
from typing import Any

from numpy.typing import ArrayLike

from isofold.calibration._atomic_file import atomic_writer
from isofold.calibration._audit import Audit
from isofold.calibration.report.gather import Drift, report_data

SHOWN_SEGMENTS = 500
_LONGEST_NAME = 120

_METRICS = (
    ("mean_prediction", "mean prediction", ""),
    ("predicted_over_observed", "predicted over observed", "1 is right"),
    ("ece_equal_width", "ECE, 15 bins of equal width", "less is better"),
    ("ece_equal_mass", "ECE, 15 bins of equal mass", "less is better"),
    ("brier", "Brier score", "less is better; = MCB - DSC + UNC"),
    ("mcb", "miscalibration (MCB)", "what recalibration would still win; less is better"),
    ("dsc", "discrimination (DSC)", "more is better"),
    ("unc", "uncertainty (UNC)", "the data's, not the predictions'"),
    ("log_loss", "log loss", "nats; less is better"),
    ("log_loss_infinite_terms", "infinite terms of the log loss", "rows predicted impossible that happened"),
)


def number(value: float | None) -> str:
    """A number for a reader: five significant digits; the data block has them all."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1e4:
        return f"{value:,.0f}"
    return f"{value:.5g}" if abs(value) >= 1e-4 else f"{value:.3e}"


def _text(name: str) -> str:
    """Text from the user's data: escaped, and apart from the direction of the text around it."""
    shown = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    full = "" if shown == name else f' title="{escape(name)}"'
    return f"<bdi{full}>{escape(shown)}</bdi>"


def _json_ready(value: Any) -> Any:
    """JSON has neither infinity nor NaN: they become null."""
    if isinstance(value, dict):
        return {key: _json_ready(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_json_ready(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _data_block(data: dict[str, Any]) -> str:
    text = json.dumps(_json_ready(data), separators=(",", ":"), allow_nan=False)
    # Nothing in a string may end the element or open a comment.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[tuple[Sequence[str], Sequence[float | None]]],
    *,
    attributes: str = "",
) -> str:
    """Rows of cells that are HTML already, then numbers. `header` is HTML as well."""
    parts = [f"<div class=scroll><table{attributes}><caption>{caption}</caption><thead><tr>"]
    parts += [f"<th scope=col>{name}</th>" for name in header]
    parts.append("</tr></thead><tbody>")
    for names, numbers in rows:
        parts.append("<tr>")
        parts += [f"<th scope=row>{name}</th>" for name in names]
        parts += [
            f'<td data-value="{"" if value is None else repr(float(value))}">{number(value)}</td>'
            for value in numbers
        ]
        parts.append("</tr>\n")
    parts.append("</tbody></table></div>")
    return "".join(parts)


def _metrics_section(data: dict[str, Any]) -> str:
    before, after = data["metrics"]["before"], data["metrics"]["after"]
    rows = []
    for key, name, meaning in _METRICS:
        hint = f" <small>{meaning}</small>" if meaning else ""
        rows.append(([name + hint], [None if before is None else before[key], after[key]]))
    epsilon = after["log_loss_epsilon"]
    notes = f"Log loss: predictions clipped to [{epsilon:.3g}, 1 - {epsilon:.3g}]."
    if before is not None and before["log_loss_epsilon"] != epsilon:
        notes += f" Before calibration: {before['log_loss_epsilon']:.3g}."
    if before is None:
        notes += " The scores do not all lie in [0, 1]: they are no probabilities and have no such metrics."
    table = _table("All rows", ["metric", "before", "after"], rows)
    return f"<section><h2>Metrics</h2>{table}<p class=note>{notes}</p></section>"


def _beyond(data: dict[str, Any], axis: str) -> str:
    parts = []
    for name, shown in data["distribution"][axis].items():
        if shown is not None and shown["below"] + shown["above"]:
            parts.append(f"{name}, {shown['below']:,} below and {shown['above']:,} above")
    return f" Rows beyond its ends: {'; '.join(parts)}." if parts else ""


def _diagrams_section(data: dict[str, Any]) -> str:
    # Loaded here, so that report_data needs no matplotlib.
    from isofold.calibration.report.plots import draw, percent

    captions = {
        "linear": "Linear axis",
        "logit": "Logit axis: rare events spread out, rates of 0 and 1 on its ends",
    }
    figures = []
    for axis, caption in captions.items():
        low, high = data["axes"][axis]
        span = f"{percent(float(f'{low:.3g}'))} to {percent(float(f'{high:.3g}'))}"
        figures.append(
            f"<figure>{draw(data, axis)}<figcaption><b>{caption}</b>, from {span}."
            f"{_beyond(data, axis)}</figcaption></figure>"
        )
    knots = []
    for name, shown in data["diagrams"].items():
        if shown is not None:
            corp = shown["corp"]
            knots.append(
                f"{name}: {corp['blocks']:,} blocks over {corp['distinct_predictions']:,} distinct values"
                + (f" ({corp['knots_left_out']:,} knots not drawn)" if corp["knots_left_out"] else "")
            )
    return (
        "<section><h2>Reliability</h2><p>Dots: bins of equal mass, mean prediction against observed rate. "
        "Lines: the CORP curve, the isotonic regression of the outcomes on the predictions, which needs no "
        "bins. On the dotted diagonal, what is predicted happens.</p>"
        f"<div class=figures>{''.join(figures)}</div>"
        f"<p class=note>CORP curves, {'; '.join(knots)}.</p>{_bins_section(data)}</section>"
    )


def _bins_section(data: dict[str, Any]) -> str:
    tables = []
    for name, shown in data["diagrams"].items():
        if shown is None:
            continue
        bins = shown["bins"]
        fields = ("lower", "upper", "count", "mean_prediction", "observed_rate", "weight")
        rows = [([str(k + 1)], [bins[field][k] for field in fields]) for k in range(len(bins["count"]))]
        header = ["bin", "least", "greatest", "rows", "mean prediction", "observed rate", "share of weight"]
        tables.append(_table(f"Bins {name} calibration", header, rows))
    return f"<details><summary>The bins in numbers</summary>{''.join(tables)}</details>"


def _segments_section(data: dict[str, Any]) -> str:
    table = data["segments"]
    if table is None:
        return ""
    weighted, before, after = data["weighted"], table["before"], table["after"]
    columns: list[tuple[str, list[float]]] = [("rows", table["rows"])]
    if weighted:
        columns.append(("weight", table["weight"]))
    columns += [("positives", table["positives"]), ("observed rate", table["observed_rate"])]
    if before is not None:
        columns.append(("predicted / observed before", before["predicted_over_observed"]))
    columns += [
        ("predicted / observed after", after["predicted_over_observed"]),
        ("deviations", table["deviations"]),
    ]
    if before is not None:
        columns.append(("MCB before", before["mcb"]))
    columns.append(("MCB after", after["mcb"]))

    shown = min(SHOWN_SEGMENTS, len(table["names"]))
    names, heads = table["names"], table["columns"]
    if table["served_by"] is not None:
        names = [[*name, server] for name, server in zip(names, table["served_by"], strict=True)]
        heads = [*heads, "served by"]
    rows = (([_text(name) for name in names[k]], [values[k] for _, values in columns]) for k in range(shown))
    header = [_text(name) for name in heads] + [name for name, _ in columns]
    header = [f"<button type=button>{name}</button>" for name in header]
    # Rows without a segment are a line of the table, but no segment: the fit counts them apart as well.
    total = table["total"] - table["missing"]
    count = f"{total:,} segment{'' if total == 1 else 's'}"
    if table["missing"]:
        count += " and the rows without one"
    caption = f"The {shown:,} worst of {count}" if shown < table["total"] else f"{count}, the worst first"
    notes = (
        f"Worst by {escape(table['sorted_by'])}. Deviations above 0: more positives than predicted. Between "
        "-2 and 2 is what chance alone often gives. MCB of few rows is large by chance: any curve fits them."
    )
    if shown < len(table["names"]):
        notes += f" The data block of this page holds {len(table['names']):,} segments."
    body = _table(caption, header, rows, attributes=" id=segments class=sortable")
    return f"<section><h2>Segments</h2>{body}<p class=note>{notes}</p></section>"


def _drift_section(data: dict[str, Any]) -> str:
    drift = data["drift"]
    if drift is None:
        return ""
    rows = [([_text(name)], numbers) for name, numbers in zip(drift["names"], drift["rows"], strict=True)]
    table = _table("On data from another time", ["", *(_text(name) for name in drift["columns"])], rows)
    return f"<section id=drift><h2>Drift</h2>{table}</section>"


def _audit_section(data: dict[str, Any]) -> str:
    audit = data["audit"]
    if audit is None:
        return ""
    rows: list[tuple[list[str], list[float | None]]] = []
    for segment in (audit["overall"], *audit["segments"]):
        mark = " *" if segment["significant"] else ""
        fields = ("z", "predicted_over_observed", "rows", "positives", "p_value", "search_z")
        rows.append(([_text(segment["name"]) + mark], [segment[field] for field in fields]))
    header = ["segment", "z", "predicted / observed", "rows", "positives", "p value", "z where found"]
    count = len(audit["segments"])
    caption = f"{count:,} segment{'' if count == 1 else 's'} by {_text(', '.join(audit['features']))}"
    alone = NormalDist().inv_cdf(1 - audit["level"] / 2)
    notes = (
        "Found on some rows, measured on others. z: observed less predicted positives, in the standard "
        "deviations that chance gives if the predictions are right and rows independent. *: |z| above "
        f"{audit['z_threshold']:.2f}, which right predictions exceed in any of {count:,} segments with a "
        f"probability of at most {audit['level']:.3g} (above {alone:.2f} for all rows)."
    )
    table = _table(caption, header, rows, attributes=" id=audit")
    return f"<section><h2>Audit</h2>{table}<p class=note>{notes}</p></section>"


def render(data: dict[str, Any]) -> str:
    """The page as text."""
    folder = Path(__file__).parent
    style, script = ((folder / name).read_text("utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    title = escape(data["title"])
    summary = f"{data['rows']:,} row{'s' if data['rows'] != 1 else ''}"
    if data["weighted"]:
        summary += f" of total weight {number(data['weight'])}"
    summary += (
        f", {number(data['positives'])} positives: an observed rate of {number(data['observed_rate'])}."
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in data["notes"])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="isofold">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1>
<p>{summary}</p>
{notes}</header>
<main>
{_metrics_section(data)}
{_drift_section(data)}
{_audit_section(data)}
{_diagrams_section(data)}
{_segments_section(data)}
</main>
<footer>Made by isofold. Numbers are rounded for reading; in full they are in this page's data block,
<code>isofold-report-data</code>.</footer>
<script type="application/json" id="isofold-report-data">{_data_block(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def write_report(
    path: str | os.PathLike[str],
    scores: ArrayLike,
    labels: ArrayLike,
    calibrated: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    segments: Any = None,
    segment_names: Sequence[str] | str | None = None,
    served_by: Any = None,
    title: str = "Calibration report",
    drift: Drift | None = None,
    audit: Audit | None = None,
    notes: Sequence[str] | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Write one HTML file that opens offline: metrics, reliability diagrams, scores, segments, drift,
    audit.

    Parameters other than `path`, complexity and errors are those of `report_data`. The numbers stand in the
    file's element "isofold-report-data" as JSON as well, every digit of them, infinity as null. The page asks
    for nothing over the network, and what comes from the data is shown as text only. The file appears whole,
    under a temporary name first, or not at all.

    Returns
    -------
    dict
        What `report_data` returns.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the position.
    OSError
        When the file cannot be written.
    ModuleNotFoundError
        Without matplotlib, which `pip install 'isofold[report]'` brings.
    """
    data = report_data(
        scores,
        labels,
        calibrated,
        sample_weight=sample_weight,
        segments=segments,
        segment_names=segment_names,
        served_by=served_by,
        title=title,
        drift=drift,
        audit=audit,
        notes=notes,
        threads=threads,
    )
    # Half of a surrogate pair has no UTF-8 form.
    content = render(data).encode("utf-8", "replace")
    with atomic_writer(path) as stream:
        stream.write(content)
    return data
