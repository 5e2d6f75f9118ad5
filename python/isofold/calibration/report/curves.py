"""What the diagrams show: bins, the CORP curve, histograms, and the range of each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from isofold.calibration._inputs import Float64Array, Observations
from isofold.calibration._pooled_fit import pooled_fit
from isofold.calibration.reliability import reliability

DIAGRAM_BINS = 20
CORP_POINTS = 2000
HISTOGRAM_BINS = 60
# The ends of the logit axis, however small or large the predictions are.
_LEAST = 1e-12


def logit(p: Float64Array) -> Float64Array:
    return np.log(p) - np.log1p(-p)


def _corp_points(rows: Observations, threads: int) -> dict[str, Any]:
    """The curve's knots: the first and last prediction of each run of equal values, thinned if too many."""
    fit = pooled_fit(rows, threads=threads)
    changes = fit.values[1:] != fit.values[:-1]
    knots = np.flatnonzero(np.concatenate(([True], changes)) | np.concatenate((changes, [True])))
    points = knots
    if len(knots) > CORP_POINTS:
        points = knots[np.linspace(0, len(knots) - 1, CORP_POINTS).round().astype(np.int64)]
    return {
        "predictions": fit.scores[points].tolist(),
        "recalibrated": fit.values[points].tolist(),
        "distinct_predictions": len(fit.scores),
        "blocks": int(changes.sum()) + 1,
        "knots_left_out": len(knots) - len(points),
    }


def diagram(rows: Observations, threads: int) -> dict[str, Any]:
    """Bins of equal mass, and the CORP curve. `rows` hold probabilities as scores."""
    table = reliability(
        rows.labels, rows.scores, sample_weight=rows.weights, n_bins=DIAGRAM_BINS, strategy="quantile"
    )
    bins = {name: values.tolist() for name, values in vars(table).items()}
    return {"bins": bins, "corp": _corp_points(rows, threads)}


def linear_range(diagrams: list[dict[str, Any]]) -> tuple[float, float]:
    """[0, 1], or less of it when all bins lie near one of its ends."""
    values = np.concatenate(
        [diagram["bins"][name] for diagram in diagrams for name in ("mean_prediction", "observed_rate")]
    )
    low, high = float(values.min()), float(values.max())
    if 0.0 < high < 0.6:
        return 0.0, 1.1 * high
    if 1.0 > low > 0.4:
        return 1.0 - 1.1 * (1.0 - low), 1.0
    return 0.0, 1.0


def logit_range(diagrams: list[dict[str, Any]], predictions: list[Float64Array]) -> tuple[float, float]:
    """The probabilities at the ends: all bins and all but the outermost hundredths of the predictions."""
    parts = [
        np.array(diagram["bins"][name])
        for diagram in diagrams
        for name in ("mean_prediction", "observed_rate")
    ]
    parts += [np.quantile(values, (0.01, 0.99), method="nearest") for values in predictions]
    values = np.concatenate(parts)
    inner = values[(values > 0.0) & (values < 1.0)]
    if len(inner) == 0:
        return 0.01, 0.99
    ends = logit(np.clip(np.array([inner.min(), inner.max()]), _LEAST, 1.0 - _LEAST))
    middle, half = float(ends.mean()), max(float(ends[1] - ends[0]) / 2 * 1.1, 1.5)
    low, high = 1.0 / (1.0 + np.exp(-np.array([middle - half, middle + half])))
    return float(low), float(high)


def histogram(predictions: Float64Array, low: float, high: float, *, on_logit: bool) -> dict[str, Any]:
    """Rows by prediction, in bins of equal width on the axis; those beyond its ends are counted apart."""
    edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
    if on_logit:
        ends = logit(np.array([low, high]))
        edges = 1.0 / (1.0 + np.exp(-np.linspace(ends[0], ends[1], HISTOGRAM_BINS + 1)))
        edges[0], edges[-1] = low, high
    counts, _ = np.histogram(predictions, edges)
    return {
        "edges": edges.tolist(),
        "rows": counts.tolist(),
        "below": int(np.count_nonzero(predictions < low)),
        "above": int(np.count_nonzero(predictions > high)),
    }
